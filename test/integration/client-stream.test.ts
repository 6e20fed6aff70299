import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ChangeEvent, DaoData, StreamEvent } from '../../clients/typescript/src/index.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { appendToStream } from '../../shared/store/change-feed.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { createApiDatabase } from '../support/api.ts'
import { type ClientPackage, loadClientPackage } from '../support/client-package.ts'
import { createTestConfig } from '../support/database.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const DATASETS = ['prices', 'tvl', 'holders'] as const

const config = createTestConfig()
const key = `${config.redis.prefix}:commit-log`
const publisher = createRedis(config.redis.url, silent)
let database: Awaited<ReturnType<typeof createApiDatabase>>
let built: ClientPackage
let port: string
let child: Child
let api: DaoData

async function startService(): Promise<void> {
  child = startChild('api', join(import.meta.dirname, '../../api/main.ts'), {
    ...toStoreSettings(config),
    ...{ API_PORT: port, API_OPS_PORT: '0', API_DRAIN_SECONDS: '0', LOG_LEVEL: 'silent' },
  })
  await untilReady(child)
}

function kill(): Promise<string> {
  child.process.kill('SIGKILL')
  return child.ended
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  built = await loadClientPackage()
  port = String(await findFreePort())
  api = built.client.createDaoData({ baseUrl: `http://127.0.0.1:${port}` })
  await startService()
})
afterAll(async () => {
  if (child?.process.exitCode === null) await child.stop()
  publisher.disconnect()
  built?.remove()
  await database?.drop()
})

const commit = (dataset: string, at = Date.parse('2026-05-06')) =>
  appendToStream(publisher, config.redis.prefix, { dataset, from: at, to: at, entities: 2 })
const newest = async () => (await publisher.xrevrange(key, '+', '-', 'COUNT', 1))[0]?.[0]

/** Events from now on; `seen` grows as they arrive. */
function follow(options: { datasets?: ChangeEvent['dataset'][]; lastEventId?: string } = {}) {
  const stop = new AbortController()
  const seen: StreamEvent[] = []
  const { datasets, lastEventId } = options
  const events = api.service.streamChanges({ datasets }, { signal: stop.signal, lastEventId })
  const ended = (async () => {
    for await (const event of events) seen.push(event)
  })().catch((error: unknown) => error)
  return {
    seen,
    stop: () => {
      stop.abort()
      return ended
    },
  }
}

/**
 * Publishes change events until the new client receives one, and returns the received events: the start position is unknown
 * before. A client that connects before the service has read the end of the log receives a reset first.
 */
async function untilReceived({ seen }: { seen: readonly StreamEvent[] }): Promise<StreamEvent> {
  const find = () => seen.find(({ type }) => type === 'change')
  const commitAndFind = async () => {
    await commit('prices')
    return find()
  }
  await expect.poll(commitAndFind).toBeDefined()
  return find() as StreamEvent
}

describe('client stream of change events', () => {
  it('yields the content of a change event', async () => {
    const client = follow()
    const event = await untilReceived(client)
    const at = '2026-05-06T00:00:00.000Z'
    const fields = { dataset: 'prices', asOf: at, entities: 2, from: at, to: '2026-05-06T00:00:00.001Z' }
    expect(event).toEqual({ type: 'change', id: expect.stringMatching(/^\d+-\d+$/), ...fields })
    expect(await client.stop()).toMatchObject({ name: 'AbortError' })
  })

  it('yields every change once, although the service is killed and stopped several times', async () => {
    const client = follow({ datasets: ['prices', 'tvl'] })
    const first = await untilReceived(client)
    for (const end of ['kill', 'stop', 'kill']) {
      for (let count = 0; count < 30; count += 1) await commit(String(DATASETS[count % 3]))
      if (end === 'stop') await child.stop()
      else await kill()
      for (let count = 0; count < 30; count += 1) await commit(String(DATASETS[count % 3]))
      await startService()
    }
    await commit('prices')
    const log = await publisher.xrange(key, '-', '+')
    const ids = log.filter(([, [, text]]) => !text?.includes('holders')).map(([id]) => id)
    const expected = ids.slice(ids.indexOf(first.id))
    expect(expected.length).toBeGreaterThan(100)
    await expect.poll(() => client.seen.at(-1)?.id).toBe(expected.at(-1))
    expect(client.seen.slice(client.seen.indexOf(first)).map(({ id }) => id)).toEqual(expected)
    await client.stop()
  })

  it('starts after the given last event id', async () => {
    await commit('tvl')
    const before = await newest()
    await commit('holders')
    const client = follow({ lastEventId: String(before) })
    await expect.poll(() => client.seen).toMatchObject([{ type: 'change', dataset: 'holders' }])
    await client.stop()
  })

  it('yields a reset if events may be lost', async () => {
    await publisher.xtrim(key, 'MAXLEN', 1)
    const client = follow({ lastEventId: '1-0' })
    await expect.poll(() => client.seen).toEqual([{ type: 'reset', id: await newest() }])
    await client.stop()
  })

  it('throws the reason of a rejected request', async () => {
    const wrong = ['prise'] as unknown as ChangeEvent['dataset'][]
    await expect(api.service.streamChanges({ datasets: wrong }).next()).rejects.toMatchObject({
      ...{ status: 400, problem: { param: 'datasets' } },
    })
  })
})
