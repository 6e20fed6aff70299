import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Worker } from 'bullmq'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { INTERVALS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { planBackfill } from '../../workers/backfill/plan.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { runChunks } from '../support/run-chunks.ts'

const dataDir = resolve(process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data'))
const folder = join(dataDir, 'prices-5m-binance-2024-genetrader')
const candles = join(folder, '5m')
const present = existsSync(candles) && statSync(candles).isDirectory()
if (!present) console.log(`real candles: skipped, there is no ${candles}`)

const SYMBOLS = ['UNI', 'AAVE', 'MKR', 'CRV', 'LDO', 'ENS', '1INCH', 'DYDX']
const FROM = '2024-01-01'
const TO = '2024-09-07'

/** Opening prices of the file, unchanged, by open time, within the range. */
function readOpens(symbol: string, interval: '5m' | '1h' | '1d'): Map<number, number> {
  const file = readdirSync(join(folder, interval)).find((name) => name.startsWith(`${symbol}_`))
  const lines = gunzipSync(readFileSync(join(folder, interval, file ?? '')))
    .toString()
    .trim()
    .split('\n')
    .slice(1)
  const rows = lines.map((line) => line.split(',')).map(([at = '', open]) => [Date.parse(at), Number(open)] as const)
  return new Map(rows.filter(([at]) => at < Date.parse(TO)))
}

const seriesShape = z.object({
  data: z.array(
    z.object({
      timestamp: z.string(),
      quote: z.object({ USD: z.object({ price: z.number(), timestamp: z.string() }) }),
    }),
  ),
})

describe.skipIf(!present)('back-fill of eight months of real 5-minute candles through the queue', () => {
  let pipeline: Pipeline
  let runner: Worker
  let db: Database
  let api: TestApi
  const opens = new Map<string, Map<number, number>>()

  /** The token on Ethereum: from a later day on, DYDX is also the symbol of the dYdX Chain's token. */
  const tokenOf = (symbol: string) =>
    pipeline.registry.tokens.find((token) => token.symbol === symbol && token.chain === 'ethereum')

  beforeAll(async () => {
    pipeline = await createPipeline({ registry: loadRegistry(), dataDir, now: Date.parse('2024-09-08T00:00:00Z') })
    runner = createRunner(prices, pipeline.context, 'history')
    db = createDatabase(pipeline.config.clickhouse, 'read')
    api = await startApi({
      config: pipeline.config,
      db,
      registry: pipeline.registry,
      changeFeed: createHandFeed(),
      now: () => pipeline.clock.now,
    })
    for (const symbol of SYMBOLS) opens.set(symbol, readOpens(symbol, '5m'))
  })
  afterAll(async () => {
    await runner.close()
    await api.close()
    await db.close()
    await pipeline.close()
  })

  const series = async (symbol: string, interval: Interval) => {
    const token = tokenOf(symbol)
    const query = new URLSearchParams({ id: token?.id ?? '', interval, start: FROM, end: TO })
    const answer = await fetch(`${api.url}/data/tokens/historic-financial?${query}`)
    return seriesShape.parse(await answer.json()).data
  }

  it('stores every candle', async () => {
    const request = {
      dataset: 'prices',
      from: FROM,
      to: TO,
      interval: '5m',
      only: SYMBOLS.map((symbol) => tokenOf(symbol)?.id).join(','),
    }
    const { chunks } = planBackfill(request, pipeline.registry, pipeline.clock.now)
    const { redis, blocking } = pipeline.context
    const began = performance.now()
    const outcome = await runChunks(pipeline.queue('prices', 'history'), chunks, {
      redis,
      blocking,
      prefix: pipeline.config.redis.prefix,
      again: false,
      onStep: () => {},
    })
    const seconds = (performance.now() - began) / 1000
    expect([...outcome.failures]).toEqual([])
    const total = [...opens.values()].reduce((sum, { size }) => sum + size, 0)
    expect(outcome.rows).toBe(total)
    await pipeline.database.db.command({ name: 'merge', sql: 'OPTIMIZE TABLE token_prices FINAL' })
    const [disk] = await pipeline.database.db.rows({
      name: 'bytes',
      sql: `SELECT sum(bytes_on_disk) AS bytes, sumIf(bytes_on_disk, table = 'token_prices') AS raw
            FROM system.parts WHERE database = {database:String} AND active`,
      params: { database: pipeline.config.clickhouse.database },
      schema: z.object({ bytes: z.number(), raw: z.number() }),
    })
    const [raw, all] = [disk?.raw ?? 0, disk?.bytes ?? 0]
    console.log(
      `real candles: ${total} points in ${seconds.toFixed(1)} s (${Math.round(total / seconds)}/s), ` +
        `${raw} bytes raw (${(raw / total).toFixed(2)} a point), ${all} bytes with roll-ups`,
    )
  })

  it.each(SYMBOLS)('serves every opening price of %s exactly', async (symbol) => {
    const served = await series(symbol, '5m')
    expect(new Map(served.map((point) => [Date.parse(point.timestamp), point.quote.USD.price]))).toEqual(
      opens.get(symbol),
    )
  })

  it.each(SYMBOLS)('serves the first 5-minute price of %s in each longer bucket', async (symbol) => {
    for (const interval of INTERVALS.filter((one) => one !== '5m')) {
      const first = new Map<string, { price: number; timestamp: string }>()
      for (const [at, price] of opens.get(symbol) ?? []) {
        const bucket = toBucketStart(at, interval)
        const name = new Date(bucket).toISOString()
        if (bucket >= Date.parse(FROM) && !first.has(name))
          first.set(name, { price, timestamp: new Date(at).toISOString() })
      }
      const served = await series(symbol, interval)
      expect(
        new Map(
          served.map(({ timestamp, quote }) => [timestamp, { price: quote.USD.price, timestamp: quote.USD.timestamp }]),
        ),
      ).toEqual(first)
    }
  })

  it.each(['1h', '1d'] as const)("serves the exchange's opening prices at %s", async (interval) => {
    for (const symbol of SYMBOLS) {
      const served = await series(symbol, interval)
      const recorded = readOpens(symbol, interval)
      expect(new Map(served.map(({ timestamp, quote }) => [Date.parse(timestamp), quote.USD.price]))).toEqual(recorded)
    }
  })
})
