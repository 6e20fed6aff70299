import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { countBuckets, DAY_MS, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { toStaleAt } from '../../shared/store/freshness.ts'
import type { Answer } from '../answers/answer.ts'
import type { Memory } from '../answers/memory.ts'
import { SERIES_HEADERS, toSeriesHeaders } from '../http/headers.ts'
import { page, time } from '../parameters/kinds.ts'
import { answerRecords } from '../records/answer.ts'
import { toObject } from '../records/columns.ts'
import { refuseCursor } from '../records/cursor.ts'
import type { Representation } from '../records/representation.ts'
import { defineRoute, type Route } from '../route/define-route.ts'
import { daoKind } from '../route/entities.ts'
import { answerQuestion } from './asked-series.ts'
import { toPoints } from './filled.ts'
import { countSlices, cutSlices, findNewest } from './pieces.ts'
import { isPlain, type SeriesQuestion, seriesParameters } from './questions.ts'
import { NO_FRAME, toArray, toSliceBack } from './rows.ts'
import { checkRange } from './series.ts'
import { findOldest } from './series-extent.ts'
import type { SeriesSource } from './series-source.ts'
import { isOfWholeRows, readWhole } from './whole-series.ts'
import type { RowsStatement } from './written-rows.ts'

interface DailySeries {
  readonly operation: string
  readonly path: string
  readonly aliases?: readonly string[]
  readonly summary: string
  readonly description: string
  readonly dataset: DatasetFacts
  /** A point: its time, `_id`, `dao` and what was counted. */
  readonly point: z.ZodObject
  /** What was counted, from the table's row. */
  readonly values: string
}

const summary = z.object({ points: z.int(), is_cut: z.coerce.boolean(), oldest: z.number() })

interface SeriesCall {
  readonly db: Database
  readonly memory: Memory
  readonly signal: AbortSignal
  readonly representation: Representation
}

/** The points of an answer, how many they are, whether more follow, and the time of the oldest, 0 where there is none. */
type Found = z.infer<typeof summary> & { readonly answer: Answer }

/** The first `limit` points of a range, newest first, out of all points of a DAO. */
async function findKept(
  call: SeriesCall,
  statement: RowsStatement & { readonly params: { readonly dao: number; readonly dataset: string } },
  { limit, ...range }: TimeRange & { readonly limit: number },
): Promise<Found> {
  const { dao: entity, dataset } = statement.params
  const slice = toSliceBack(await readWhole(call, { dataset, entity }, statement), range)
  const page = cutSlices([slice], limit)
  const points = countSlices(page)
  const isCut = countSlices([slice]) > points
  const oldest = points === 0 ? 0 : slice.rows.at(slice.first + points - 1)
  const headers = isCut ? { Link: call.representation.nextLink(String(oldest)) } : {}
  const answer = { body: toArray(page, NO_FRAME), asOf: findNewest(page), headers }
  return { answer, points, is_cut: isCut, oldest }
}

const INTERVALS_OF_DAYS = ['1d', '7d'] as const

type AskedCall = Parameters<typeof answerQuestion>[0] & { readonly found: Dao }

/** The member of a point that says when: the first. */
const timeOf = (point: z.ZodObject) => Object.keys(point.shape)[0] ?? ''

interface SeriesQuery {
  readonly start?: number | undefined
  readonly end?: number | undefined
  readonly limit: number
}

/**
 * A route of a DAO's daily points, newest first (contract section 2). The id of a point derives from dataset, DAO and
 * time like every id (contract section 3), in ClickHouse, which writes the points.
 */
export function defineDailySeries(series: DailySeries): Route {
  const { table, time: at } = series.dataset.series
  const points = (limit: string) => `
FROM ${table} FINAL
WHERE dao = {dao: UInt64} AND ${at} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND ${at} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
ORDER BY dao DESC, ${at} DESC
LIMIT ${limit}`
  const id = `lower(hex(substring(SHA256(concat({dataset: String}, char(31), {id: String}, char(31),
    toString(toUnixTimestamp64Milli(${at})))), 1, 12)))`
  const record = `${toObject(series.point, `${at}, ${id}, {id: String}, ${series.values}`)} AS record`
  const sql = `SELECT ${at} AS as_of, toUnixTimestamp64Milli(as_of) AS page_key,
  ${record}${points('{limit: UInt32}')}`
  const all = `SELECT ${at} AS row_at, ${at} AS as_of, ${record}
FROM ${table} FINAL
WHERE dao = {dao: UInt64}
ORDER BY dao DESC, ${at} DESC`

  const summarize = async (db: Database, params: Readonly<Record<string, unknown>>) => {
    const statement = `SELECT least(count(), {limit: UInt32}) AS points, count() > {limit: UInt32} AS is_cut,
  toUnixTimestamp64Milli(arrayElement(groupArray(at), greatest(points, 1))) AS oldest
FROM (SELECT toDateTime64(${at}, 3, 'UTC') AS at${points('{limit: UInt32} + 1')})`
    const [row] = await db.rows({ name: `${series.dataset.name}-points`, sql: statement, params, schema: summary })
    return row ?? { points: 0, is_cut: false, oldest: 0 }
  }

  const findStored = async (
    call: Pick<SeriesCall, 'db' | 'representation'>,
    params: Readonly<Record<string, unknown>>,
    limit: number,
  ): Promise<Found> => {
    const [{ records, ...answer }, summed] = await Promise.all([
      answerRecords(call, { name: series.dataset.name, sql, params, page: limit }),
      summarize(call.db, { ...params, limit }),
    ])
    return { answer, ...summed, points: records }
  }

  const answerOther = async (call: AskedCall, query: SeriesQuery & SeriesQuestion): Promise<Answer> => {
    const { found: dao } = call
    const params = { dao: dao.key, id: dao.id, dataset: series.dataset.name }
    const source: SeriesSource = {
      name: series.dataset.name,
      dataset: series.dataset,
      record: series.point,
      time: timeOf(series.point),
      constants: { dao: '{id: String}' },
      intervals: INTERVALS_OF_DAYS,
      sql: () => `SELECT toDateTime64(${at}, 3, 'UTC') AS row_at, row_at AS as_of, ${record}
FROM ${table} FINAL
WHERE dao = {dao: UInt64} AND ${at} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND ${at} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')`,
      params,
    }
    const start = query.start ?? (await findOldest(call.db, source, call.now()))
    return (await answerQuestion(call, source, { ...query, start }, 'desc')).answer
  }

  return defineRoute({
    operation: series.operation,
    path: series.path,
    aliases: series.aliases ?? [],
    tag: 'DAOs',
    summary: series.summary,
    description: series.description,
    one: daoKind,
    query: {
      start: time('First moment, inclusive; the first point when it is not given.', '2026-01-01').optional(),
      end: time('Last moment, exclusive; now when it is not given.', '2026-02-01').optional(),
      ...seriesParameters(INTERVALS_OF_DAYS, 'desc'),
      ...page('points', { default: 365, max: 10_000 }),
    },
    record: series.point,
    response: toPoints({ record: series.point, time: timeOf(series.point), constants: { dao: '' } }),
    datasets: [series.dataset],
    headers: SERIES_HEADERS,
    handle: async (call): Promise<Answer> => {
      const { found: dao, now, representation } = call
      checkRange(call.query)
      if (!isPlain(call.query, 'desc', '1d')) return answerOther(call, call.query)
      // A page that goes on holds the days before the last one of the page before.
      const query = representation.after === '' ? call.query : { ...call.query, end: toPlace(representation.after) }
      const range = { from: query.start ?? 0, to: Math.min(query.end ?? now(), now()) }
      const params = { dao: dao.key, id: dao.id, dataset: series.dataset.name }
      const found = isOfWholeRows(representation)
        ? await findKept(call, { name: series.dataset.name, sql: all, params }, { ...range, limit: query.limit })
        : await findStored(call, { ...params, ...range }, query.limit)
      const { answer, ...summed } = found
      const described = describe(series.dataset, query, { ...summed, asOf: answer.asOf }, now())
      return { ...answer, ...described, headers: { ...answer.headers, ...described.headers } }
    },
  })
}

/** @throws Problem `invalid_parameter` for a place that no answer has given. */
function toPlace(after: string): number {
  if (/^\d{1,15}$/.test(after)) return Number(after)
  throw refuseCursor()
}

/**
 * Age, expiry and headers of an answer. Days are counted from `start`, or from the oldest point where there is no
 * `start` or `limit` cut the series there. It becomes stale as a snapshot does, unless its range ends earlier. A range
 * up to now has one day more from the next midnight on.
 */
function describe(
  dataset: DatasetFacts,
  query: SeriesQuery,
  { asOf, points, is_cut: isCut, oldest }: { asOf: number | null } & z.infer<typeof summary>,
  now: number,
): { staleAt: number | null; expiresAt?: number; headers: Record<string, string> } {
  const first = isCut || query.start === undefined ? oldest : query.start
  const until = Math.min(query.end ?? now, now)
  const missing = points === 0 && query.start === undefined ? 0 : countBuckets(first, until, '1d') - points
  const staleAt = asOf === null ? null : toStaleAt(asOf, dataset)
  return {
    staleAt: staleAt !== null && staleAt < (query.end ?? Number.POSITIVE_INFINITY) ? staleAt : null,
    ...(until < now ? {} : { expiresAt: toBucketStart(now, '1d') + DAY_MS }),
    headers: toSeriesHeaders('1d', points, missing),
  }
}
