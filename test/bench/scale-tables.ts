import { z } from 'zod'
import type { Database } from '../../shared/store/store.ts'
import type { OwnClickHouse } from '../support/own-clickhouse.ts'
import type { BenchContext } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase } from './engine.ts'

const START = Date.parse('2022-02-01T00:00:00Z')
const STEP = 300_000
const DAY_POINTS = 288
const YEAR_POINTS = 365 * DAY_POINTS
/** Limit on the points of a token: two years and four months. A larger table has more tokens, as in reality. */
const MOST_POINTS = 250_000
/** Rows per statement: enough for large parts, few enough to report progress. */
const ROWS_PER_STATEMENT = 5_000_000

export interface Range {
  readonly start: number
  readonly end: number
}

/** A generated table with `history` points of each token. The first token is the registry's. */
export interface Table {
  readonly name: string
  readonly points: number
  readonly history: number
  readonly database: BenchDatabase
}

/** The first time after the history. */
export const toEnd = ({ history }: Table): number => START + history * STEP

/** A day and a year in the middle of the history, and the complete history. */
export function toRanges(table: Table): { day: Range; year: Range; all: Range } {
  const middle = (points: number) => {
    const first = Math.floor((table.history - points) / 2 / DAY_POINTS) * DAY_POINTS
    return { start: START + first * STEP, end: START + (first + points) * STEP }
  }
  const year = Math.min(YEAR_POINTS, table.history)
  return { day: middle(DAY_POINTS), year: middle(year), all: { start: START, end: toEnd(table) } }
}

/** The requested token. */
export const toToken = ({ database }: Table) => database.registry.tokens.find(({ live }) => live)

/** Prices with all digits that move like a market; market cap = price times supply, as from providers. */
const FILL = `
INSERT INTO token_quotes_in (token, observed_at, is_latest, price, volume_24h, market_cap, total_supply, circulating_supply)
SELECT token, fromUnixTimestamp64Milli({start: Int64} + n * {step: Int64}, 'UTC'), false, price,
  price * supply * (0.05 + 0.02 * sin(n / 300) + 0.001 * noise), price * supply, 1.3e9, supply
FROM
(
  SELECT arrayElement({tokens: Array(UInt64)}, intDiv(number, {points: UInt64}) + 1) AS token,
    toInt64(number % {points: UInt64}) AS n,
    (cityHash64(number, token) % 1000003) / 1000003 AS noise,
    floor(7.6e8 + intDiv(n, 288) * 12345) AS supply,
    (1 + token % 97) * exp(0.4 * sin(n / 31000) + 0.1 * sin(n / 2100) + 0.02 * sin(n / 170) + 0.002 * noise) AS price
  FROM numbers({points: UInt64} * length({tokens: Array(UInt64)}))
)`

/** Creates a table of each size, the smallest first, and runs `work` while all exist. */
export function withTables<T>(
  engine: OwnClickHouse,
  context: BenchContext,
  sizes: readonly number[],
  work: (tables: readonly Table[]) => Promise<T>,
): Promise<T> {
  const history = Math.min(MOST_POINTS, Math.floor(Math.min(...sizes) / 4))
  const make = ([points, ...rest]: readonly number[], created: readonly Table[]): Promise<T> => {
    if (points === undefined) return work(created)
    return withDatabase(engine, `points_${Math.round(points)}`, async (database) => {
      const table = { name: toSizeName(points), points, history, database }
      await fill(table, context)
      return make(rest, [...created, table])
    })
  }
  return make(
    [...sizes].sort((a, b) => a - b),
    [],
  )
}

const toSizeName = (points: number) => (points >= 1e6 ? `${points / 1e6} M points` : `${points / 1e3} k points`)

/** Keys spread over 52 bits, like those of tokens. */
function toKeys(table: Table): number[] {
  const restOfAll = Math.round(table.points / table.history) - 1
  return [toToken(table)?.key ?? 0, ...Array.from({ length: restOfAll }, (_, at) => (at + 1) * 11_111_111_113)]
}

async function fill(table: Table, { say }: BenchContext): Promise<void> {
  const prices = { keys: toKeys(table), start: START, points: table.history }
  await storePrices(table.database.db, prices, (line) => say(`${table.name}: ${line}`))
}

/** Stores and merges `points` generated 5-minute prices of each token, the first at `start`. */
export async function storePrices(
  db: Database,
  { keys, start, points }: { readonly keys: readonly number[]; readonly start: number; readonly points: number },
  say: (line: string) => void,
): Promise<void> {
  const startedAt = performance.now()
  const tokensPerStatement = Math.max(1, Math.floor(ROWS_PER_STATEMENT / points))
  for (let at = 0; at < keys.length; at += tokensPerStatement) {
    const params = { tokens: keys.slice(at, at + tokensPerStatement), points, start, step: STEP }
    await db.command({ name: 'fill', sql: FILL, params, settings: { max_insert_block_size: 1_000_000 } })
    say(`prices of ${Math.min(keys.length, at + tokensPerStatement)} of ${keys.length} tokens are stored`)
  }
  const stored = performance.now()
  const partitions = await db.rows({
    name: 'partitions',
    sql: "SELECT DISTINCT table, partition_id FROM system.parts WHERE database = currentDatabase() AND active AND startsWith(table, 'token_price')",
    schema: z.object({ table: z.string(), partition_id: z.string() }),
  })
  for (const { table, partition_id: id } of partitions) {
    await db.command({ name: 'merge', sql: `OPTIMIZE TABLE ${table} PARTITION ID '${id}' FINAL` })
  }
  const seconds = (ms: number) => `${(ms / 1000).toFixed(0)} s`
  say(`stored in ${seconds(stored - startedAt)}, merged in ${seconds(performance.now() - stored)}`)
}
