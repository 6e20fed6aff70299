import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findFreePort } from '../../shared/free-port.ts'
import { startChild, untilReady } from '../../tools/children.ts'
import { createApiDatabase } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const PROCESSES = 2
const REQUESTS = 40

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let child: ReturnType<typeof startChild>
let facts: { url: string; opsPort: number; pids: number[] }

/** Each request uses a new connection, so that any process may accept it. */
const request = async (path: string) => {
  const response = await fetch(facts.url + path, { headers: { connection: 'close' } })
  return {
    status: response.status,
    body: await response.text(),
    process: response.headers.get('x-request-id')?.slice(0, 36),
  }
}

const readMetrics = async () => (await fetch(`http://127.0.0.1:${facts.opsPort}/metrics`)).text()

/** How many responses of `/data/categories` the metrics count. */
function countAnswers(metrics: string): number {
  const counted = /^api_request_duration_seconds_count\{.*route="\/data\/categories",status="200".*\} (\d+)$/m
  return Number(counted.exec(metrics)?.[1])
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  child = startChild('api', join(import.meta.dirname, '../../api/main.ts'), {
    ...toStoreSettings(config),
    ...{ API_PORT: '0', API_OPS_PORT: String(await findFreePort()), API_PROCESSES: String(PROCESSES) },
    ...{ API_DRAIN_SECONDS: '1', LOG_LEVEL: 'silent' },
  })
  facts = (await untilReady(child)) as typeof facts
})
afterAll(async () => {
  if (child?.process.exitCode === null) await child.stop()
  await database?.drop()
})

describe('API with two processes', () => {
  it('returns the same response from each process and counts all requests in its metrics', async () => {
    const answers: Awaited<ReturnType<typeof request>>[] = []
    const both = async () => {
      answers.push(...(await Promise.all(Array.from({ length: REQUESTS }, () => request('/data/categories')))))
      return new Set(answers.map(({ process }) => process)).size
    }
    await expect.poll(both).toBe(PROCESSES)
    expect(new Set(answers.map(({ status, body }) => `${status} ${body}`)).size).toBe(1)
    expect(countAnswers(await readMetrics())).toBe(answers.length)
  })

  it('keeps serving when one process is killed, and replaces it', async () => {
    const before = countAnswers(await readMetrics())
    process.kill(Number(facts.pids[0]), 'SIGKILL')
    // Only the requests that the killed process had accepted are lost.
    const first = await Promise.allSettled(Array.from({ length: REQUESTS }, () => request('/data/chains')))
    expect(first.some(({ status }) => status === 'fulfilled')).toBe(true)
    const processes = async () => {
      const answers = await Promise.all(Array.from({ length: REQUESTS }, () => request('/data/categories')))
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
      return new Set(answers.map(({ process }) => process)).size
    }
    await expect.poll(processes).toBe(PROCESSES)
    expect((await fetch(`http://127.0.0.1:${facts.opsPort}/health/ready`)).status).toBe(200)
    expect(before).toBeGreaterThan(0)
    expect(countAnswers(await readMetrics())).toBeGreaterThanOrEqual(before + REQUESTS)
  })

  it('answers requests while it stops, reports not ready, and exits', async () => {
    const exited = once(child.process, 'exit')
    child.process.kill('SIGTERM')
    await expect.poll(async () => (await request('/health/ready')).status).toBe(503)
    expect((await request('/data/categories')).status).toBe(200)
    expect(await exited).toEqual([0, null])
  })
})

it('API exits if its processes cannot listen', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const settings = { ...toStoreSettings(config), API_PORT: String(port), API_OPS_PORT: '0', API_PROCESSES: '2' }
  const api = startChild('api', join(import.meta.dirname, '../../api/main.ts'), settings, [], { keepsOutput: true })
  await expect(untilReady(api)).rejects.toThrow('ended with code 1')
  expect(api.lastOutput()).toContain('a process of the API ended before it served')
  taken.close()
})
