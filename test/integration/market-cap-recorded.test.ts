import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { type ChangeFeed, createChangeFeed, createDatabase, type Database } from '../../shared/store/store.ts'
import { planBackfill } from '../../workers/backfill/plan.ts'
import { defineJob } from '../../workers/job/define-job.ts'
import marketCap from '../../workers/jobs/market-cap.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner, runJob } from '../../workers/run/runner.ts'
import { startApi, type TestApi } from '../support/api.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { toQuote } from '../support/quotes.ts'
import { runChunks } from '../support/run-chunks.ts'
import { silent } from '../support/silent.ts'
import { untilIdle } from '../support/until-idle.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const folder = join(dataDir, 'coingecko-market_chart-2022-defi_etf')
const present = existsSync(folder)
if (!present) console.log(`recorded market caps: skipped, there is no ${folder}`)

const FROM = '2022-02-01'
const TO = '2022-12-01'
const DAY = 86_400_000
const PATH = '/data/aggregated/market-cap?limit=10000'

const chart = z.object({ market_caps: z.array(z.tuple([z.number(), z.number()])) })
const points = z.array(
  z.object({
    recordedAt: z.string(),
    marketCapUsd: z.object({ value: z.number(), metadata: z.object({ tokensIncluded: z.number() }) }),
  }),
)

/** The first market cap of each recorded coin per day of the range, by the start of the day. */
function readMarketCaps(): Map<string, Map<string, number>> {
  const days = new Map<string, Map<string, number>>()
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.json') && name !== 'assets.json')) {
    const body = chart.parse(JSON.parse(readFileSync(join(folder, file), 'utf8')))
    for (const [ms, cap] of body.market_caps) {
      if (ms < Date.parse(FROM) || ms >= Date.parse(TO)) continue
      const day = new Date(Math.floor(ms / DAY) * DAY).toISOString()
      const ofDay = days.get(day) ?? new Map<string, number>()
      days.set(day, ofDay)
      const coin = file.replace('.json', '')
      if (!ofDay.has(coin)) ofDay.set(coin, cap)
    }
  }
  return days
}

describe.skipIf(!present)('back-fill of ten months of recorded market caps', () => {
  let pipeline: Pipeline
  let runners: Worker[]
  let db: Database
  let subscriber: Redis
  let feed: ChangeFeed
  let api: TestApi
  let close: () => Promise<void>
  const caps = present ? readMarketCaps() : new Map<string, Map<string, number>>()

  beforeAll(async () => {
    pipeline = await createPipeline({ registry: loadRegistry(), dataDir, now: Date.parse('2022-12-02T00:00:00Z') })
    const { config, registry, clock, context } = pipeline
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 401 })
    runners = [createRunner(prices, context, 'history'), createRunner(marketCap, context, 'history')]
    subscriber = createRedis(config.redis.url, silent, 'subscriber')
    db = createDatabase(config.clickhouse, 'read')
    feed = createChangeFeed(subscriber, { prefix: config.redis.prefix, db, log: silent })
    await vi.waitFor(() => expect(feed.version('market-cap')).toBeDefined(), { timeout: 60_000 })
    api = await startApi({ config, db, registry, changeFeed: feed, now: () => clock.now })
    close = async () => {
      await api.close()
      feed.close()
      await db.close()
      await Promise.all(runners.map((runner) => runner.close()))
      await pipeline.close()
    }
  })
  afterAll(() => close?.())

  const tokens = () => {
    const coins = new Set([...caps.values()].flatMap((ofDay) => [...ofDay.keys()]))
    return pipeline.registry.tokens.filter(({ coingeckoId }) => coins.has(coingeckoId ?? ''))
  }
  const backfill = async (again: boolean) => {
    const only = tokens().map(({ symbol }) => symbol)
    const request = { dataset: 'prices', from: FROM, to: TO, interval: '1d', only: only.join(',') }
    const { chunks } = planBackfill(request, pipeline.registry, pipeline.clock.now)
    const { redis, blocking } = pipeline.context
    const options = { redis, blocking, prefix: pipeline.config.redis.prefix, again, onStep: () => {} }
    const outcome = await runChunks(pipeline.queue('prices', 'history'), chunks, options)
    expect([...outcome.failures]).toEqual([])
    await computed()
    return outcome.rows
  }
  const computed = () => untilIdle(runners[1] as Worker, pipeline.queue('market-cap', 'history'))
  const sendRequest = (path: string) => fetch(api.url + path)
  const tagOf = async (path: string) => (await sendRequest(path)).headers.get('etag')
  const series = async () => points.parse(await (await sendRequest(PATH)).json())

  /** A token's day with another market cap, as a provider may send it later. */
  async function correct(token: Token, at: number, market_cap: number) {
    const correction = defineJob({
      name: prices.name,
      cadence: prices.cadence,
      dataset: tokenPrices,
      ...(prices.history === undefined ? {} : { history: prices.history }),
      providers: [{ name: 'corrected', cost: 'free', covers: () => true, connect: () => undefined }],
      entities: () => [token],
      // All values are known: a quote with fewer known values would not replace the other one.
      run: async () => [toQuote({ token: token.key, at, market_cap, volume_24h: 1 })],
    })
    const { context } = pipeline
    const range = { kind: 'range', from: at, to: at + 1, interval: '1d', again: true }
    const receipt = new Promise<void>((resolve) =>
      feed.follow((change) => change?.dataset === 'market-cap' && resolve()),
    )
    await runJob(correction, correction.connect(context), context, range)
    await receipt
    await computed()
  }

  function expectSums(served: z.infer<typeof points>) {
    expect(served.map(({ recordedAt }) => recordedAt)).toEqual([...caps.keys()].sort())
    for (const { recordedAt, marketCapUsd } of served) {
      const ofDay = [...(caps.get(recordedAt)?.values() ?? [])]
      const sum = ofDay.reduce((total, cap) => total + cap, 0)
      expect(Math.abs(marketCapUsd.value / sum - 1)).toBeLessThan(1e-9)
      expect(marketCapUsd.metadata.tokensIncluded).toBe(ofDay.length)
    }
  }

  it('stores the sums of the recordings', async () => {
    expect(tokens()).toHaveLength(10)
    expect(caps.size).toBe(303)
    expect(await backfill(false)).toBe(3030)
    expectSums(await series())
  })

  it('changes nothing when it runs again', async () => {
    const [tag, version, input] = [await tagOf(PATH), feed.version('market-cap'), feed.version('prices')]
    expect(await backfill(true)).toBe(3030)
    // Its response arrives after every earlier change event.
    await subscriber.ping()
    expect(feed.version('prices')).not.toBe(input)
    expect(feed.version('market-cap')).toBe(version)
    expect(await tagOf(PATH)).toBe(tag)
  })

  it('changes only the day of a late correction', async () => {
    const day = '2022-06-15T00:00:00.000Z'
    const rest = [
      '/data/tokens',
      '/data/categories',
      `/data/tokens/historic-financial?name=aave&interval=1d&start=${FROM}`,
    ]
    const tags = () => Promise.all(rest.map(tagOf))
    const [before, tag, tagsBefore] = [await series(), await tagOf(PATH), await tags()]
    const maker = tokens().find(({ coingeckoId }) => coingeckoId === 'maker') as Token
    const ofDay = caps.get(day)
    ofDay?.set('maker', (ofDay.get('maker') ?? 0) * 1.5)
    await correct(maker, Date.parse(day), ofDay?.get('maker') ?? 0)
    const after = await series()
    expectSums(after)
    const changed = after.filter((point, index) => JSON.stringify(point) !== JSON.stringify(before[index]))
    expect(changed.map(({ recordedAt }) => recordedAt)).toEqual([day])
    expect(await tagOf(PATH)).not.toBe(tag)
    expect(await tags()).toEqual(tagsBefore)
  })

  it('includes a late market cap on its day only', async () => {
    const day = '2022-07-01T00:00:00.000Z'
    const late = pipeline.registry.tokens.find((token) => token.live && !tokens().includes(token)) as Token
    await correct(late, Date.parse(day) + 3_600_000, 12_345.5)
    caps.get(day)?.set('late', 12_345.5)
    expectSums(await series())
  })
})
