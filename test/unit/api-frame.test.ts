import { once } from 'node:events'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { frame, openFramed } from '../../api/answers/frame.ts'

const around = { before: '{"data":', after: '}', holds: async () => true }
const { signal } = new AbortController()
const framed = (...chunks: string[]) =>
  text(Readable.from(frame(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), around, signal)))

describe('the frame around a streamed array', () => {
  it('keeps every byte, however the chunks fall', async () => {
    const array = `[\n${Array.from({ length: 50 }, (_, i) => `{"n":${i}}`).join(',\n')}\n]\n`
    expect(await framed(array)).toBe(`{"data":${array}}`)
    expect(await framed(...array)).toBe(`{"data":${array}}`)
  })

  it('fails before the end when the data no longer holds', async () => {
    const chunks: Buffer[] = []
    const array = [Buffer.from(`[${'1,'.repeat(20_000)}`), Buffer.from(`${'1,'.repeat(20_000)}1]`)]
    const sent = frame(Readable.from(array), { ...around, holds: async () => false }, signal)
    const read = async () => {
      for await (const chunk of sent) chunks.push(chunk)
    }
    await expect(read()).rejects.toMatchObject({ code: 'storage' })
    expect(Buffer.concat(chunks).toString()).toMatch(/^\{"data":\[1,.*[^\]}]$/)
  })

  it('knows a table by how it ends', async () => {
    const table = (ending: Buffer | null, ...chunks: string[]) =>
      text(
        Readable.from(frame(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), { ...around, ending }, signal)),
      )
    const end = Buffer.from('PAR1')
    expect(await table(end, 'PAR1 and so on', ' PA', 'R1')).toBe('{"data":PAR1 and so on PAR1}')
    expect(await table(null)).toBe('{"data":}')
    await expect(table(end, 'PAR1 and so on')).rejects.toMatchObject({ code: 'storage' })
    await expect(table(end)).rejects.toMatchObject({ code: 'storage' })
    await expect(table(end, 'PAR1\r\n__exception__\r\nPAR1')).rejects.toMatchObject({ code: 'storage' })
  })

  it('lets a source break off that nobody waits for any more', async () => {
    const left = new AbortController()
    const source = Readable.from(
      (async function* () {
        await once(left.signal, 'abort')
        await new Promise((resolve) => setImmediate(resolve))
        yield Promise.reject(new Error('broken off'))
      })(),
    )
    const opening = openFramed({ ...around, digest: '', open: async () => source } as never, left.signal)
    await new Promise((resolve) => setImmediate(resolve))
    left.abort()
    await expect(opening).rejects.toMatchObject({ code: 'storage' })
    await new Promise((resolve) => source.once('close', resolve))
    expect(source.errored).toMatchObject({ message: 'broken off' })
  })

  it.each([
    ['an array that breaks off', ['[\n{"n":1},\n', '{"n":2}']],
    ['nothing at all', []],
    ['a failure inside', ['[\n{"n":1}\r\n__exception__\r\nabc\r\nCode: 159]\n']],
    ['a failure across chunks', [`[${'1,'.repeat(40)}\r\n__excep`, 'tion__\r\n]\n']],
    ['a failure of an older server', ['[\n{"n":1}', 'Code: 241. DB::Exception: limit]']],
  ])('fails on %s', async (_, chunks) => {
    await expect(framed(...chunks)).rejects.toMatchObject({ code: 'storage' })
  })
})
