import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Worker } from 'bullmq'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Element, toComposition } from '../../shared/registry/index-records.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { planBackfill } from '../../workers/backfill/plan.ts'
import index from '../../workers/jobs/index-points.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { createHandFeed, type HandFeed, startApi, type TestApi } from '../support/api.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { runChunks } from '../support/run-chunks.ts'

const dataDir = resolve(process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data'))
const units = join(dataDir, 'index-dpi-mvi-indexcoop', 'composition_from_rebalances.csv')
const charts = join(dataDir, 'coingecko-market_chart-2022-defi_etf')
const present = existsSync(units) && existsSync(charts)
if (!present) console.log(`index on recorded prices: skipped, there is no ${units} or no ${charts}`)

const FROM = '2022-02-01'
const LAST = '2022-12-01'
const NOW = Date.parse('2022-12-02T00:00:00Z')
const DAY = 86_400_000

const chart = z.object({ prices: z.array(z.tuple([z.number(), z.number()])) })
const answer = z.array(
  z.object({ _id: z.string(), valueUsd: z.number(), composition: z.string(), createdAt: z.string() }),
)

/** The real units of the DeFi Pulse Index after its rebalance of May 2021, for members with recorded prices. */
function readElements(registry: Registry): Element[] {
  const lines = readFileSync(units, 'utf8').trim().split('\n')
  return lines.flatMap((line) => {
    const [name, rebalance, symbol, , quantity = ''] = line.split(',')
    const token = registry.tokens.find((one) => one.symbol === symbol)
    if (name !== 'dpi' || rebalance !== 'rebalance-may' || token === undefined) return []
    return existsSync(join(charts, `${token.coingeckoId}.json`)) ? [{ token, quantity }] : []
  })
}

const readChart = ({ token }: Element) =>
  new Map(chart.parse(JSON.parse(readFileSync(join(charts, `${token.coingeckoId}.json`), 'utf8'))).prices)

describe.skipIf(!present)('index of real units at real prices', () => {
  let pipeline: Pipeline
  let elements: Element[]
  let db: Database
  let api: TestApi
  const changeFeed: HandFeed = createHandFeed()
  const runners: Worker[] = []

  beforeAll(async () => {
    pipeline = await createPipeline({ dataDir, now: NOW })
    elements = readElements(pipeline.registry)
    const launch = Date.parse(FROM)
    const basket = { ...pipeline.registry.index, launch, compositions: [toComposition(launch, elements)] }
    const registry = { ...pipeline.registry, index: basket }
    const context = { ...pipeline.context, registry }
    runners.push(createRunner(prices, context, 'history'), createRunner(index, context, 'history'))
    db = createDatabase(pipeline.config.clickhouse, 'read')
    api = await startApi({ config: pipeline.config, db, registry, changeFeed, now: () => NOW })
  })
  afterAll(async () => {
    await Promise.all(runners.map((runner) => runner.close()))
    await api.close()
    await db.close()
    await pipeline.close()
  })

  async function backfill(dataset: string, interval: string): Promise<void> {
    const only = dataset === 'prices' ? elements.map(({ token }) => token.symbol).join(',') : undefined
    const { chunks } = planBackfill({ dataset, interval, from: FROM, to: undefined, only }, pipeline.registry, NOW)
    const { redis, blocking } = pipeline.context
    const options = { redis, blocking, prefix: pipeline.config.redis.prefix, again: false, onStep: () => {} }
    const outcome = await runChunks(pipeline.queue(dataset, 'history'), chunks, options)
    expect([...outcome.failures]).toEqual([])
    changeFeed.commit('index')
  }
  const read = async () => {
    const response = await fetch(`${api.url}/data/index/historic?period=305`)
    return { points: answer.parse(await response.json()), tag: response.headers.get('etag') }
  }

  it('matches a plain computation from the files, every day from February to December 2022', async () => {
    expect(elements).toHaveLength(9)
    await backfill('prices', '1d')
    await backfill('index', '5m')
    const recorded = elements.map((element) => ({ quantity: Number(element.quantity), prices: readChart(element) }))
    const { points } = await read()
    const days = (Date.parse(LAST) - Date.parse(FROM)) / DAY + 1
    expect(points).toHaveLength(days)
    for (const [n, { createdAt, valueUsd }] of points.entries()) {
      const at = Date.parse(FROM) + n * DAY
      expect(Date.parse(createdAt)).toBe(at)
      const value = recorded.reduce((sum, one) => sum + one.quantity * (one.prices.get(at) ?? Number.NaN), 0)
      expect(Math.abs(valueUsd / value - 1)).toBeLessThan(1e-9)
    }
    const [first, last] = [points[0]?.valueUsd.toFixed(2), points.at(-1)?.valueUsd.toFixed(2)]
    console.log(`real index: ${points.length} days, ${first} USD on ${FROM}, ${last} USD on ${LAST}`)
  })

  it('changes only on the day of a late correction, with its ETag', async () => {
    const before = await read()
    const at = '2022-06-18T00:00:00.000Z'
    const maker = elements.find(({ token }) => token.symbol === 'MKR')
    // A correction has at least the known values of the corrected row.
    const existing = { volume_24h: 1, market_cap: 1, total_supply: 1, circulating_supply: 1 }
    const price = 2 * (maker === undefined ? 0 : (readChart(maker).get(Date.parse(at)) ?? 0))
    const row = { token: maker?.token.key, observed_at: at, is_latest: false, price, ...existing }
    const computed = new Promise<void>((resolve) => {
      runners[1]?.on('completed', (job) => job.returnvalue.rows > 0 && resolve())
    })
    await pipeline.database.db.insert({ table: prices.dataset.table, rows: [row] })
    await pipeline.context.recomputation.enqueue(prices.dataset, [row])
    await computed
    changeFeed.commit('index')
    const after = await read()
    const changed = after.points.filter((point, n) => JSON.stringify(point) !== JSON.stringify(before.points[n]))
    expect(changed.map(({ createdAt }) => createdAt)).toEqual([at])
    const old = before.points.find(({ createdAt }) => createdAt === at)?.valueUsd ?? 0
    expect((changed[0]?.valueUsd ?? 0) - old).toBeCloseTo((price / 2) * Number(maker?.quantity), 9)
    expect(after.tag).not.toBe(before.tag)
  })
})
