import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { type DexTradeRow, dexTrades } from '../../shared/datasets/dex-trades.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'

const HOUR = 3_600_000
const END = Date.parse('2024-06-30T12:00:00Z')

const hex = (value: number, digits: number) => `0x${value.toString(16).padStart(digits, '0')}`

/** The `n`-th trade of a token: one every 7 hours backwards from the end, with sizes whose float sum is inexact. */
function trade(token: number, n: number, more: Partial<DexTradeRow> = {}): DexTradeRow {
  return {
    token,
    traded_at: new Date(END - (n * 7 + 1) * HOUR).toISOString(),
    chain: 'ethereum',
    block_number: 20_000_000 - n,
    transaction_hash: hex(n, 64),
    log_index: n % 3,
    pool: hex(n % 4, 40),
    exchange: n % 4 === 0 ? 'uniswap-v2' : 'uniswap-v3',
    taker: hex(n % 11, 40),
    side: n % 3 === 0 ? 'SELL' : 'BUY',
    amount: 1 + n,
    amount_usd: 0.1 + n / 7,
    price: (0.1 + n / 7) / (1 + n),
    ...more,
  }
}

const dexData = z.object({
  total_trades: z.number(),
  makers: z.number(),
  takers: z.number(),
  dexs: z.number(),
  inflow_24h: z.number(),
  inflow_7d: z.number(),
  inflow_30d: z.number(),
  inflow_max: z.number(),
  outflow_24h: z.number(),
  outflow_7d: z.number(),
  outflow_30d: z.number(),
  outflow_max: z.number(),
  price: z.number().nullable(),
  last_trade_at: z.string(),
  as_of: z.string(),
})

describe('DEX aggregates', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(createTestConfig())
  })
  afterAll(() => database.drop())

  async function store(rows: readonly DexTradeRow[], slot: number, read?: readonly number[]) {
    await database.db.insert({ table: dexTrades.table, rows: rows.map((row) => dexTrades.row.parse(row)) })
    const times = rows.map((row) => Date.parse(row.traded_at))
    const [from, to] = [Math.min(...times), Math.max(...times)]
    await derive([...new Set(rows.map(({ token }) => token))], slot, read, { from, to })
  }
  /** Like a run that stored rows of some tokens and read some up to the slot, by default the same. */
  async function derive(entities: readonly number[], slot: number, read = entities, times = {}) {
    for (const { name, sql } of dexTrades.derive ?? []) {
      const params = toDeriveParams({ entities, read, slot, ...times })
      await database.db.command({ name, sql, params })
    }
  }
  const read = async (token: number) => {
    const [row] = await database.db.rows({
      name: 'dex-data',
      sql: 'SELECT * FROM dex_data FINAL WHERE token = {token:UInt64}',
      params: { token },
      schema: dexData,
    })
    return row
  }
  const sum = (rows: readonly DexTradeRow[], side: string, hours: number) =>
    rows
      .filter((row) => row.side === side && END - Date.parse(row.traded_at) < hours * HOUR)
      .reduce((total, { amount_usd }) => total + (amount_usd ?? 0), 0)

  it('match a plain computation over the same trades', async () => {
    const rows = Array.from({ length: 200 }, (_, n) => trade(1, n))
    await store(rows, END)
    const stored = await read(1)
    expect(stored).toMatchObject({
      total_trades: 200,
      makers: 4,
      takers: 11,
      dexs: 2,
      as_of: '2024-06-30T12:00:00.000Z',
    })
    expect(stored).toMatchObject({ last_trade_at: '2024-06-30T11:00:00.000Z', price: 0.1 })
    expect(stored?.inflow_24h).toBeCloseTo(sum(rows, 'BUY', 24), 9)
    expect(stored?.inflow_7d).toBeCloseTo(sum(rows, 'BUY', 168), 9)
    expect(stored?.inflow_30d).toBeCloseTo(sum(rows, 'BUY', 720), 9)
    expect(stored?.inflow_max).toBeCloseTo(sum(rows, 'BUY', Number.POSITIVE_INFINITY), 9)
    expect(stored?.outflow_24h).toBeCloseTo(sum(rows, 'SELL', 24), 9)
    expect(stored?.outflow_7d).toBeCloseTo(sum(rows, 'SELL', 168), 9)
    expect(stored?.outflow_30d).toBeCloseTo(sum(rows, 'SELL', 720), 9)
    expect(stored?.outflow_max).toBeCloseTo(sum(rows, 'SELL', Number.POSITIVE_INFINITY), 9)
  })

  it('keep the later time and all trades when a slot and a back-fill overlap', async () => {
    const run = async (name: string, slot: number) => {
      const params = toDeriveParams({ entities: [31], read: [31], slot })
      const sql = dexTrades.derive?.find((one) => one.name === name)?.sql ?? ''
      await database.db.command({ name, sql, params })
    }
    // A merge would take the row of the slot away before the two runs have computed.
    await database.db.command({ name: 'stop', sql: 'SYSTEM STOP MERGES dex_data' })
    await store([trade(31, 4)], END - 3 * HOUR)
    // The slot computes without the back-fill's trade, and the back-fill without the slot's time.
    const known = 'SELECT * FROM dex_data FINAL WHERE token = 31'
    await database.db.command({
      name: 'slot',
      sql: `INSERT INTO dex_data SELECT * REPLACE (toDateTime64('2024-06-30 12:00:00', 3, 'UTC') AS as_of) FROM (${known})`,
    })
    const backfilled = trade(31, 9)
    await database.db.insert({ table: dexTrades.table, rows: [backfilled] })
    await run('dex-trade-days', END - 3 * HOUR)
    await database.db.command({
      name: 'back-fill',
      sql: `INSERT INTO dex_data SELECT * REPLACE (2 AS total_trades, toDateTime64('2024-06-30 09:00:00', 3, 'UTC') AS as_of) FROM (${known})`,
    })
    expect(await read(31)).toMatchObject({ total_trades: 2, as_of: '2024-06-30T09:00:00.000Z' })
    await run('dex-data-of-two-runs', END - 3 * HOUR)
    expect(await read(31)).toMatchObject({ total_trades: 2, as_of: '2024-06-30T12:00:00.000Z' })
    await database.db.command({ name: 'start', sql: 'SYSTEM START MERGES dex_data' })
  })

  it('include the trades that a killed run inserted and did not sum', async () => {
    const at = (hours: number) => new Date(END - hours * HOUR).toISOString()
    // The killed run read two days back from its slot; the next run's slot, and with it the begin of its reading, is later.
    const unsummed = [trade(21, 1, { traded_at: at(49) }), trade(21, 2, { traded_at: at(30) })]
    await database.db.insert({ table: dexTrades.table, rows: unsummed })
    await store([trade(21, 3, { traded_at: at(1) })], END)
    expect(await read(21)).toMatchObject({ total_trades: 3 })
    const quiet = [trade(22, 1, { traded_at: at(30) })]
    await database.db.insert({ table: dexTrades.table, rows: quiet })
    await derive([], END, [22])
    expect(
      await database.db.rows({
        name: 'days',
        sql: 'SELECT toString(day) AS day, trades FROM dex_trade_days FINAL WHERE token = 22',
        schema: z.object({ day: z.string(), trades: z.number() }),
      }),
    ).toEqual([{ day: '2024-06-29', trades: 1 }])
  })

  it('count a trade that is later than the start of a window, also in the middle of a day', async () => {
    const at = (days: number, ms: number) => new Date(END - days * 24 * HOUR + ms).toISOString()
    const rows = [1, 7, 30].flatMap((days, n) => [
      trade(9, 10 * n, { traded_at: at(days, 1), side: 'BUY', amount_usd: 1 }),
      trade(9, 10 * n + 1, { traded_at: at(days, 0), side: 'BUY', amount_usd: 100 }),
      trade(9, 10 * n + 2, { traded_at: at(days, -1), side: 'SELL', amount_usd: 10_000 }),
    ])
    await store(rows, END)
    const flows = { inflow_24h: 1, inflow_7d: 102, inflow_30d: 203, inflow_max: 303 }
    expect(await read(9)).toMatchObject({ ...flows, outflow_24h: 0, outflow_7d: 10_000, outflow_30d: 20_000 })
    // One millisecond later the three trades at the start are outside.
    await store([trade(9, 99, { traded_at: at(0, 1), side: 'BUY', amount_usd: 0 })], END, [])
    expect(await read(9)).toMatchObject({ inflow_24h: 0, inflow_7d: 101, inflow_30d: 202, inflow_max: 303 })
  })

  it('do not change when trades are stored again, in any order, in batches, concurrently or with old slots', async () => {
    const rows = Array.from({ length: 200 }, (_, n) => trade(1, n))
    const before = await read(1)
    await store(rows.slice().reverse(), END)
    await Promise.all([store(rows.slice(0, 90), END - 900 * HOUR), store(rows.slice(60, 150), END - 50 * HOUR)])
    for (let at = 0; at < rows.length; at += 37) await store(rows.slice(at, at + 37), 0)
    await database.db.command({ name: 'merge', sql: 'OPTIMIZE TABLE dex_trades FINAL' })
    await derive([1], END)
    expect(await read(1)).toEqual(before)
  })

  it('are the same for any order of inserts', async () => {
    const rows = Array.from({ length: 200 }, (_, n) => trade(2, n))
    for (let at = 0; at < rows.length; at += 23) await store(rows.slice(at, at + 23).reverse(), END - at * HOUR)
    expect(await read(2)).toEqual(await read(1))
  })

  it('keep their windows when older history is stored', async () => {
    const before = await read(1)
    await store([trade(1, 5_000, { side: 'BUY', amount_usd: 7 })], END - 40_000 * HOUR)
    const after = await read(1)
    expect(after).toMatchObject({ as_of: before?.as_of, inflow_30d: before?.inflow_30d, price: before?.price })
    expect(after?.total_trades).toBe(201)
    expect(after?.inflow_max).toBeCloseTo((before?.inflow_max ?? 0) + 7, 9)
  })

  it('become zero for a token without new trades', async () => {
    await store([trade(3, 0, { side: 'BUY', amount_usd: 5 })], END)
    expect(await read(3)).toMatchObject({ inflow_24h: 5, inflow_7d: 5, inflow_30d: 5, inflow_max: 5 })
    const later = END + 25 * HOUR
    await store([trade(4, 0, { traded_at: new Date(later - HOUR).toISOString() })], later, [3, 4])
    expect(await read(3)).toMatchObject({ inflow_24h: 0, inflow_7d: 5, as_of: '2024-07-01T13:00:00.000Z' })
    await derive([], END + 31 * 24 * HOUR, [3, 4])
    expect(await read(3)).toMatchObject({ inflow_7d: 0, inflow_30d: 0, inflow_max: 5, total_trades: 1 })
    await derive([], END + 32 * 24 * HOUR, [3, 4])
    expect(await read(3)).toMatchObject({ as_of: '2024-07-31T12:00:00.000Z' })
  })

  it('do not change for a token that was not read', async () => {
    await store([trade(7, 0, { side: 'BUY', amount_usd: 5 })], END)
    const before = await read(7)
    await derive([4], END + 31 * 24 * HOUR)
    expect(await read(7)).toEqual(before)
    await derive([], END + 31 * 24 * HOUR, [7])
    expect(await read(7)).toMatchObject({ inflow_30d: 0, inflow_max: 5 })
  })

  it('end at the newest trade if the token was not read to the slot', async () => {
    await store([trade(8, 0), trade(8, 40)], END, [])
    expect(await read(8)).toMatchObject({ total_trades: 2, as_of: '2024-06-30T11:00:00.000Z' })
  })

  it('have the price of the latest trade, or null if that trade has none', async () => {
    await store([trade(5, 3), trade(5, 0, { amount_usd: null, price: null })], END)
    expect(await read(5)).toMatchObject({ total_trades: 2, price: null })
    const sameBlock = { traded_at: trade(5, 0).traded_at, block_number: trade(5, 0).block_number }
    await store([trade(5, 9, { ...sameBlock, log_index: 900, price: 4 })], END)
    await store([trade(5, 10, { ...sameBlock, log_index: 899, price: 3 })], END)
    expect(await read(5)).toMatchObject({ total_trades: 4, price: 4 })
  })

  it('ignore a late computation from fewer trades', async () => {
    const before = await read(1)
    const stale = { ...before, token: 1, total_trades: 150, as_of: '2030-01-01T00:00:00.000Z' }
    await database.db.insert({ table: 'dex_data', rows: [stale] })
    expect(await read(1)).toEqual(before)
  })

  it('apply a correction of a trade', async () => {
    await store([trade(6, 1), trade(6, 2)], END)
    await store([trade(6, 1, { amount_usd: 100 })], END)
    const corrected = await read(6)
    expect(corrected?.total_trades).toBe(2)
    expect(corrected?.inflow_24h).toBeCloseTo(100 + 0.1 + 2 / 7, 9)
  })
})
