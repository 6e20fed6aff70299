import { z } from 'zod'
import { toYear } from '../../shared/coverage/grid.ts'
import { RUNS } from '../../shared/coverage/ledger.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { COARSE_HEADERS } from '../http/headers.ts'
import { countPointsSql } from './table-points.ts'

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
    params: { ...params, from, to, resumed, resume, limit },
    schema: counted,
  })
  return row?.points ?? 0
}

export const toCoarseHeaders = (points: number): Record<keyof typeof COARSE_HEADERS, string> => ({
  'X-Series-Coarse': String(points),
})
