import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { startOwnClickHouse } from '../support/own-clickhouse.ts'

const SECRET = 'key-of-a-provider'
const isRoot = process.getuid?.() === 0
if (!isRoot) console.log('not root here: the test of ClickHouse as another user is skipped')

type Server = Awaited<ReturnType<typeof startOwnClickHouse>>

async function readAsReader({ url, users }: Server, file: string): Promise<string> {
  const { name, password } = users.reader
  const query = `SELECT file('${file}') FORMAT TSVRaw`
  const headers = { 'x-clickhouse-user': name, 'x-clickhouse-key': password }
  return (await fetch(url, { method: 'POST', body: query, headers })).text()
}

afterEach(() => vi.unstubAllEnvs())

describe('embedded ClickHouse', () => {
  it('hides its environment from SQL', async () => {
    vi.stubEnv('COINGECKO_API_KEY', SECRET)
    const server = await startOwnClickHouse()
    onTestFinished(server.stop)
    const environment = await readAsReader(server, '/proc/self/environ')
    expect(environment).not.toContain(SECRET)
    expect(environment.replaceAll('\0', '').trim()).toBe('')
  })

  it.runIf(isRoot)('reads only files of the other OS user that it runs as', async () => {
    vi.stubEnv('COINGECKO_API_KEY', SECRET)
    // Other users may have no access to the folder of temporary files.
    const parent = mkdtempSync('/tmp/dao-data-os-user-')
    chmodSync(parent, 0o711)
    onTestFinished(() => rmSync(parent, { recursive: true }))
    const dataDir = join(parent, 'clickhouse')
    for (const start of ['the first', 'the second']) {
      const server = await startOwnClickHouse({ dataDir, osUser: 'nobody' })
      for (const file of [
        '/etc/shadow',
        `${dataDir}/access.json`,
        `/proc/${process.pid}/environ`,
        '/proc/self/environ',
      ])
        expect(await readAsReader(server, file), `${start} start, ${file}`).toMatch(
          /Permission denied|Cannot open file/,
        )
      await server.stop()
    }
  })
})
