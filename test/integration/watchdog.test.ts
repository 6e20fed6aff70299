import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Config } from '../../shared/config/config.ts'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { startOpsServer } from '../../shared/ops/ops-server.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { createWatchdog } from '../../workers/monitoring/watchdog.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProcess } from '../support/processes.ts'
import { silent } from '../support/silent.ts'

const MINUTE = 60_000
const START = Date.parse('2024-05-06T07:05:00Z')

let config: Config
let database: TestDatabase
let redis: Redis
beforeEach(async () => {
  config = createTestConfig()
  redis = createRedis(config.redis.url, silent)
  database = await createTestDatabase(config)
})
afterEach(() => {
  redis.disconnect()
  return database.drop()
})

function createWatch(db = database.db) {
  const lines: { msg: string; dataset: string; state?: string }[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const clock = { now: START }
  const registry = createMetrics('test')
  const watchdog = createWatchdog({
    db,
    redis,
    prefix: config.redis.prefix,
    datasets: [tokenPrices, protocolTvl],
    records: loadRegistry(),
    registry,
    log,
    now: () => clock.now,
  })
  const read = async (pattern: RegExp) => pattern.exec(await registry.metrics())?.[1]
  return {
    clock,
    watchdog,
    messages: () => lines.splice(0).map(({ dataset, msg }) => `${dataset}: ${msg}`),
    lag: () => read(/^dataset_lag_seconds\{dataset="tvl",.*\} (\S+)$/m),
    state: () => read(/^dataset_state\{dataset="tvl",state="(\w+)",.*\} 1$/m),
  }
}

const store = (at: number) =>
  database.db.insert({
    table: 'protocol_tvl',
    rows: [{ dao: 1, observed_at: new Date(at).toISOString(), tvl_usd: 5 }],
  })

describe('the freshness watchdog', () => {
  it('logs each change between late, stale and fresh once, from stored rows only', async () => {
    const { clock, watchdog, messages, lag, state } = createWatch()
    await watchdog.check()
    expect([await state(), await lag(), messages()]).toEqual(['empty', undefined, []])
    await store(START)
    await watchdog.check()
    expect([await state(), await lag(), messages()]).toEqual(['fresh', '0', []])
    clock.now += 89 * MINUTE
    await watchdog.check()
    expect([await state(), messages()]).toEqual(['fresh', []])
    clock.now += 2 * MINUTE
    await watchdog.check()
    await watchdog.check()
    expect([await state(), await lag(), messages()]).toEqual([
      'late',
      String(91 * 60),
      ['tvl: data is late: its slots are not enqueued: does a scheduler run?'],
    ])
    clock.now += 30 * MINUTE
    await watchdog.check()
    expect([await state(), messages()]).toEqual([
      'stale',
      ['tvl: data is stale: its slots are not enqueued: does a scheduler run?'],
    ])
    await store(clock.now)
    await watchdog.check()
    expect([await state(), messages()]).toEqual(['fresh', ['tvl: data is fresh again']])
  })

  it('updates the lag while ClickHouse is unavailable', async () => {
    await store(START)
    const db = createDatabase(config.clickhouse, 'write')
    const { clock, watchdog, messages, lag, state } = createWatch(db)
    await watchdog.check()
    await db.close()
    await database.server.command({ name: 'away', sql: `DROP DATABASE ${config.clickhouse.database}` })
    clock.now -= 10 * MINUTE
    await watchdog.check()
    // Also after a clock that was ahead was set back.
    expect(messages()).toContain('undefined: completeness cannot be read')
    clock.now += 190 * MINUTE
    await watchdog.check()
    expect([await state(), await lag()]).toEqual(['stale', String(3 * 3600)])
    // Unreadable completeness was logged once.
    expect(messages()).toEqual(['tvl: data is stale: its slots are not enqueued: does a scheduler run?'])
  })
})

describe('operations port of a scheduler', () => {
  it('exposes slots, queues and freshness', async () => {
    const scheduler = await startProcess('scheduler', config, { DATASETS_OFF: 'tvl' })
    const ready = await scheduler.get('/health/ready')
    expect([ready.status, await ready.json()]).toEqual([200, { status: 'ready', clickhouse: 'ok', redis: 'ok' }])
    let metrics = ''
    const read = async () => {
      metrics = await scheduler.metrics()
      return metrics
    }
    // Two if the next slot starts during the test.
    await expect
      .poll(read)
      .toMatch(/^scheduler_slots_total\{dataset="prices",outcome="enqueued",process="scheduler"\} [12]$/m)
    expect(metrics).toMatch(/^queue_jobs\{dataset="prices",lane="live",state="waiting",process="scheduler"\} [12]$/m)
    expect(metrics).toMatch(
      /^queue_oldest_job_age_seconds\{dataset="prices",lane="live",state="waiting",.*\} \d+\.\d+$/m,
    )
    expect(metrics).toMatch(/^dataset_state\{dataset="prices",state="empty",.*\} 1$/m)
    expect(metrics).not.toContain('dataset="tvl"')
    await scheduler.stop()
    expect(scheduler.process.exitCode).toBe(0)
  })

  it('names its setting if the port is in use', async () => {
    const second = createServer().listen(0, '127.0.0.1')
    await once(second, 'listening')
    const { port } = second.address() as { port: number }
    const options = { registry: createMetrics('test'), checks: {}, host: '127.0.0.1', port, setting: 'WORKER_OPS_PORT' }
    await expect(startOpsServer(options)).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining(`WORKER_OPS_PORT: port ${port}`),
    })
    expect(await startOpsServer({ ...options, port: 0 })).toBeUndefined()
    second.close()
  })

  it('returns 503 and names the failing dependency', async () => {
    const port = await findFreePort()
    const checks = { clickhouse: () => Promise.reject(new Error('away')), redis: () => Promise.resolve() }
    const ops = await startOpsServer({ registry: createMetrics('test'), checks, host: '127.0.0.1', port, setting: 'X' })
    const ready = await fetch(`http://127.0.0.1:${port}/health/ready`)
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'not ready', clickhouse: 'away', redis: 'ok' }])
    await ops?.close()
  })
})
