import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { makeFolder, writeTable } from '../../clickhouse/backup/files.ts'

const folder = mkdtempSync(join(tmpdir(), 'backup-files-'))
let tables = 0

afterAll(() => rmSync(folder, { recursive: true }))

describe('makeFolder', () => {
  it('creates missing parent folders and requires an empty folder', async () => {
    const deep = join(folder, 'some/where/else')
    await makeFolder(deep)
    await makeFolder(deep)
    await expect(makeFolder(join(folder, 'some'))).rejects.toThrow('is not empty')
  })

  it.each(['/proc/nope', '/proc/nope/deeper'])('rejects a path that cannot be created: %s', async (nowhere) => {
    const refusal = { code: 'config', message: expect.stringMatching(`^${nowhere} cannot be made or read: ENOENT`) }
    await expect(makeFolder(nowhere)).rejects.toMatchObject(refusal)
  })
})

const write = (...chunks: string[]) => {
  const content = async function* () {
    for (const chunk of chunks) yield Buffer.from(chunk)
  }
  tables++
  return writeTable(folder, `table_${tables}`, ['a', 'b'], content())
}

const TEXT = '1\t2\n3\t4\n5\t6\n'

describe('writeTable', () => {
  it('writes the same file for any split into chunks', async () => {
    const full = await write(TEXT)
    for (let at = 1; at < TEXT.length; at++) {
      for (let end = at; end < TEXT.length; end++) {
        const cut = await write(TEXT.slice(0, at), TEXT.slice(at, end), TEXT.slice(end))
        expect([cut.rows, cut.sha256], `cut at ${at} and ${end}`).toEqual([3, full.sha256])
      }
    }
  })

  it.each([
    ['in the middle of a row', ['1\t2\n3']],
    ['with text that is not a row', ['1\t2\n', 'Code: 241. DB::Exception\n3\t4\nMemory limit\n']],
    ['with a row of too many columns', ['1\t2\t3\n']],
  ])('rejects a stream that ends %s', async (_how, chunks) => {
    await expect(write(...chunks)).rejects.toThrow('ended early')
  })
})
