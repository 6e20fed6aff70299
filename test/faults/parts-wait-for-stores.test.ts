import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { findFreePort } from '../../shared/free-port.ts'
import { startChild, untilReady } from '../../tools/children.ts'
import { startRedis } from '../../tools/redis-server.ts'
import { selectCases } from '../support/cases.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startStatementDoor } from '../support/statement-door.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const PARTS = {
  api: 'api/main.ts',
  worker: 'workers/programs/worker.ts',
  scheduler: 'workers/programs/scheduler.ts',
} as const
type Name = keyof typeof PARTS

const config = createTestConfig()
let database: TestDatabase
let folder: string
beforeAll(async () => {
  database = await createTestDatabase(config)
  folder = await mkdtemp(join(tmpdir(), 'dao-data-waits-'))
})
afterAll(async () => {
  await database?.drop()
  await rm(folder, { recursive: true, force: true })
})

/** A process of the system, over stores that may be unavailable; `lines` is its log. */
async function startPart(name: Name, settings: Record<string, string>) {
  const port = String(await findFreePort())
  const apiPort = String(await findFreePort())
  const ops = { API_OPS_PORT: port, WORKER_OPS_PORT: port, SCHEDULER_OPS_PORT: port, API_PORT: apiPort }
  const child = startChild(
    name,
    join(import.meta.dirname, '../..', PARTS[name]),
    {
      ...toStoreSettings(config),
      ...ops,
      OPS_HOST: '127.0.0.1',
      API_DRAIN_SECONDS: '0',
      WORKER_QUEUES: 'tvl',
      LOG_LEVEL: 'warn',
      ...settings,
    },
    [],
    { keepsOutput: true },
  )
  let output = ''
  child.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const exited = once(child.process, 'exit')
  onTestFinished(() => void child.process.kill('SIGKILL'))
  const request = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined)
    return answer?.status
  }
  const readWaiting = () =>
    [...output.matchAll(/^\{.*"msg":"waiting for (ClickHouse|Redis).*\}$/gm)].map(([, of]) => of)
  return { ...child, exited, ask: request, readWaiting, output: () => output }
}

/** A proxy to ClickHouse that opens later. */
async function openDoor(port: number): Promise<void> {
  const target = new URL(config.clickhouse.url)
  const door = createServer((socket) => {
    const onward = connect(Number(target.port), target.hostname)
    socket.pipe(onward).pipe(socket)
    for (const one of [socket, onward]) one.on('error', () => one.destroy())
  })
  onTestFinished(() => void door.close())
  await once(door.listen(port, '127.0.0.1'), 'listening')
}

describe.each(['api', 'worker', 'scheduler'] as const)('the %s process', (name) => {
  it('waits for ClickHouse and Redis, logs it, and works when they are available', async () => {
    const [clickhousePort, redisPort] = [await findFreePort(), await findFreePort()]
    const part = await startPart(name, {
      CLICKHOUSE_URL: `http://127.0.0.1:${clickhousePort}`,
      REDIS_URL: `redis://127.0.0.1:${redisPort}`,
    })
    await expect.poll(() => part.ask('/health/live')).toBe(200)
    expect(await part.ask('/health/ready')).toBe(503)
    // The API serves without Redis.
    const expected = name === 'api' ? ['ClickHouse'] : ['ClickHouse', 'Redis']
    await expect.poll(() => part.readWaiting().sort()).toEqual(expected)
    const ready = name === 'api' ? Promise.resolve({}) : untilReady(part)
    await openDoor(clickhousePort)
    const redis = await startRedis(join(folder, name), { port: redisPort })
    onTestFinished(() => redis.stop())
    await ready
    await expect.poll(() => part.ask('/health/ready')).toBe(200)
    // One line per store, regardless of the number of attempts.
    expect(part.readWaiting().sort()).toEqual(expected)
    part.process.kill('SIGTERM')
    expect(await part.exited).toEqual([0, null])
  })

  it('exits without a delay when it is stopped while it waits', async () => {
    const nowhere = { CLICKHOUSE_URL: 'http://127.0.0.1:1', REDIS_URL: 'redis://127.0.0.1:1' }
    const part = await startPart(name, nowhere)
    await expect.poll(() => part.readWaiting().length).toBeGreaterThan(0)
    const since = performance.now()
    part.process.kill('SIGTERM')
    expect(await part.exited).toEqual([0, null])
    expect(performance.now() - since).toBeLessThan(5_000)
  })
})

it.each(['worker', 'scheduler'] as const)(
  '%s process starts if ClickHouse drops the connection during any of its first statements',
  async (name) => {
    const redis = await startRedis(join(folder, `${name}-left`))
    onTestFinished(() => redis.stop())
    const door = await startStatementDoor(config.clickhouse.url)
    onTestFinished(() => void door.close())
    /** How many statements a start sent when this one got no response. */
    const startWithout = async (cut: number) => {
      door.statements.length = 0
      door.cut((statement) => statement === cut)
      const part = await startPart(name, { CLICKHOUSE_URL: door.url, REDIS_URL: redis.url })
      await untilReady(part)
      const count = door.statements.length
      part.process.kill('SIGTERM')
      expect(await part.exited).toEqual([0, null])
      return count
    }
    const all = await startWithout(-1)
    // Statements after these belong to ticks, which continue in any case.
    const cuts = Array.from({ length: Math.min(all, 6) }, (_, cut) => cut)
    for (const cut of selectCases(cuts, 2, name)) await startWithout(cut)
  },
  300_000,
)

describe('the worker process', () => {
  it.each([
    ['a wrong password of ClickHouse', () => ({ CLICKHOUSE_PASSWORD: 'wrong' }), /code 516/],
    [
      'a database that is not there',
      () => ({ CLICKHOUSE_DATABASE: 'nowhere_at_all' }),
      /nowhere_at_all|npm run migrate/,
    ],
    ['a queue that nobody knows', () => ({ WORKER_QUEUES: 'weather', REDIS_URL: 'redis://127.0.0.1:1' }), /weather/],
  ] as const)('exits without waiting for %s', async (_what, settings, reason) => {
    const part = await startPart('worker', settings())
    expect(await part.exited).toEqual([1, null])
    expect(part.readWaiting()).toEqual([])
    expect(part.output()).toMatch(reason)
  })

  it('exits without waiting for a wrong password of Redis', async () => {
    const redis = await startRedis(join(folder, 'guarded'), { password: 'right' })
    onTestFinished(() => redis.stop())
    const part = await startPart('worker', { REDIS_URL: redis.url.replace(':right@', ':wrong@') })
    expect(await part.exited).toEqual([1, null])
    expect(part.output()).toMatch(/^REDIS_URL: .*WRONGPASS|NOAUTH/m)
  })
})
