import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createRedis } from '../../shared/queue/redis.ts'
import { appendToStream } from '../../shared/store/change-feed.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { createApiDatabase } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { openStream, type StreamClient, type StreamEvent } from '../support/event-stream.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const KILLS = 100
const COMMITS = 2_000

const config = createTestConfig()
const publisher = createRedis(config.redis.url, silent)
let database: Awaited<ReturnType<typeof createApiDatabase>>
let child: Child
let facts: { url: string; pids: number[] }

beforeAll(async () => {
  database = await createApiDatabase(config)
  child = startChild('api', join(import.meta.dirname, '../../api/main.ts'), {
    ...toStoreSettings(config),
    ...{ API_PORT: '0', API_OPS_PORT: '0', API_PROCESSES: '2', API_DRAIN_SECONDS: '0', LOG_LEVEL: 'silent' },
  })
  facts = (await untilReady(child)) as typeof facts
})
afterAll(async () => {
  if (child?.process.exitCode === null) await child.stop()
  publisher.disconnect()
  await database?.drop()
})

/** Reconnects until it succeeds: a process that was just killed may have dropped the connection. */
async function connect(from: string | undefined): Promise<StreamClient> {
  for (;;) {
    try {
      return await openStream(`${facts.url}/data/stream?datasets=prices,tvl`, from)
    } catch {
      await wait(20)
    }
  }
}

it(`stream client that is killed ${KILLS} times receives every commit once from two processes of which one is killed too`, async () => {
  const seen: StreamEvent[] = []
  const processes = new Set<string>()
  let client = await connect(undefined)
  // A process that has not read the log yet does not know its client's start position: a client that disconnects then has
  // missed no event, and a client that stays is reset later.
  while (client.lastId === undefined || client.events.length > 0) {
    client.kill()
    client = await connect(undefined)
  }
  const committing = (async () => {
    const datasets = ['prices', 'tvl', 'holders']
    for (let n = 0; n < COMMITS; n += 1) {
      await appendToStream(publisher, config.redis.prefix, { dataset: String(datasets[n % 3]), from: n, to: n })
      if (n % 20 === 0) await wait(20)
    }
  })()
  for (let kill = 0; kill < KILLS; kill += 1) {
    await wait(10)
    if (kill === KILLS / 2) process.kill(Number(facts.pids[0]), 'SIGKILL')
    client.kill()
    seen.push(...client.events)
    processes.add(String(client.response.headers['x-request-id']).slice(0, 36))
    client = await connect(client.lastId)
  }
  await committing
  const log = await publisher.xrange(`${config.redis.prefix}:commit-log`, '-', '+')
  const selected = log.filter(([, [, text]]) => !text?.includes('holders')).map(([id]) => id)
  const ids = () => [...seen, ...client.events].map(({ id }) => id)
  await expect.poll(() => ids().length).toBeGreaterThanOrEqual(selected.length)
  expect(ids()).toEqual(selected)
  expect(seen.every(({ event }) => event === 'change')).toBe(true)
  expect(processes.size).toBeGreaterThan(1)
  client.kill()
})
