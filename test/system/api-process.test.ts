import { once } from 'node:events'
import { get } from 'node:http'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { putInForce } from '../../clickhouse/registry.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { startChild, untilReady } from '../../tools/children.ts'
import { createApiDatabase } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { createRegistryFolder } from '../support/registry-folder.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>

const hasIpv6 = Object.values(networkInterfaces()).some((ones) => ones?.some(({ address }) => address === '::1'))

const start = async (settings: Record<string, string> = {}) => {
  const child = startChild('api', join(import.meta.dirname, '../../api/main.ts'), {
    ...toStoreSettings(config),
    API_PORT: '0',
    API_OPS_PORT: '0',
    LOG_LEVEL: 'silent',
    ...settings,
  })
  return { child, facts: (await untilReady(child)) as { url: string; opsPort?: number } }
}

beforeAll(async () => {
  database = await createApiDatabase(config)
})

afterAll(async () => {
  await database?.drop()
})

describe('the API process', () => {
  it('serves requests and exits on SIGTERM with open connections', async () => {
    const { child, facts } = await start()
    const readReady = async () => {
      const ready = await fetch(`${facts.url}/health/ready`)
      return [ready.status, await ready.json()]
    }
    // The API serves requests before it has connected to Redis.
    await expect.poll(readReady).toEqual([200, { status: 'ready', clickhouse: 'ok', redis: 'ok', limits: 'off' }])
    expect((await fetch(`${facts.url}/metrics`)).status).toBe(404)
    const idle = get(`${facts.url}/data/tokens`, { agent: false, headers: { connection: 'keep-alive' } })
    const [response] = await once(idle, 'response')
    response.resume()
    const exited = once(child.process, 'exit')
    child.process.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
  })

  it.skipIf(!hasIpv6)('serves over IPv6 and logs the URL', async () => {
    const { child, facts } = await start({ API_HOST: '::1' })
    expect(facts.url).toMatch(/^http:\/\/\[::1\]:\d+$/)
    expect((await fetch(`${facts.url}/data/tokens`)).status).toBe(200)
    await child.stop()
  })

  it('answers requests while it stops, reports not ready, closes connections, and exits at the second signal', async () => {
    const { child, facts } = await start({ API_OPS_PORT: await freePort(), API_DRAIN_SECONDS: '10' })
    const exited = once(child.process, 'exit')
    child.process.kill('SIGTERM')
    await expect.poll(async () => (await fetch(`${facts.url}/health/ready`)).status).toBe(503)
    expect((await fetch(`http://127.0.0.1:${facts.opsPort}/health/ready`)).status).toBe(503)
    for (const path of ['/data/tokens', '/data/tokens', '/data/status', '/docs/', '/nothing']) {
      const answer = await fetch(`${facts.url}${path}`)
      await answer.arrayBuffer()
      const status = path === '/nothing' ? 404 : 200
      expect([path, answer.status, answer.headers.get('connection')]).toEqual([path, status, 'close'])
    }
    // A second signal within a second of the first one is ignored.
    const signals = setInterval(() => child.process.kill('SIGTERM'), 100)
    expect(await exited).toEqual([130, null])
    clearInterval(signals)
  })

  it('exposes its metrics on the operations port only', async () => {
    const { child, facts } = await start({ API_OPS_PORT: await freePort() })
    await fetch(`${facts.url}/data/categories`)
    const metrics = await (await fetch(`http://127.0.0.1:${facts.opsPort}/metrics`)).text()
    expect(metrics).toMatch(/^api_answers_total\{route="\/data\/categories",from="made",process="api"\} 1$/m)
    expect(metrics).toMatch(/^api_request_duration_seconds_count\{.*route="\/data\/categories",status="200"\} 1$/m)
    await child.stop()
  })

  it('applies registry changes without a restart', async () => {
    const folder = createRegistryFolder()
    const writer = createDatabase(config.clickhouse, 'write')
    const { child, facts } = await start()
    const read = async () => (await fetch(`${facts.url}/data/categories`)).text()
    expect(await read()).not.toContain('Made up')
    folder.edit('categories', (rows) => [...rows, { slug: 'made-up', name: 'Made up' }])
    await putInForce(writer, silent, folder.dir)
    await expect.poll(read).toContain('Made up')
    await child.stop()
    await writer.close()
    folder.remove()
  })

  it('starts and serves without Redis, and reports it in /health/ready', async () => {
    const { child, facts } = await start({ REDIS_URL: 'redis://127.0.0.1:1' })
    const ready = await fetch(`${facts.url}/health/ready`)
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { status: 'ready', clickhouse: 'ok', redis: 'away', limits: 'off' },
    ])
    expect((await fetch(`${facts.url}/data/tokens`)).status).toBe(200)
    await child.stop()
    expect(child.process.exitCode).toBe(0)
  })
})

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return String(address !== null && typeof address === 'object' ? address.port : 0)
}
