import { z } from 'zod'
import { toSeriesDueEnd } from '../../shared/buckets.ts'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { toIdSql } from '../../shared/ids.ts'
import { DAY_MS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import { type Database, toStaleAt } from '../../shared/store/store.ts'
import { type Answer, answerRecords, inTables, refuseCursor, toObject } from '../formats/formats.ts'
import { SERIES_HEADERS } from '../http/headers.ts'
import { page, time } from '../parameters/kinds.ts'
import { defineRoute, type Route, toDescribed } from '../route/define-route.ts'
import { daoKind, type Named, tokenKind } from '../route/entities.ts'
import { selectPoints } from './chunks.ts'
import { answerDailyTable, type DailySeries, type SeriesOwner, toPlaces } from './daily-table.ts'
import { toPoints } from './filled.ts'
import {
  checkRange,
  countMissing,
  isPlain,
  NO_FRAME,
  type SeriesQuestion,
  seriesParameters,
  toSeriesHeaders,
} from './series.ts'
import { answerPoints, answerQuestion, type SeriesCall } from './series-answer.ts'
import { type SeriesSource, toBucketSql, toSeries } from './series-source.ts'

const DAO: SeriesOwner = { kind: daoKind, tag: 'DAOs', column: 'dao' }
export const TOKEN: SeriesOwner = { kind: tokenKind, tag: 'Tokens', column: 'token' }

const INTERVALS_OF_DAYS = ['1d', '7d'] as const

const summary = z.object({ points: z.int(), early: z.int(), is_cut: z.coerce.boolean(), oldest: z.number() })

/**
 * An answer with its number of points, its number of points in buckets that are not due, whether more points follow,
 * and the time of its oldest point (0 without points).
 */
type Found = z.infer<typeof summary> & { readonly answer: Answer }

type Call = SeriesCall & { readonly found: Named; readonly entities: readonly Named[] }

/** The member with the point's time: the first. */
const timeOf = (point: z.ZodObject) => Object.keys(point.shape)[0] ?? ''

interface SeriesQuery {
  readonly start?: number | undefined
  readonly end?: number | undefined
  readonly limit: number
}

/**
 * Defines a route for daily points of a DAO or a token, newest first (docs/contract.md, section 2). ClickHouse writes
 * the points and derives the id of a point from dataset, DAO and time like every id (docs/contract.md, section 3).
 */
export function defineDailySeries(series: DailySeries): Route {
  const { of: { kind, tag, column } = DAO, intervals = INTERVALS_OF_DAYS, description } = series
  const { table, at, asOf } = toPlaces(series, '= {entity: UInt64}')
  const within = `
FROM ${table}
WHERE ${column} = {entity: UInt64} AND ${at} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND ${at} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')`
  const points = (limit: string) => `${within}
ORDER BY ${column} DESC, ${at} DESC
LIMIT ${limit}`
  const toRecord = (time: string, values: string) => {
    const id = toIdSql('{dataset: String}', '{id: String}', `toUnixTimestamp64Milli(${time})`)
    const idColumn = '_id' in series.point.shape ? `${id}, {id: String}, ` : ''
    return `${toObject(series.point, `${time}, ${idColumn}${values}`)} AS record`
  }
  const record = toRecord(at, series.values)
  const sql = `SELECT ${asOf} AS as_of, toUnixTimestamp64Milli(${at}) AS page_key,
  ${record}${points('{limit: UInt32}')}`
  // The last week of a range may end after the range, which is of the weeks' starts.
  const weeks =
    series.weekValues &&
    `SELECT ${toBucketSql(at, '7d')} AS row_at, max(toDateTime64(${asOf}, 3, 'UTC')) AS as_of,
  ${toRecord('row_at', series.weekValues)}
FROM ${table}
WHERE ${column} = {entity: UInt64} AND ${at} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND ${at} < fromUnixTimestamp64Milli({to: Int64}, 'UTC') + INTERVAL 7 DAY
GROUP BY row_at
HAVING toUnixTimestamp64Milli(row_at) >= {from: Int64} AND toUnixTimestamp64Milli(row_at) < {to: Int64}`

  const summarize = async (db: Database, params: Readonly<Record<string, unknown>>) => {
    const statement = `SELECT least(count(), {limit: UInt32}) AS points,
  least(countIf(toUnixTimestamp64Milli(at) >= {due: Int64}), points) AS early, count() > {limit: UInt32} AS is_cut,
  toUnixTimestamp64Milli(arrayElement(groupArray(at), greatest(points, 1))) AS oldest
FROM (SELECT toDateTime64(${at}, 3, 'UTC') AS at${points('{limit: UInt32} + 1')})`
    const [row] = await db.rows({ name: `${series.dataset.name}-points`, sql: statement, params, schema: summary })
    return row ?? { points: 0, early: 0, is_cut: false, oldest: 0 }
  }

  const findStored = async (call: Call, params: Readonly<Record<string, unknown>>, limit: number): Promise<Found> => {
    const [{ records, ...answer }, summed] = await Promise.all([
      answerRecords(call, { name: series.dataset.name, sql, params, page: limit }),
      summarize(call.db, { ...params, limit }),
    ])
    return { answer, ...summed, points: records }
  }

  const toSource = (owner: Named) =>
    ({
      name: series.dataset.name,
      dataset: series.dataset,
      record: series.point,
      time: timeOf(series.point),
      constants: { [column]: '{id: String}' },
      intervals,
      sql: (interval: Interval) =>
        interval === '7d' && weeks !== undefined
          ? weeks
          : `SELECT toDateTime64(${at}, 3, 'UTC') AS row_at, toDateTime64(${asOf}, 3, 'UTC') AS as_of, ${record}${within}`,
      params: { entity: owner.key, id: owner.id, dataset: series.dataset.name },
      cached: { key: `${series.path} ${owner.key}`, isShort: true },
    }) satisfies SeriesSource

  /** The time of the first point up to now, in Unix milliseconds; undefined if there is none. */
  const findOldest = async (call: Call): Promise<number | undefined> => {
    const form = { interval: intervals[0], order: 'desc', hasLines: false } as const
    const { points } = await selectPoints(toSeries(toSource(call.found), form), call, { from: 0, to: call.now() })
    return points.count === 0 ? undefined : points.earliest
  }

  const answerInForm = async (call: Call, query: SeriesQuery & SeriesQuestion): Promise<Answer> => {
    const first = query.start === undefined ? await findOldest(call) : undefined
    const from = { start: query.start ?? first ?? call.now(), isFirstPoint: first !== undefined }
    return (await answerQuestion(call, toSource(call.found), { ...query, ...from }, { usual: 'desc' })).answer
  }

  /** The first `limit` points of a range, newest first, from the cached series; undefined if ClickHouse writes them. */
  const findCached = async (
    call: Call,
    range: { readonly from: number; readonly to: number; readonly due: number },
    limit: number,
  ): Promise<Found | undefined> => {
    const query = { range: { ...range, open: false }, interval: '1d', order: 'desc', limit, mostCached: limit } as const
    const found = await answerPoints(call, toSource(call.found), query, NO_FRAME)
    if (found === undefined) return undefined
    const { answer, points, isCut } = found
    const link = isCut ? { Link: call.representation.nextLink(String(points.earliest)) } : {}
    return {
      answer: { ...answer, headers: { ...answer.headers, ...link } },
      points: points.count,
      early: points.countSince(range.due),
      is_cut: isCut,
      oldest: points.earliest,
    }
  }

  const answer = async (call: Call & { readonly query: SeriesQuery & SeriesQuestion }): Promise<Answer> => {
    const { found: owner, now, representation } = call
    checkRange(call.query)
    if (call.entities.length > 1) return answerDailyTable(call, series, { column, intervals })
    if (!isPlain(call.query, 'desc', '1d')) return answerInForm(call, call.query)
    // A following page contains the days before the last day of the previous page.
    const query = representation.after === '' ? call.query : { ...call.query, end: toPlace(representation.after) }
    const range = { from: query.start ?? 0, to: Math.min(query.end ?? now(), now()) }
    const params = { entity: owner.key, id: owner.id, dataset: series.dataset.name }
    const due = toSeriesDueEnd(series.dataset, '1d', now())
    const { answer, ...summed } =
      (await findCached(call, { ...range, due }, query.limit)) ??
      (await findStored(call, { ...params, ...range, due }, query.limit))
    const described = describe(series.dataset, query, { ...summed, asOf: answer.asOf }, now())
    return { ...answer, ...described, headers: { ...answer.headers, ...described.headers } }
  }

  return defineRoute({
    ...toDescribed({
      ...series,
      tag,
      description: `${description} ${inTables(kind.noun)}`,
    }),
    one: kind,
    severalInTables: true,
    query: {
      start: time('First moment, inclusive; default: the first point.', '2026-01-01').optional(),
      end: time('Last moment, exclusive; default: now.', '2026-02-01').optional(),
      ...seriesParameters(intervals, 'desc'),
      ...page('points', { default: 365, max: 10_000 }),
    },
    record: series.point,
    response: toPoints({ record: series.point, time: timeOf(series.point), constants: { [column]: '' } }),
    datasets: [series.dataset],
    headers: SERIES_HEADERS,
    handle: (call) => answer(call),
  })
}

/** @throws Problem `invalid_parameter` for a position that no answer contained. */
function toPlace(after: string): number {
  if (/^\d{1,15}$/.test(after)) return Number(after)
  throw refuseCursor()
}

/**
 * Age, expiry and headers of an answer. Days are counted from `start` up to the last due day. Without `start`, or if
 * `limit` cut the series, they are counted from the oldest point. A range up to now becomes stale like a snapshot,
 * unless it ends earlier, and gets one more day at each midnight.
 */
function describe(
  dataset: DatasetFacts,
  query: SeriesQuery,
  { asOf, is_cut: isCut, oldest, ...counts }: { asOf: number | null } & z.infer<typeof summary>,
  now: number,
): { staleAt: number | null; expiresAt?: number; headers: Record<string, string> } {
  const first = isCut || query.start === undefined ? oldest : query.start
  const until = Math.min(query.end ?? now, now)
  const due = toSeriesDueEnd(dataset, '1d', now)
  const isEmpty = counts.points === 0 && query.start === undefined
  const missing = isEmpty ? 0 : countMissing({ from: first, to: until }, '1d', due, counts)
  const staleAt = asOf === null || until < now ? null : toStaleAt(asOf, dataset)
  return {
    staleAt: staleAt !== null && staleAt < (query.end ?? Number.POSITIVE_INFINITY) ? staleAt : null,
    ...(until <= due ? {} : { expiresAt: toBucketStart(now, '1d') + DAY_MS }),
    headers: toSeriesHeaders('1d', counts.points, missing),
  }
}
