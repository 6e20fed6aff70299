import type { Worker } from 'bullmq'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toId } from '../../shared/ids.ts'
import { type BasketIndex, toComposition } from '../../shared/registry/index-records.ts'
import { planBackfill } from '../../workers/backfill/plan.ts'
import index from '../../workers/jobs/index-points.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner, runJob } from '../../workers/run/runner.ts'
import { runChunks } from '../support/run-chunks.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const SLOT = 300_000
const NOW = Date.parse('2024-05-06T07:06:09Z')
/** A correction has at least the known values of the corrected row. */
const COMPLETE_QUOTE = { volume_24h: 1, market_cap: 1, total_supply: 1, circulating_supply: 1 }
const HISTORIC = '/data/index/historic'

const answer = z.array(
  z.object({ _id: z.string(), valueUsd: z.number(), composition: z.string(), createdAt: z.string() }),
)
const priced = z.object({ token: z.number(), at: z.number(), price: z.number() })

describe('index computation', () => {
  let pipeline: ServedPipeline
  let basket: BasketIndex
  beforeAll(async () => {
    pipeline = await createServedPipeline({ now: NOW })
    basket = pipeline.registry.index
  })
  afterAll(() => pipeline.close())

  const read = async (period = 1) => {
    const response = await fetch(`${pipeline.url}${HISTORIC}?period=${period}`)
    expect(response.status).toBe(200)
    return { points: answer.parse(await response.json()), headers: response.headers }
  }
  const range = (from: number, to: number) => ({ kind: 'range', from, to, interval: '5m' }) as const
  const compute = async (from: number, to: number, of: BasketIndex = basket) => {
    const context = { ...pipeline.context, registry: { ...pipeline.registry, index: of } }
    const report = await runJob(index, index.connect(context), context, range(from, to))
    pipeline.changeFeed.commit('index')
    return report
  }
  const storePrices = (tokens: readonly number[], at: number, price: number) => {
    const values = { observed_at: new Date(at).toISOString(), is_latest: false, price, ...COMPLETE_QUOTE }
    const rows = tokens.map((token) => ({ token, ...values }))
    return pipeline.database.db.insert({ table: prices.dataset.table, rows })
  }
  const storePrice = (token: number, at: number, price: number) => storePrices([token], at, price)
  /** A plain computation over all stored prices: per slot the first price of each member. */
  const expected = async (of: BasketIndex = basket) => {
    const rows = await pipeline.database.db.rows({
      name: 'all-prices',
      sql: `SELECT token, toUnixTimestamp64Milli(observed_at) AS at, price FROM token_prices FINAL ORDER BY observed_at`,
      schema: priced,
    })
    const slots = new Map<number, Map<number, number>>()
    for (const { token, at, price } of rows) {
      const slot = Math.floor(at / SLOT) * SLOT
      const firsts = slots.get(slot) ?? new Map<number, number>()
      if (!firsts.has(token)) firsts.set(token, price)
      slots.set(slot, firsts)
    }
    const values = new Map<number, number>()
    for (const [slot, firsts] of slots) {
      const elements = of.compositions.findLast(({ validFrom }) => validFrom <= slot)?.elements ?? []
      if (!elements.every(({ token }) => firsts.has(token.key))) continue
      values.set(
        slot,
        elements.reduce((sum, { token, quantity }) => sum + Number(quantity) * (firsts.get(token.key) ?? 0), 0),
      )
    }
    return values
  }
  const expectAsComputed = async (points: z.infer<typeof answer>, of: BasketIndex = basket) => {
    const values = await expected(of)
    expect(points.map(({ createdAt }) => Date.parse(createdAt))).toEqual([...values.keys()])
    for (const { createdAt, valueUsd } of points) {
      const value = values.get(Date.parse(createdAt)) ?? 0
      expect(Math.abs(valueUsd / value - 1)).toBeLessThan(1e-12)
    }
  }

  it('stores a point for each slot with prices, with the active composition', async () => {
    for (let tick = 0; tick < 4; tick += 1) {
      await pipeline.collect(prices)
      await pipeline.collect(index)
      pipeline.clock.now += SLOT
    }
    const { points, headers } = await read()
    expect(points.map(({ createdAt }) => createdAt.slice(11, 16))).toEqual(['07:05', '07:10', '07:15', '07:20'])
    await expectAsComputed(points)
    const [composition] = basket.compositions
    for (const point of points) {
      expect(point.composition).toBe(composition?.id)
      expect(point._id).toBe(toId('index', basket.id, Date.parse(point.createdAt)))
    }
    expect(headers.get('x-series-points')).toBe('4')
    expect(headers.get('x-data-as-of')).toBe('2024-05-06T07:20:00.000Z')
  })

  it('is idempotent over any ranges, and then stores nothing', async () => {
    const before = await read()
    for (const from of [NOW - 40 * SLOT, NOW - SLOT - 1, NOW]) {
      expect(await compute(from, NOW + 4 * SLOT)).toMatchObject({ rows: 0, rejected: 0 })
    }
    const { db } = pipeline.database
    await db.command({ name: 'forget', sql: 'TRUNCATE TABLE index_points' })
    pipeline.changeFeed.commit('index')
    expect((await read()).points).toEqual([])
    expect(await compute(NOW, NOW + 1)).toMatchObject({ rows: 1 })
    expect(await compute(NOW - 300 * SLOT, NOW + 5 * SLOT)).toMatchObject({ rows: 3 })
    const after = await read()
    expect(after.points).toEqual(before.points)
    expect(after.headers.get('etag')).toBe(before.headers.get('etag'))
  })

  it('uses the first price of a slot, however late it is stored', async () => {
    const uni = pipeline.tokenOf('UNI')
    const slot = Date.parse('2024-05-06T07:10:00Z')
    const [before] = (await read()).points.filter(({ createdAt }) => Date.parse(createdAt) === slot)
    await storePrice(uni.key, slot + SLOT - 1, 1e9)
    expect(await compute(slot, slot + SLOT)).toMatchObject({ rows: 0 })
    await storePrice(uni.key, slot, 777)
    expect(await compute(slot - SLOT, slot + 2 * SLOT)).toMatchObject({ rows: 1 })
    const { points } = await read()
    await expectAsComputed(points)
    expect(points.find(({ createdAt }) => Date.parse(createdAt) === slot)?.valueUsd).not.toBe(before?.valueUsd)
  })

  it('stores no point if a member has no price', async () => {
    const slot = Date.parse('2024-05-05T00:00:00Z')
    const [last, ...rest] = basket.compositions[0]?.elements ?? []
    await storePrices(
      rest.map(({ token }) => token.key),
      slot,
      10,
    )
    expect(await compute(slot, slot + SLOT)).toMatchObject({ rows: 0 })
    await storePrice(last?.token.key ?? 0, slot + SLOT, 10)
    expect(await compute(slot, slot + 2 * SLOT)).toMatchObject({ rows: 0 })
    await storePrice(last?.token.key ?? 0, slot + 1, 10)
    expect(await compute(slot, slot + 2 * SLOT)).toMatchObject({ rows: 1 })
    await expectAsComputed((await read(3)).points)
  })

  it('switches to another composition at its time, and retracts points without a value', async () => {
    const [first] = basket.compositions
    const [one, two] = first?.elements ?? []
    if (first === undefined || one === undefined || two === undefined) throw new Error('the registry has no index')
    const validFrom = Date.parse('2024-05-06T07:12:00Z')
    const changed = { ...basket, compositions: [first, toComposition(validFrom, [{ ...one, quantity: '2' }, two])] }
    expect(await compute(NOW - 2 * SLOT, NOW + 5 * SLOT, changed)).toMatchObject({ rows: 2 })
    const { points } = await read(3)
    await expectAsComputed(points, changed)
    const ids = points.map(({ composition }) => composition)
    expect(ids).toEqual([first.id, first.id, first.id, changed.compositions[1]?.id, changed.compositions[1]?.id])

    const unpriced = { token: { ...two.token, key: 1 }, quantity: '1' }
    const lacking = { ...basket, compositions: [first, toComposition(validFrom, [one, unpriced])] }
    expect(await compute(NOW - 2 * SLOT, NOW + 5 * SLOT, lacking)).toMatchObject({ rows: 2 })
    expect((await read(3)).points).toHaveLength(3)
    expect(await compute(NOW - 2 * SLOT, NOW + 5 * SLOT, lacking)).toMatchObject({ rows: 0 })

    expect(await compute(NOW - 2 * SLOT, NOW + 5 * SLOT)).toMatchObject({ rows: 2 })
    await expectAsComputed((await read(3)).points)
  })

  it('starts at the launch', async () => {
    const slot = basket.launch - SLOT
    const members = (basket.compositions[0]?.elements ?? []).map(({ token }) => token.key)
    await storePrices(members, slot, 10)
    await storePrices(members, slot + SLOT, 10)
    expect(await compute(slot - SLOT, slot + 3 * SLOT)).toMatchObject({ rows: 1 })
    expect((await read(1000)).points[0]?.createdAt).toBe('2022-11-29T00:00:00.000Z')
  })

  it('keeps the later computation, in any order of inserts', async () => {
    const slot = Date.parse('2024-05-06T07:15:00Z')
    const { points } = await read()
    const stale = {
      index_key: basket.key,
      created_at: new Date(slot).toISOString(),
      observed_at: new Date(slot).toISOString(),
      value_usd: 1,
      composition: basket.compositions[0]?.id,
      is_retracted: false,
      computed_at: '2024-01-01T00:00:00.000Z',
    }
    await pipeline.database.db.insert({ table: 'index_points', rows: [stale] })
    pipeline.changeFeed.commit('index')
    expect((await read()).points).toEqual(points)
  })
})

describe('index after a back-fill and a late correction', () => {
  let pipeline: ServedPipeline
  const runners: Worker[] = []
  beforeAll(async () => {
    pipeline = await createServedPipeline({ now: NOW })
    const { context } = pipeline
    runners.push(createRunner(prices, context, 'history'), createRunner(index, context, 'history'))
  })
  afterAll(async () => {
    await Promise.all(runners.map((runner) => runner.close()))
    await pipeline.close()
  })

  const backfill = async (dataset: string, interval: string, from: string, to: string, again = false) => {
    const only =
      dataset === 'index'
        ? undefined
        : pipeline.registry.index.compositions[0]?.elements.map(({ token }) => token.symbol).join(',')
    const { chunks } = planBackfill({ dataset, interval, from, to, only }, pipeline.registry, NOW)
    const { redis, blocking } = pipeline.context
    const options = { redis, blocking, prefix: pipeline.config.redis.prefix, again, onStep: () => {} }
    const outcome = await runChunks(pipeline.queue(dataset, 'history'), chunks, options)
    expect([...outcome.failures]).toEqual([])
    pipeline.changeFeed.commit('index')
    return outcome
  }
  const read = async () => {
    const response = await fetch(`${pipeline.url}${HISTORIC}?period=600`)
    return { points: answer.parse(await response.json()), tag: response.headers.get('etag') }
  }

  it('has points at the times that all members have', async () => {
    await backfill('prices', '1d', '2022-12-01', '2024-05-01')
    await backfill('prices', '5m', '2024-05-01', '2024-05-03')
    await backfill('index', '5m', '2022-11-29', '2024-05-03')
    const { points } = await read()
    const fine = points.filter(({ createdAt }) => createdAt >= '2024-05-01')
    expect(fine).toHaveLength(2 * 288)
    const coarse = points.slice(0, -fine.length)
    expect(coarse).toHaveLength((Date.parse('2024-05-01') - Date.parse('2022-12-01')) / 86_400_000)
    expect(coarse.every(({ createdAt }) => createdAt.endsWith('T00:00:00.000Z'))).toBe(true)
    expect((await backfill('index', '5m', '2022-11-29', '2024-05-03', true)).rows).toBe(0)
  })

  it('changes only the points of the day with the corrected price', async () => {
    const before = await read()
    const uni = pipeline.tokenOf('UNI')
    const at = '2024-03-10T00:00:00.000Z'
    const recomputed = new Promise<void>((resolve) => {
      runners[1]?.on('completed', (job) => job.data.kind === 'range' && job.returnvalue.rows > 0 && resolve())
    })
    const row = { token: uni.key, observed_at: at, is_latest: false, price: 1234.5, ...COMPLETE_QUOTE }
    await pipeline.database.db.insert({ table: prices.dataset.table, rows: [row] })
    await pipeline.context.recomputation.enqueue(prices.dataset, [row])
    await recomputed
    pipeline.changeFeed.commit('index')
    const after = await read()
    expect(after.tag).not.toBe(before.tag)
    const changed = after.points.filter((point, n) => point.valueUsd !== before.points[n]?.valueUsd)
    expect(changed.map(({ createdAt }) => createdAt)).toEqual([at])
    expect(after.points.map(({ createdAt }) => createdAt)).toEqual(before.points.map(({ createdAt }) => createdAt))
  })
})

it('GET /data/status names the member without a price that blocks the index', async () => {
  const pipeline = await createServedPipeline({ now: NOW })
  try {
    const noteOf = async () => {
      const { datasets } = (await (await fetch(`${pipeline.url}/data/status`)).json()) as {
        datasets: { dataset: string; note?: string }[]
      }
      return datasets.find(({ dataset }) => dataset === 'index')?.note ?? ''
    }
    await pipeline.collect(prices)
    expect(await noteOf()).toBe('')
    const [dead, ...rest] = pipeline.registry.index.compositions[0]?.elements ?? []
    pipeline.clock.now += 3_600_000
    const values = {
      observed_at: new Date(pipeline.clock.now).toISOString(),
      is_latest: true,
      price: 5,
      ...COMPLETE_QUOTE,
    }
    const rows = rest.map(({ token }) => ({ token: token.key, ...values }))
    await pipeline.database.db.insert({ table: prices.dataset.table, rows })
    expect(await noteOf()).toMatch(`no new value without a price of ${dead?.token.symbol} (last at 2024-05-06T07:0`)
  } finally {
    await pipeline.close()
  }
})
