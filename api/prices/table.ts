import { z } from 'zod'
import { RUNS, toYear } from '../../shared/buckets.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import { type Answer, type Representation, toObject } from '../formats/formats.ts'
import { toCoarseHeaders } from '../http/headers.ts'
import type { AppContext } from '../route/define-route.ts'
import { answerSeriesTable } from '../series/table.ts'
import { POINT, priceRow, toTier, VALUES } from './points.ts'

// Lets the sorting key limit the range if a page continues in the middle of a token.
const OF_SEVERAL = (column: string) => `token IN {entities: Array(UInt64)}
  AND ${column} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
  AND (token != {resumed: UInt64} OR ${column} >= fromUnixTimestamp64Milli({resume: Int64}, 'UTC'))`

const FINE_OF_SEVERAL = `
SELECT token, toDateTime64(toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC'), 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}
FROM token_prices FINAL
WHERE ${OF_SEVERAL('observed_at')}
ORDER BY token, observed_at
LIMIT 1 BY token, bucket
LIMIT {limit: UInt64}`

const coarseOfSeveral = ({ table, isOfTier }: ReturnType<typeof toTier>) => `
SELECT token, toDateTime64(bucket_at, 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}
FROM ${table} FINAL
WHERE ${isOfTier} AND ${OF_SEVERAL('bucket_at')}
ORDER BY token, interval_seconds, bucket_at
LIMIT {limit: UInt64}`

const named = (list: string) => `transform(token, {keys: Array(UInt64)}, {${list}: Array(String)}, '')`
const AS_ROW = toObject(priceRow, `${named('ids')}, ${named('names')}, ${named('symbols')}, ${POINT}`)

const toPoints = (interval: Interval) => (interval === '5m' ? FINE_OF_SEVERAL : coarseOfSeveral(toTier(interval)))

/** SQL that counts the points of a table that fulfil `isCounted`, a condition on `p`. */
const countPointsSql = (interval: Interval, join: string, isCounted: string): string =>
  `SELECT count() AS points FROM (${toPoints(interval)}) AS p ${join} WHERE ${isCounted}`

/**
 * The points of an answer: the first `points` of the tokens in the range; for token `resumed` those from `resume` on.
 */
interface Answered extends TimeRange {
  readonly tokens: readonly number[]
  readonly interval: Interval
  readonly resumed: number
  readonly resume: number
}

const CADENCE = INTERVAL_SECONDS[tokenPrices.cadence]

/** SQL for the runs of buckets, by token, that are stored only at a coarser step than `seconds`. */
const COARSE = `SELECT entity, run.1 AS first, run.2 AS last
FROM
(
  SELECT entity, groupBitmapMergeStateIf(buckets, interval_seconds > {seconds: UInt32}) AS coarser,
    groupBitmapMergeStateIf(buckets, interval_seconds <= {seconds: UInt32}) AS fine,
    arraySort(bitmapToArray(bitmapSubsetInRange(bitmapAndnot(coarser, fine), {first: UInt32}, {end: UInt32}))) AS numbers
  FROM coverage
  WHERE dataset = {dataset: String} AND state = 'stored' AND entity IN {tokens: Array(UInt64)}
    AND year BETWEEN {firstYear: UInt16} AND {lastYear: UInt16}
  GROUP BY entity
)
ARRAY JOIN ${RUNS('numbers')} AS run`

/** SQL for the time of the newest observation of some tokens. */
const NEWEST_PRICE =
  'SELECT toUnixTimestamp64Milli(max(observed_at)) AS newest FROM token_quotes WHERE has({entities: Array(UInt64)}, token)'

const found = z.object({ entity: z.number() })
const counted = z.object({ points: z.int() })

/**
 * Counts the points of an answer with observations coarser than its interval, according to the coverage. If the range
 * contains coarser data, which is rare, the points themselves are read: the first `points` of them.
 */
export async function countCoarse(
  db: Database,
  { tokens, interval, resumed, resume, from, to }: Answered,
  points: Promise<number>,
): Promise<number> {
  const first = Math.floor(from / 1000 / CADENCE)
  // The last bucket may end after the range, with the observation in it.
  const end = Math.ceil(to / 1000 / CADENCE) + INTERVAL_SECONDS[interval] / CADENCE
  const params = {
    dataset: tokenPrices.name,
    tokens,
    seconds: INTERVAL_SECONDS[interval],
    first,
    end,
    firstYear: toYear(first, tokenPrices.cadence),
    lastYear: toYear(end, tokenPrices.cadence),
  }
  const [coarse, limit] = await Promise.all([
    db.rows({
      name: 'coarse-tokens',
      sql: `SELECT entity FROM (${COARSE}) LIMIT 1`,
      params,
      settings: { max_threads: 1 },
      schema: found,
    }),
    points,
  ])
  if (coarse.length === 0 || limit === 0) return 0
  const number = `toUInt32(intDiv(toUnixTimestamp(p.as_of), ${CADENCE}))`
  const join = `ASOF INNER JOIN (${COARSE}) AS c ON p.token = c.entity AND ${number} >= c.first`
  const [row] = await db.rows({
    name: 'coarse-points',
    sql: countPointsSql(interval, join, `${number} <= c.last`),
    params: { ...params, entities: tokens, from, to, resumed, resume, limit },
    schema: counted,
  })
  return row?.points ?? 0
}

/**
 * The points of one or several tokens as a table: ordered by token id, then oldest first. `limit` counts rows of all
 * tokens together.
 */
export async function answerPriceTable(
  call: AppContext & { readonly representation: Representation; readonly entities: readonly Token[] },
  query: Parameters<typeof answerSeriesTable>[2],
): Promise<Answer> {
  const { interval } = query
  const labels = {
    ids: call.entities.map(({ id }) => id),
    names: call.entities.map(({ name }) => name),
    symbols: call.entities.map(({ symbol }) => symbol),
  }
  const source = {
    name: 'historic-financial',
    dataset: tokenPrices,
    order: 'asc',
    sql: `SELECT *, token AS owner, bucket AS row_at, ${AS_ROW} AS record FROM (${toPoints(interval)})`,
    rowHash: `sipHash64(tuple(token, bucket, as_of, ${VALUES}))`,
    identity: JSON.stringify(labels),
    params: { keys: call.entities.map(({ key }) => key), ...labels },
    readUpTo: NEWEST_PRICE,
  } as const
  const { answer, records, range } = await answerSeriesTable(call, source, query)
  const { entities: tokens, ...answered } = range
  const coarse = await countCoarse(call.db, { ...answered, tokens, interval }, Promise.resolve(records))
  return { ...answer, headers: { ...answer.headers, ...toCoarseHeaders(coarse) } }
}
