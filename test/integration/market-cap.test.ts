import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { dailySumRow } from '../../shared/datasets/daily-sum.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import marketCap from '../../workers/jobs/market-cap.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { storeQuotes } from '../support/quotes.ts'

const DAY = 86_400_000
const NOW = Date.parse('2024-05-06T07:08:09Z')
const TODAY = Date.parse('2024-05-06T00:00:00Z')
const FIRST = TODAY - 20 * DAY

interface Quote {
  token: Token
  at: number
  cap: number | null
}

let pipeline: Pipeline
let live: Token[]
let retired: Token
beforeAll(async () => {
  pipeline = await createPipeline({ registry: loadRegistry(), now: NOW })
  live = pipeline.registry.tokens.filter((token) => token.live).slice(0, 12)
  const second = pipeline.registry.tokens.at(-1)
  if (second === undefined || live.includes(second)) throw new Error('the registry is too small')
  retired = second
  await setLive(retired, false)
  await store(market())
})
afterAll(() => pipeline?.close())

const store = (quotes: readonly Quote[]) =>
  storeQuotes(
    pipeline.context.db,
    quotes.map(({ token, at, cap }) => ({ token: token.key, at, market_cap: cap })),
  )

async function setLive(token: Token, is: boolean) {
  const sql = `INSERT INTO tokens SELECT * REPLACE ({is: Bool} AS live, now64(3) AS changed_at) FROM tokens FINAL WHERE key = {key: UInt64}`
  await pipeline.context.db.command({ name: 'set-live', sql, params: { is, key: token.key } })
}

/** Three weeks of quotes, several a day: some days of a token are missing, some start with an unknown cap. */
function market(): Quote[] {
  const quotes: Quote[] = []
  for (const [rank, token] of [...live, retired].entries()) {
    for (let day = 0; day <= 20; day++) {
      if ((rank * 7 + day * 5) % 11 === 0) continue
      for (let hour = 0; hour < 7; hour++) {
        const isUnknown = (rank + day) % 4 === 0 && hour < 3
        const cap = isUnknown ? (hour % 2 ? 0 : null) : 1e10 / (rank + 1) + 0.123456 * (day * 24 + hour) + 1e3 / 7
        quotes.push({ token, at: FIRST + day * DAY + hour * 3_600_000 + rank * 1000, cap })
      }
    }
  }
  // A token with an unknown cap counts on no day.
  return quotes.map((quote) => (quote.token === live[3] ? { ...quote, cap: null } : quote))
}

/** The same sum as a plain computation. */
function sumByDay(quotes: readonly Quote[]) {
  const firsts = new Map<number, Map<number, Quote>>()
  for (const quote of quotes) {
    if (!quote.cap || quote.token === retired) continue
    const day = Math.floor(quote.at / DAY) * DAY
    const ofDay = firsts.get(day) ?? new Map<number, Quote>()
    firsts.set(day, ofDay)
    const existing = ofDay.get(quote.token.key)
    if (existing === undefined || quote.at < existing.at) ofDay.set(quote.token.key, quote)
  }
  return new Map(
    [...firsts].map(([day, ofDay]) => {
      const caps = [...ofDay.values()].map(({ cap }) => cap ?? 0)
      return [new Date(day).toISOString(), { value: caps.reduce((sum, cap) => sum + cap, 0), count: caps.length }]
    }),
  )
}

const compute = async (from = FIRST, to = NOW) => {
  const { context } = pipeline
  return runJob(marketCap, marketCap.connect(context), context, { kind: 'range', from, to, interval: '1d' })
}

const storedDays = () =>
  pipeline.context.db.rows({
    name: 'stored',
    sql: 'SELECT * FROM market_caps FINAL ORDER BY recorded_at',
    schema: dailySumRow,
  })

/** Every row, including replaced ones. */
const everyRow = async () => {
  const sql = 'SELECT * FROM market_caps ORDER BY ALL'
  return JSON.stringify(
    await pipeline.context.db.rows({ name: 'dump', sql, schema: z.record(z.string(), z.unknown()) }),
  )
}

async function expectDays(quotes: readonly Quote[]) {
  const expected = sumByDay(quotes)
  const stored = await storedDays()
  expect(stored.map(({ recorded_at }) => recorded_at)).toEqual([...expected.keys()].sort())
  for (const { recorded_at, value_usd, member_count } of stored) {
    const { value, count } = expected.get(recorded_at) ?? { value: 0, count: 0 }
    expect(Math.abs(value_usd / value - 1)).toBeLessThan(1e-9)
    expect(member_count).toBe(count)
  }
}

describe('market cap of all tokens', () => {
  it("is the sum of each live token's first known market cap of the day", async () => {
    expect(await compute()).toEqual({ rows: 21, rejected: 0, uncovered: 0, providers: ['stored-series'] })
    await expectDays(market())
    const counts = (await storedDays()).map(({ member_count }) => member_count)
    expect(new Set(counts).size).toBeGreaterThan(1)
    expect(Math.max(...counts)).toBeLessThan(12)
  })

  it('does not change when it is computed again, completely or in parts', async () => {
    const before = await everyRow()
    expect(await compute()).toMatchObject({ rows: 0 })
    for (let day = FIRST; day < NOW; day += DAY) expect(await compute(day + 5, day + 6)).toMatchObject({ rows: 0 })
    await store(market())
    expect(await compute()).toMatchObject({ rows: 0 })
    expect(await everyRow()).toBe(before)
  })

  it('changes only on the day of a correction', async () => {
    const before = await storedDays()
    const quotes = market()
    const corrected = quotes.find(({ token, cap, at }) => token === live[1] && cap && at > FIRST + 8 * DAY)
    if (corrected?.cap == null) throw new Error('no such quote')
    const cap = corrected.cap * 2
    await store([{ ...corrected, cap }])
    expect(await compute()).toMatchObject({ rows: 1 })
    await expectDays(quotes.map((quote) => (quote === corrected ? { ...quote, cap } : quote)))
    const day = new Date(Math.floor(corrected.at / DAY) * DAY).toISOString()
    const rest = (rows: typeof before) => rows.filter(({ recorded_at }) => recorded_at !== day)
    expect(rest(await storedDays())).toEqual(rest(before))
    await store([corrected])
    expect(await compute()).toMatchObject({ rows: 1 })
  })

  it('retracts a day that loses its last member, and restores it', async () => {
    const at = FIRST - 3 * DAY + 5
    await store([{ token: retired, at, cap: 7.25 }])
    expect(await compute(at, at + 1)).toMatchObject({ rows: 0 })
    await setLive(retired, true)
    expect(await compute(at, at + 1)).toMatchObject({ rows: 1 })
    expect((await storedDays())[0]).toMatchObject({ recorded_at: '2024-04-13T00:00:00.000Z', value_usd: 7.25 })
    await setLive(retired, false)
    expect(await compute(at, at + 1)).toMatchObject({ rows: 1 })
    expect(await compute(at, at + 1)).toMatchObject({ rows: 0 })
    await expectDays(market())
    await setLive(retired, true)
    expect(await compute(at, at + 1)).toMatchObject({ rows: 1 })
    expect((await storedDays())[0]).toMatchObject({ value_usd: 7.25, withdrawn: 0 })
    await setLive(retired, false)
    await compute(at, at + 1)
  })

  it('keeps the later computation, in any order of inserts', async () => {
    const before = await storedDays()
    const stale = before.slice(0, 1).map((row) => ({ ...row, value_usd: 1, computed_at: '2024-01-01T00:00:00.000Z' }))
    await pipeline.context.db.insert({ table: 'market_caps', rows: stale })
    expect(await storedDays()).toEqual(before)
  })

  it('counts a token up to its end, and its successor from then on', async () => {
    const [ribbon, aevo] = ['RBN', 'AEVO'].map((symbol) =>
      pipeline.registry.tokens.find((one) => one.symbol === symbol),
    )
    if (ribbon?.until === undefined || aevo === undefined) throw new Error('no such tokens')
    expect(ribbon).toMatchObject({ live: false, ended: { successor: aevo.id } })
    const end = ribbon.until
    const days = [end - 2 * DAY, end - DAY, end, end + DAY]
    await store(
      days.flatMap((at) => [ribbon, aevo].map((token, n) => ({ token, at: at + 1000, cap: n === 0 ? 5 : 7 }))),
    )
    expect(await compute(end - 2 * DAY, end + 2 * DAY)).toMatchObject({ rows: 4 })
    const sums = (await storedDays()).filter(({ recorded_at }) => Date.parse(recorded_at) < end + 2 * DAY)
    expect(sums.map(({ value_usd, member_count }) => [value_usd, member_count])).toEqual([
      [5, 1],
      [5, 1],
      [7, 1],
      [7, 1],
    ])
  })

  it('is computed in a slot for its day and the day before', async () => {
    const { context } = pipeline
    await pipeline.context.db.command({ name: 'truncate', sql: 'TRUNCATE TABLE market_caps' })
    const report = await runJob(marketCap, marketCap.connect(context), context, { kind: 'slot', slot: TODAY })
    expect(report).toEqual({ rows: 2, rejected: 0, uncovered: 0, providers: ['stored-series'] })
    const days = (await storedDays()).map(({ recorded_at }) => recorded_at)
    expect(days).toEqual(['2024-05-05T00:00:00.000Z', '2024-05-06T00:00:00.000Z'])
  })
})
