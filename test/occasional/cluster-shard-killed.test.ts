import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Job as QueuedJob } from 'bullmq'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { toBucketStart } from '../../shared/intervals.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner, runJob } from '../../workers/run/runner.ts'
import { createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { startCluster, type TestCluster } from '../support/cluster.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'
import { storeMarket } from '../support/market.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { storeQuotes } from '../support/quotes.ts'
import { EVERY_REQUEST, readAnswers, SITE_NOW } from '../support/site.ts'

/** Large enough that most of the response is still unsent when a client reads its start. */
const LONG = 440_000
/** Cache size that fits every documented response. */
const RETAINED_BYTES = 128 * 1024 ** 2

let cluster: TestCluster
/** The same data on a cluster of which one server is killed, and on a single server that stays up. */
let sharded: Pipeline
let single: Pipeline
let db: Database
let api: TestApi

beforeAll(async () => {
  cluster = await startCluster(2)
  const settings = { API_CACHE_MB: '0' }
  ;[sharded, single] = await Promise.all([
    createPipeline({ now: SITE_NOW, settings: { ...settings, ...cluster.settings(2) }, leavesDatabase: true }),
    createPipeline({ now: SITE_NOW, settings }),
  ])
  for (const { database, registry } of [sharded, single]) await storeEveryDataset(database.db, registry, SITE_NOW)
  const { config, registry } = sharded
  db = createDatabase(config.clickhouse, 'read')
  api = await startApi({ config, db, registry, changeFeed: createHandFeed(), now: () => SITE_NOW })
}, 300_000)
afterAll(async () => {
  await api?.close()
  await db?.close()
  await Promise.all([sharded?.close(), single?.close()])
  await cluster?.stop()
})

const places = z.object({ token: z.number(), shard: z.int() })

/** Tokens with prices, by the shard that stores them. */
async function readPlaces(): Promise<Map<number, number>> {
  const sql = 'SELECT DISTINCT token, shardNum() AS shard FROM token_prices ORDER BY token'
  const rows = await sharded.database.db.rows({ name: 'places', sql, schema: places })
  return new Map(rows.map(({ token, shard }) => [token, shard]))
}

const isUnavailable = (answer: string) =>
  answer.startsWith('503 ') && (JSON.parse(answer.slice(4)) as { code: string }).code === 'unavailable'

const PRICE_TABLES = ['token_prices', 'token_price_rollups', 'token_quotes']

type Quote = Parameters<typeof storeQuotes>[1][number]

/** Prices and the tables derived from them, with each key once. */
async function dumpPrices({ database }: Pipeline): Promise<Record<string, unknown[]>> {
  const dump: Record<string, unknown[]> = {}
  for (const table of PRICE_TABLES) {
    const sql = `SELECT * EXCEPT (version, rank, collected_at) FROM ${table} FINAL ORDER BY ALL`
    dump[table] = await database.db.rows({ name: 'dump', sql, schema: z.record(z.string(), z.unknown()) })
  }
  return dump
}

it('API returns the complete response or 503 while a shard is down', async () => {
  const { config } = sharded
  // Half of the statements: the expected response may be assembled from data cached for other requests.
  const keeping = { ...config, api: { ...config.api, cacheBytes: RETAINED_BYTES } }
  const all = await readAnswers(sharded, keeping, EVERY_REQUEST)
  // An entity without data here returns 404 with the request's own id.
  const expected = Object.fromEntries(Object.entries(all).filter(([, answer]) => answer.startsWith('200 ')))
  const where = await readPlaces()
  const series = new Map(
    [...where].map(([token, shard]) => {
      const { id } = sharded.registry.tokens.find(({ key }) => key === token) ?? {}
      return [`tokens/historic-financial?id=${id}&interval=5m&start=2026-05-05`, shard]
    }),
  )
  const ofEach = await readAnswers(sharded, config, [...series.keys()])
  await cluster.kill(2)
  const got = await readAnswers(sharded, config, Object.keys(expected))
  for (const [path, answer] of Object.entries(got))
    expect(answer === expected[path] || isUnavailable(answer), `${path}: ${answer.slice(0, 200)}`).toBe(true)
  for (const path of ['tokens?limit=100', 'tokens?format=parquet', 'daos?limit=100', 'daos/socials?limit=100'])
    expect(isUnavailable(got[path] ?? ''), path).toBe(true)
  for (const [path, answer] of Object.entries(await readAnswers(sharded, config, [...series.keys()]))) {
    expect(isUnavailable(answer), path).toBe(series.get(path) === 2)
    if (series.get(path) === 1) expect(answer, path).toBe(ofEach[path])
  }
}, 300_000)

it('cluster stores rows once if a shard was down during their insert', async () => {
  const { context, clock, database } = sharded
  const places = await cluster.start(2).then(readPlaces)
  const at = SITE_NOW + 60_000
  const [here, there] = [1, 2].map((shard) => {
    const token = [...places].find(([, place]) => place === shard)?.[0]
    return { token: Number(token), at, price: 7.25 }
  }) as [Quote, Quote]
  await cluster.kill(2)
  // State after an insert that one shard accepted and the other rejected.
  await storeQuotes(database.db, [here])
  await expect(storeQuotes(database.db, [here, there])).rejects.toMatchObject({ code: 'storage' })
  clock.now = single.clock.now = SITE_NOW + 5 * 60_000
  const payload = { kind: 'slot', slot: toBucketStart(clock.now, '5m') } as const
  const worker = createRunner(prices, context)
  const [failed, completed] = [once(worker, 'failed'), once(worker, 'completed')]
  await sharded.queue(prices.name).add('slot', payload)
  const [job] = (await failed) as [QueuedJob]
  expect(job.finishedOn).toBeUndefined()
  await cluster.start(2)
  await storeQuotes(database.db, [here, there])
  await completed
  await worker.close()
  await storeQuotes(single.database.db, [here, there])
  await runJob(prices, prices.connect(single.context), single.context, payload)
  const [got, expected] = [await dumpPrices(sharded), await dumpPrices(single)]
  for (const [table, rows] of Object.entries(expected)) {
    expect(rows.length, table).toBeGreaterThan(0)
    expect(got[table], table).toEqual(rows)
  }
}, 300_000)

it('API returns complete responses or 503 to requests that run when a shard is killed', async () => {
  const paths = [
    'tokens?limit=100',
    'daos?limit=100',
    'tokens/dex-data',
    'daos/treasury',
    'tokens?format=csv&limit=100',
  ]
  const expected = await readAnswers(sharded, sharded.config, paths)
  let isOver = false
  const answers = new Set<string>()
  const asking = paths.flatMap((path) =>
    [1, 2].map(async () => {
      while (!isOver) {
        const response = await fetch(`${api.url}/data/${path}`)
        const answer = `${response.status} ${await response.text()}`
        const what = answer === expected[path] ? 'whole' : isUnavailable(answer) ? 'unavailable' : `${path}: ${answer}`
        answers.add(what)
      }
    }),
  )
  while (!answers.has('whole')) await nextTurn()
  await cluster.kill(2)
  while (!answers.has('unavailable')) await nextTurn()
  await cluster.start(2)
  isOver = true
  await Promise.all(asking)
  expect([...answers].sort()).toEqual(['unavailable', 'whole'])
}, 300_000)

it('API aborts a long response when a shard is killed, unless it is already complete', async () => {
  // The other shard still has connections to the killed one, and an engine may exit when they are reset.
  const places = await vi.waitFor(() => cluster.start(2).then(readPlaces), { timeout: 60_000 })
  const token = [...places].find(([, shard]) => shard === 2)?.[0]
  const { id } = sharded.registry.tokens.find(({ key }) => key === token) ?? {}
  const market = { until: SITE_NOW - 60_000, points: LONG, stepMs: 300_000 }
  await storeMarket(sharded.database.db, { keys: [Number(token)], ...market })
  const start = new Date(SITE_NOW - LONG * 300_000).toISOString()
  const url = `${api.url}/data/tokens/historic-financial?id=${id}&interval=5m&start=${start}&format=csv`
  const full = await (await fetch(url)).text()
  const response = await new Promise<IncomingMessage>((resolve, reject) => get(url, resolve).on('error', reject))
  expect(response.statusCode).toBe(200)
  await once(response, 'readable')
  await cluster.kill(2)
  // No client receives a partial response as a complete one.
  const read = await text(response).catch((error: { code?: string }) => error.code)
  expect([full, 'ECONNRESET'].includes(String(read)), String(read).slice(-200)).toBe(true)
}, 300_000)
