import { z } from 'zod'
import dexTrades from '../../workers/jobs/dex-trades.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createPipeline, type Pipeline, type PipelineOptions } from './pipeline.ts'

const HOUR = 3_600_000

/** A pipeline that collects trades, with access to the stored rows. */
export async function createDexPipeline(options?: PipelineOptions) {
  const pipeline = await createPipeline(options)
  const collectors = dexTrades.connect(pipeline.context)
  const ids = (symbols?: readonly string[]) =>
    symbols && pipeline.registry.tokens.filter(({ symbol }) => symbols.includes(symbol)).map(({ id }) => id)
  const run = (payload: object) => runJob(dexTrades, collectors, pipeline.context, payload)
  return {
    ...pipeline,
    runSlot: (slot = Math.floor(pipeline.clock.now / HOUR) * HOUR) => run({ kind: 'slot', slot, again: true }),
    runRange: (from: number, to: number, symbols?: readonly string[]) =>
      run({ kind: 'range', from, to, interval: '1h', entities: ids(symbols) }),
  }
}

const storedTrade = z.object({
  token: z.number(),
  traded_at: z.string(),
  block_number: z.number(),
  transaction_hash: z.string(),
  log_index: z.number(),
  pool: z.string(),
  exchange: z.string(),
  taker: z.string(),
  side: z.string(),
  amount: z.number(),
  amount_usd: z.number().nullable(),
  price: z.number().nullable(),
})

export const readTrades = ({ database }: Pipeline) =>
  database.db.rows({
    name: 'trades',
    sql: 'SELECT * EXCEPT collected_at FROM dex_trades FINAL ORDER BY traded_at, log_index, transaction_hash',
    schema: storedTrade,
  })

/** All rows of trades and of the tables derived from them as text, without the times of collection and computation. */
export async function dump({ database }: Pipeline): Promise<string> {
  const tables = ['dex_trades', 'dex_trade_days', 'dex_trade_parties', 'dex_data'].map(
    (table) => `SELECT * EXCEPT (collected_at, computed_at) FROM ${table} FINAL ORDER BY ALL`,
  )
  const schema = z.record(z.string(), z.unknown())
  return JSON.stringify(await Promise.all(tables.map((sql) => database.db.rows({ name: 'dump', sql, schema }))))
}

const aggregates = z.object({
  total_trades: z.number(),
  makers: z.number(),
  takers: z.number(),
  dexs: z.number(),
  inflow_24h: z.number(),
  inflow_max: z.number(),
  outflow_max: z.number(),
  as_of: z.string(),
})

/** The aggregates of a token; without a key, of the only token. */
export async function readAggregates({ database }: Pipeline, token?: number) {
  const sql = `SELECT * FROM dex_data FINAL ${token === undefined ? '' : 'WHERE token = {token:UInt64}'}`
  const [row] = await database.db.rows({ name: 'aggregates', sql, params: { token }, schema: aggregates })
  return row
}
