import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { dexTrades } from '../../shared/datasets/dex-trades.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { treasuryFlows } from '../../shared/datasets/treasury-flows.ts'
import type { Database } from '../../shared/store/store.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { type RebuildOptions, rebuild } from '../../workers/rebuild/rebuild.ts'
import { findRollUps } from '../../workers/rebuild/roll-ups.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'
import { silent } from '../support/silent.ts'

const UNTIL = Date.parse('2024-05-06T07:05:00Z')
const KEYS = Array.from({ length: 25 }, (_, n) => n + 1)

let config: Config
let database: TestDatabase
let db: Database
beforeEach(async () => {
  config = createTestConfig()
  database = await createTestDatabase(config)
  db = database.db
})
afterEach(() => database.drop())

const dump = async (table: string) =>
  JSON.stringify(
    await db.rows({
      name: 'dump',
      sql: `SELECT * EXCEPT computed_at FROM ${table} FINAL ORDER BY ALL`,
      schema: z.record(z.string(), z.unknown()),
    }),
  )

const tables = async () =>
  (
    await db.rows({
      name: 'tables',
      sql: "SELECT name FROM system.tables WHERE database = currentDatabase() AND name LIKE '%rebuild%'",
      schema: z.object({ name: z.string() }),
    })
  ).map(({ name }) => name)

async function rollUpOf(table: string) {
  const all = await findRollUps(db, config.clickhouse.database, [tokenPrices, dexTrades])
  const found = all.find((one) => one.table === table)
  if (found === undefined) throw new Error(`${table} is not among ${all.map((one) => one.table).join(', ')}`)
  return found
}

const run = async (table: string, options: Partial<RebuildOptions> = {}, through = db) =>
  rebuild(through, await rollUpOf(table), {
    log: silent,
    now: Date.now,
    force: false,
    onPlan: () => {},
    onStep: () => {},
    ...options,
  })

const quote = (token: number, at: number, price: number) =>
  db.command({
    name: 'quote',
    sql: `INSERT INTO token_quotes_in (token, observed_at, is_latest, price)
          SELECT {token: UInt64}, fromUnixTimestamp64Milli({at: Int64}), false, {price: Float64}`,
    params: { token, at, price },
  })

/** Prices inserted by tests during a swap or later that readers find. */
async function latePrices(): Promise<number[] | undefined> {
  const [late] = await db.rows({
    name: 'late',
    sql: 'SELECT groupArray(price) AS prices FROM (SELECT price FROM token_price_rollups FINAL WHERE interval_seconds = 3600 AND token IN (7, 8) AND price IN (77, 88) ORDER BY price)',
    schema: z.object({ prices: z.array(z.number()) }),
  })
  return late?.prices
}

/** The database with an insert whose views both find the old table during the swap. */
const withInsertAtSwap = (): Database => ({
  ...db,
  command: async (statement) => {
    if (statement.name !== 'swap') return db.command(statement)
    await db.command({ name: 'detach', sql: 'DETACH TABLE token_price_rollups_rebuild_mv' })
    await quote(7, UNTIL + 7_200_000, 77)
    await db.command({ name: 'attach', sql: 'ATTACH TABLE token_price_rollups_rebuild_mv' })
    await db.command(statement)
  },
})

describe('tables that can be rebuilt', () => {
  it('are the roll-ups and derived tables with stored sources', async () => {
    const all = await findRollUps(db, config.clickhouse.database, [tokenPrices, dexTrades, treasuryFlows])
    const named = all.map(({ table, raw, entity }) => `${table} from ${raw} by ${entity}`)
    expect(named).toEqual(
      expect.arrayContaining([
        'token_price_rollups from token_prices by token',
        'dex_trade_days from dex_trades by token',
        'dex_trade_parties from dex_trades by token',
        'dex_data from dex_trades by token',
        'treasury_flow_days from treasury_flows by dao',
      ]),
    )
    expect(named.filter((name) => /^token_(prices|quotes) /.test(name))).toEqual([])
  })
})

describe('rebuilt table of the newest rows', () => {
  const LATEST = [
    ['protocol_tvl', { tvl_usd: 7 }],
    ['dao_ratings', { rated_at: '2024-05-01T00:00:00Z', overall_rating: 7, source: 'x' }],
    ['twitter_counts', { followers: 7 }],
    ['discord_members', { total_members: 7 }],
    ['twitter_sentiment', { positive_posts: 7, neutral_posts: 1, negative_posts: 0, lexicon: 'x' }],
  ] as const

  it.each(LATEST)('of %s equals a computation from all rows', async (series, values) => {
    const rows = [1, 2, 3].flatMap((dao) =>
      ['03', '05', '04'].map((day) => ({ dao, observed_at: `2024-05-${day}T00:00:00Z`, ...values })),
    )
    for (const row of rows) await db.insert({ table: series, rows: [row] })
    const datasets = jobs.map(({ dataset }) => dataset)
    const all = await findRollUps(db, config.clickhouse.database, datasets)
    const rollUp = all.find(({ table }) => table === `${series}_latest`)
    if (rollUp === undefined)
      throw new Error(`${series}_latest is not among ${all.map(({ table }) => table).join(', ')}`)
    const before = await dump(rollUp.table)
    expect(JSON.parse(before)).toMatchObject([1, 2, 3].map((dao) => ({ dao, observed_at: '2024-05-05T00:00:00.000Z' })))
    await db.command({ name: 'damage', sql: `TRUNCATE TABLE ${rollUp.table}` })
    await rebuild(db, rollUp, { log: silent, now: Date.now, force: false, onPlan: () => {}, onStep: () => {} })
    expect(await dump(rollUp.table)).toBe(before)
  })
})

describe('rebuilt roll-up', () => {
  beforeEach(() => storeMarket(db, { keys: KEYS, until: UNTIL, points: 500, stepMs: 300_000 }))

  it('equals the result of its view', async () => {
    const table = 'token_price_rollups'
    const before = await dump(table)
    await db.command({ name: 'damage', sql: `TRUNCATE TABLE ${table}` })
    await run(table)
    expect(await dump(table)).toBe(before)
    expect(await tables()).toEqual([])
  })

  it('contains rows that arrive during the rebuild and after it', async () => {
    let isOver = false
    const arriving = (async () => {
      for (let n = 0; !isOver; n += 1) await quote(100 + (n % 40), UNTIL + n * 60_000, n + 1)
    })()
    await run('token_price_rollups', { beforeSwap: () => quote(7, UNTIL + 7_200_000, 77) })
    isOver = true
    await arriving
    await quote(8, UNTIL + 7_200_000, 88)
    const cached = await dump('token_price_rollups')
    await run('token_price_rollups')
    expect(await dump('token_price_rollups')).toBe(cached)
    expect(await latePrices()).toEqual([77, 88])
  })

  it('contains an insert whose views both found the old table during the swap', async () => {
    await run('token_price_rollups', {}, withInsertAtSwap())
    const cached = await dump('token_price_rollups')
    expect(await latePrices()).toEqual([77])
    await run('token_price_rollups')
    expect(await dump('token_price_rollups')).toBe(cached)
    expect(await tables()).toEqual([])
  })

  it('contains no old row and loses none if it was interrupted after the swap', async () => {
    const table = 'token_price_rollups'
    await db.command({ name: 'damage', sql: `TRUNCATE TABLE ${table}` })
    await db.command({
      name: 'wrong',
      sql: `INSERT INTO ${table} (token, interval_seconds, bucket_at, rank, price_code) VALUES (1, 86400, '2001-01-01', 8, 1)`,
    })
    const late = withInsertAtSwap()
    const stopped: Database = {
      ...late,
      command: async (statement) => {
        if (statement.name === 'store-arrived') throw new Error('stopped')
        await late.command(statement)
      },
    }
    await expect(run(table, {}, stopped)).rejects.toThrow('stopped')
    // An upgrade runs before the next rebuild.
    await db.command({ name: 'upgrade', sql: `ALTER TABLE ${table} ADD COLUMN added UInt8 DEFAULT 1 AFTER token` })
    await run(table)
    expect([await latePrices(), await tables()]).toEqual([[77], []])
    const cached = await dump(table)
    expect(cached).not.toContain('2001-01-01')
    await run(table)
    expect(await dump(table)).toBe(cached)
  })

  it('is written by one run at a time', async () => {
    const before = await dump('token_price_rollups')
    const [one, two] = await Promise.allSettled([run('token_price_rollups'), run('token_price_rollups')])
    const reasons = [one, two].flatMap((outcome) => (outcome?.status === 'rejected' ? [outcome.reason.message] : []))
    expect(reasons).toEqual(['token_price_rollups is being computed by another run: wait until it has ended'])
    expect([await dump('token_price_rollups'), await tables()]).toEqual([before, []])
  })

  it('counts a row that is not yet in the new table', async () => {
    let isCounted = false
    const late: Database = {
      ...db,
      rows: async (statement) => {
        const rows = await db.rows(statement)
        if (statement.name === 'count-rows' && !isCounted && statement.sql.includes('_rebuild')) {
          isCounted = true
          return statement.schema.array().parse([{ rows: 0 }])
        }
        return rows
      },
    }
    const { before, after } = await run('token_price_rollups', {}, late)
    expect([isCounted, after]).toEqual([true, before])
  })

  it('resumes with the unfinished part after an interruption', async () => {
    const before = await dump('token_price_rollups')
    await db.command({ name: 'damage', sql: 'TRUNCATE TABLE token_price_rollups' })
    const fills: string[] = []
    const counted: Database = {
      ...db,
      command: (statement) => {
        if (statement.name === 'fill-shadow') fills.push(statement.name)
        return db.command(statement)
      },
    }
    const stop = () => {
      throw new Error('stopped')
    }
    await expect(run('token_price_rollups', { onStep: stop }, counted)).rejects.toThrow('stopped')
    await quote(1, UNTIL + 3_600_000, 5)
    let steps = 0
    let parts = 0
    await run('token_price_rollups', { onStep: () => (steps += 1), onPlan: (planned) => (parts = planned) }, counted)
    expect([fills.length, steps, parts]).toEqual([3, 3, 3])
    // The quote starts a bucket of 30 minutes, an hour and four hours; the day and the week started before.
    expect(JSON.parse(await dump('token_price_rollups'))).toHaveLength(JSON.parse(before).length + 3)
  })

  it('is not swapped if it has fewer rows, unless forced', async () => {
    await db.command({
      name: 'more',
      sql: "INSERT INTO token_price_rollups (token, interval_seconds, bucket_at, rank, price_code) VALUES (1, 86400, '2001-01-01', 8, 1)",
    })
    const before = await dump('token_price_rollups')
    await expect(run('token_price_rollups')).rejects.toMatchObject({ code: 'storage' })
    expect(await dump('token_price_rollups')).toBe(before)
    const { before: rows, after } = await run('token_price_rollups', { force: true })
    expect(after).toBe(rows - 1)
  })
})

describe('rebuilt derived table', () => {
  const trade = (token: number, n: number) => ({
    token,
    traded_at: new Date(UNTIL - n * 3_600_000).toISOString().slice(0, 19),
    transaction_hash: `0x${n}`,
    log_index: n,
    chain: 'ethereum',
    block_number: n,
    pool: `0xp${n % 3}`,
    exchange: 'uniswap-v2',
    taker: `0xt${n % 5}`,
    side: n % 2 === 0 ? 'BUY' : 'SELL',
    amount: n + 1,
    amount_usd: n + 0.5,
    price: 2 + n,
  })

  it('equals the old one, with rows derived during the rebuild', async () => {
    const derive = async (entities: number[], slot = '2024-05-06T07:00:00.000') => {
      for (const { name, sql } of dexTrades.derive ?? [])
        await db.command({
          name,
          sql,
          params: toDeriveParams({ entities, read: entities, slot: Date.parse(`${slot}Z`) }),
        })
    }
    const tokens = KEYS.slice(0, 12)
    await db.insert({
      table: 'dex_trades',
      rows: tokens.flatMap((token) => Array.from({ length: 30 }, (_, n) => trade(token, n))),
    })
    await derive(tokens)
    const before = await dump('dex_data')
    // The end of the collection, after the newest trade, is stored only in this table.
    await derive(tokens, '2024-05-06T09:00:00.000')
    const later = await dump('dex_data')
    expect(later).not.toBe(before)
    await run('dex_data')
    expect(await dump('dex_data')).toBe(later)
    await db.command({ name: 'damage', sql: 'TRUNCATE TABLE dex_data' })
    const late = 99
    await run('dex_data', {
      beforeSwap: async () => {
        await db.insert({ table: 'dex_trades', rows: [trade(late, 1)] })
        await derive([late])
      },
    })
    const after = z.array(z.object({ token: z.number() })).parse(JSON.parse(await dump('dex_data')))
    expect(after.map(({ token }) => token)).toEqual([...tokens, late])
    await db.command({ name: 'only-early', sql: 'DELETE FROM dex_data WHERE token = 99' })
    expect(await dump('dex_data')).toBe(before)
  })
})
