import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLeases } from '../../clickhouse/embedded/leases.ts'
import { createEmbeddedClickHouse, type EmbeddedClickHouse } from '../../clickhouse/embedded.ts'
import { startEmbeddedClickHouse } from '../support/embedded-clickhouse.ts'

const users = { writer: { name: 'writer', password: 'w:"é' }, reader: { name: 'reader', password: '' } }

let folder: string
let embedded: EmbeddedClickHouse

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'embedded-clickhouse-lifetime-'))
  embedded = await createEmbeddedClickHouse({
    dataDir: join(folder, 'data'),
    users,
    connections: 1,
    maxWaiting: 1,
    maxStatementBytes: 10_000,
    maxInsertBytes: 10_000,
    maxServerMemoryBytes: 2_000_000_000,
    closeDeadlineMs: 0,
  })
})
afterAll(() => rm(folder, { recursive: true, force: true }))

function post(sql: string, init: RequestInit = {}): Promise<Response> {
  const password = Buffer.from(`writer:${users.writer.password}`).toString('base64')
  return fetch(embedded.url, { method: 'POST', headers: { Authorization: `Basic ${password}` }, body: sql, ...init })
}

it('names a folder that cannot be written', async () => {
  const file = join(folder, 'file')
  await writeFile(file, '')
  const dataDir = join(file, 'data')
  await expect(createEmbeddedClickHouse({ dataDir, users })).rejects.toThrow(dataDir)
})

it('hands its limits to the engine', async () => {
  const sql = `SELECT value FROM system.server_settings WHERE name IN
    ('max_server_memory_usage', 'mark_cache_size', 'background_pool_size') ORDER BY name`
  expect((await (await post(sql)).text()).split('\n')).toEqual(['2', '268435456', '2000000000', ''])
})

it('refuses a body past its limit with status 413', async () => {
  const statement = await post(`SELECT '${'x'.repeat(20_000)}'`)
  expect([statement.status, statement.headers.get('x-clickhouse-exception-code')]).toEqual([413, '307'])
  await post('CREATE TABLE t (a String) ENGINE = Memory')
  const url = `${embedded.url}/?user=writer&password=${encodeURIComponent(users.writer.password)}&query=INSERT+INTO+t+FORMAT+CSV`
  expect((await fetch(url, { method: 'POST', body: 'x'.repeat(20_000) })).status).toBe(413)
  expect(await (await post('SELECT count() FROM t')).text()).toBe('0\n')
})

it('lets as many wait as it may and sends the rest away with status 503', async () => {
  const abort = new AbortController()
  const endless = await post('SELECT * FROM system.numbers', { signal: abort.signal })
  expect(endless.status).toBe(200)
  const others = [post('SELECT 1'), post('SELECT 1')]
  expect((await Promise.race(others)).status).toBe(503)
  abort.abort()
  const statuses = (await Promise.all(others)).map(({ status }) => status)
  expect(statuses.sort()).toEqual([200, 503])
})

it('serves waiting requests in their order, and forgets those that gave up', async () => {
  const leases = createLeases(1, 10)
  const signal = new AbortController().signal
  const held = await leases.acquire(signal)
  const order: number[] = []
  const take = async (index: number, by: AbortSignal) => {
    const lease = await leases.acquire(by)
    order.push(index)
    lease.release()
  }
  const gaveUp = new AbortController()
  const all = [take(1, signal), take(2, gaveUp.signal), take(3, signal)]
  gaveUp.abort(new Error('gave up'))
  held.release()
  held.release()
  expect((await Promise.allSettled(all)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(order).toEqual([1, 3])
})

it('closes while a statement runs', async () => {
  const endless = await post('SELECT * FROM system.numbers')
  const reading = endless.text()
  await Promise.all([expect(reading).rejects.toThrow(), embedded.close()])
  await expect(post('SELECT 1')).rejects.toThrow()
})

it('finishes what runs and exits with 0 when it is asked to stop', async () => {
  const other = await startEmbeddedClickHouse()
  const slow = fetch(`${other.url}/?user=writer&query=SELECT+sum(sipHash64(number))+FROM+numbers(300000000)`)
  const busy = `${other.url}/?user=writer&query=SELECT+count()+FROM+system.processes+WHERE+query+LIKE+'SELECT+sum%25'`
  await expect.poll(async () => (await (await fetch(busy)).text()).trim()).toBe('1')
  const [response] = await Promise.all([slow, other.stop()])
  expect(await response.text()).toMatch(/^\d+\n$/)
  expect(other.exitCode()).toBe(0)
})
