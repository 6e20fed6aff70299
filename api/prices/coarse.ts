import { z } from 'zod'
import { toYear } from '../../shared/coverage/grid.ts'
import { RUNS } from '../../shared/coverage/ledger.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { ChunkCache, ChunkKey, Sized } from '../cache/chunks.ts'
import type { COARSE_HEADERS } from '../http/headers.ts'
import type { Points } from './chunk.ts'
import { countPointsSql } from './table.ts'

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

const CADENCE_MS = INTERVAL_SECONDS[tokenPrices.cadence] * 1000
const NUMBER_BYTES = 8

/**
 * The longest step, in seconds, of a year's stored buckets, by token; only tokens with steps longer than the cadence.
 */
interface Coarsest extends Sized {
  readonly of: ReadonlyMap<number, number>
}

/**
 * The buckets of a token's year that are stored only at a coarser step than some interval, as ordered runs of bucket
 * numbers.
 */
interface CoarseBuckets extends Sized {
  readonly runs: readonly (readonly [first: number, last: number])[]
}

interface YearPlace extends ChunkKey {
  readonly year: number
}

const toYearPlace = (key: string, year: number): YearPlace => ({
  key: `coarse ${key} ${year}`,
  dataset: tokenPrices.name,
  year,
  from: Date.UTC(year, 0),
  to: Date.UTC(year + 1, 0),
})

const IN_YEARS = `dataset = {dataset: String} AND state = 'stored' AND year IN {years: Array(UInt16)}`

const toParams = (places: readonly YearPlace[]) => ({
  dataset: tokenPrices.name,
  years: places.map(({ year }) => year),
})

const coarsestRow = z.object({ year: z.int(), entity: z.number(), seconds: z.int() })

async function readCoarsest(places: readonly YearPlace[], db: Database): Promise<Coarsest[]> {
  const rows = await db.rows({
    name: 'coarse-tokens',
    sql: `SELECT year, entity, max(interval_seconds) AS seconds FROM coverage
WHERE ${IN_YEARS} AND interval_seconds > {cadence: UInt32}
GROUP BY year, entity`,
    params: { ...toParams(places), cadence: CADENCE_MS / 1000 },
    settings: { max_threads: 1 },
    schema: coarsestRow,
  })
  return places.map((place) => {
    const of = rows.filter(({ year }) => year === place.year).map((row) => [row.entity, row.seconds] as const)
    return { of: new Map(of), size: of.length * 4 * NUMBER_BYTES }
  })
}

const run = z.object({ year: z.int(), runs: z.array(z.tuple([z.int(), z.int()])) })

async function readBuckets(
  places: readonly YearPlace[],
  db: Database,
  params: { token: number; seconds: number },
): Promise<CoarseBuckets[]> {
  const rows = await db.rows({
    name: 'coarse-buckets',
    sql: `SELECT year, ${RUNS('numbers')} AS runs
FROM
(
  SELECT year, groupBitmapMergeStateIf(buckets, interval_seconds > {seconds: UInt32}) AS coarser,
    groupBitmapMergeStateIf(buckets, interval_seconds <= {seconds: UInt32}) AS fine,
    arraySort(bitmapToArray(bitmapAndnot(coarser, fine))) AS numbers
  FROM coverage
  WHERE ${IN_YEARS} AND entity = {token: UInt64}
  GROUP BY year
)`,
    params: { ...toParams(places), ...params },
    settings: { max_threads: 1 },
    schema: run,
  })
  return places.map(({ year }) => {
    const runs = rows.find((row) => row.year === year)?.runs ?? []
    return { runs, size: runs.length * 4 * NUMBER_BYTES }
  })
}

/** The years of the observations in a range's buckets: the last bucket may end after the range. */
function toYears({ from, to }: TimeRange, interval: Interval): number[] {
  const first = new Date(from).getUTCFullYear()
  const last = new Date(to + INTERVAL_SECONDS[interval] * 1000 - 1).getUTCFullYear()
  return from < to ? Array.from({ length: last - first + 1 }, (_, index) => first + index) : []
}

interface PriceRange {
  readonly token: number
  readonly interval: Interval
  readonly range: TimeRange
  /**
   * Whether tokens are distributed over shards. A query about all tokens then needs every shard, a query about one
   * token does not.
   */
  readonly isSpread: boolean
}

/**
 * Counts the points with observations coarser than their interval, according to the coverage. A cached value
 * for all tokens contains those with coarser data in a year. Only for these few tokens the buckets are read.
 */
export async function countCoarsePoints(
  { chunks, signal }: { readonly chunks: ChunkCache; readonly signal: AbortSignal },
  series: PriceRange,
  reading: Promise<Points>,
): Promise<number> {
  const { token, interval, range, isSpread } = series
  const seconds = INTERVAL_SECONDS[interval]
  const years = toYears(range, interval)
  const ofAll = isSpread ? [] : years.map((year) => toYearPlace('', year))
  const coarsest = await chunks.read(ofAll, readCoarsest, signal)
  const coarse = years.filter((_, index) => isSpread || (coarsest[index]?.of.get(token) ?? 0) > seconds)
  const places = coarse.map((year) => toYearPlace(`${token} ${seconds}`, year))
  const read = (missing: readonly YearPlace[], db: Database) => readBuckets(missing, db, { token, seconds })
  const buckets = await chunks.read(places, read, signal)
  const runs = buckets.flatMap((year) => year.runs)
  // The last bucket may end after the range, with the observation in it.
  const observed = { from: range.from, to: range.to + seconds * 1000 }
  return runs.length === 0 ? 0 : countWithin(await reading, runs, observed)
}

/** Counts the points with observations in the runs, which are ordered by time. */
function countWithin(points: Points, all: CoarseBuckets['runs'], { from, to }: TimeRange): number {
  const runs = all.filter(([first, last]) => (last + 1) * CADENCE_MS > from && first * CADENCE_MS < to)
  const [earliest, latest] = [runs[0], runs.at(-1)]
  if (earliest === undefined || latest === undefined) return 0
  let [count, next] = [0, 0]
  for (const at of points.readObserved({ from: earliest[0] * CADENCE_MS, to: (latest[1] + 1) * CADENCE_MS })) {
    const number = Math.floor(at / CADENCE_MS)
    while (next < runs.length && (runs[next]?.[1] ?? 0) < number) next++
    if (number >= (runs[next]?.[0] ?? Number.POSITIVE_INFINITY)) count++
  }
  return count
}
