import { toSeriesDueEnd } from '../../shared/buckets.ts'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import type { DailySeries } from '../../shared/datasets/define-series.ts'
import { DAY_MS, type Interval, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import { toStaleAt } from '../../shared/store/store.ts'
import { type Answer, answerRecords, inTables, refuseCursor, toObject, toUsualRecord } from '../formats/formats.ts'
import { SERIES_HEADERS } from '../http/headers.ts'
import { include, limitOfEach, page, time } from '../parameters/kinds.ts'
import { type Described, defineRoute, type Route, toDescribed } from '../route/define-route.ts'
import { daoKind, type EntityKind, type Named, tokenKind } from '../route/entities.ts'
import { selectPoints } from './chunks.ts'
import { answerTable, toDaily, toIntervals, toRowsSql } from './daily-rows.ts'
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
import { type SeriesSource, toSeries } from './series-source.ts'

/** The owners of series, by the column and member with their ids. */
const OWNERS: Readonly<Record<'dao' | 'token', { readonly kind: EntityKind<Named>; readonly tag: string }>> = {
  dao: { kind: daoKind as EntityKind<never>, tag: 'DAOs' },
  token: { kind: tokenKind as EntityKind<never>, tag: 'Tokens' },
}

/**
 * Counts of an answer: its points, those in buckets that are not due, whether more points follow, and the time of its
 * oldest point (0 without points).
 */
interface Counts {
  readonly points: number
  readonly early: number
  readonly isCut: boolean
  readonly oldest: number
}

type Call = SeriesCall & { readonly found: Named; readonly entities: readonly Named[] }

interface SeriesQuery {
  readonly start?: number | undefined
  readonly end?: number | undefined
  /** Absent only in a table. */
  readonly limit?: number | undefined
}

/** The default and the maximum of `limit`. */
const [USUAL_POINTS, MOST_POINTS] = [365, 10_000]

/**
 * Serves a daily series of a DAO or a token, newest first (docs/contract.md, section 2). ClickHouse writes the points
 * and derives the id of a point from dataset, owner and time like every id (docs/contract.md, section 3).
 */
export function serveSeries(series: DailySeries, described: Omit<Described, 'tag'>): Route {
  const { about = 'dao', sourced } = series
  const { documented } = sourced ?? { documented: series.record }
  const { kind, tag } = OWNERS[about]
  const dataset = toDaily(series)
  const intervals = toIntervals(series)

  /** The points of the owner, with the record of the answer. */
  const toSource = ({ found: owner, representation: { record } }: Call) => {
    const rows = { series, record, id: '{id: String}', toRecord: (values: string) => toObject(record, values) }
    return {
      name: dataset.name,
      dataset,
      record,
      time: series.time,
      constants: { [about]: '{id: String}' },
      intervals,
      sql: (interval: Interval) => toRowsSql(rows, interval),
      params: { entities: [owner.key], id: owner.id, dataset: dataset.name },
      cached: { key: `${described.path} ${owner.key}${record === series.record ? '' : ' source'}`, isShort: true },
    } satisfies SeriesSource
  }

  /** The cached points of a range: the first `limit` of them, newest first. */
  const select = (call: Call, range: TimeRange, limit?: number) => {
    const form = { interval: intervals[0], order: 'desc', hasLines: false } as const
    return selectPoints(toSeries(toSource(call), form), call, range, limit)
  }

  /** A page of points that ClickHouse writes. */
  const writePage = async (call: Call, range: TimeRange, limit: number): Promise<Answer> => {
    const { name, sql, params } = toSource(call)
    const {
      records: _,
      next: __,
      ...answer
    } = await answerRecords(call, {
      name,
      sql: `SELECT as_of, toUnixTimestamp64Milli(row_at) AS page_key, record FROM (${sql(intervals[0])})
ORDER BY row_at DESC
LIMIT {limit: UInt32}`,
      params: { ...params, from: range.from, to: range.to },
      page: limit,
    })
    return answer
  }

  const answerInForm = async (call: Call, query: SeriesQuery & SeriesQuestion): Promise<Answer> => {
    const found = query.start === undefined ? await select(call, { from: 0, to: call.now() }) : undefined
    const isFirstPoint = found !== undefined && found.points.count > 0
    const start = query.start ?? (isFirstPoint ? found.points.earliest : call.now())
    return (await answerQuestion(call, toSource(call), { ...query, start, isFirstPoint }, { usual: 'desc' })).answer
  }

  /** The first `limit` points of a range, newest first, and their counts. */
  const answerPage = async (call: Call, range: TimeRange, due: number, limit: number) => {
    const query = { range: { ...range, open: false }, interval: '1d', order: 'desc', limit, mostCached: limit } as const
    const cached = await answerPoints(call, toSource(call), query, NO_FRAME)
    const [answer, { points, isCut }] =
      cached === undefined
        ? await Promise.all([writePage(call, range, limit), select(call, range, limit)])
        : [cached.answer, cached]
    const link = isCut ? { Link: call.representation.nextLink(String(points.earliest)) } : {}
    const counts = { points: points.count, early: points.countSince(due), isCut, oldest: points.earliest }
    return { answer: { ...answer, headers: { ...answer.headers, ...link } }, counts }
  }

  const answer = async (call: Call & { readonly query: SeriesQuery & SeriesQuestion }): Promise<Answer> => {
    const { now, representation } = call
    checkRange(call.query)
    if (call.entities.length > 1) return answerTable(call, series, USUAL_POINTS)
    const { limit = USUAL_POINTS } = call.query
    if (!isPlain(call.query, 'desc', '1d')) return answerInForm(call, { ...call.query, limit })
    // A following page contains the days before the last day of the previous page.
    const query = representation.after === '' ? call.query : { ...call.query, end: parsePosition(representation.after) }
    const range = { from: query.start ?? 0, to: Math.min(query.end ?? now(), now()) }
    const { answer, counts } = await answerPage(call, range, toSeriesDueEnd(dataset, '1d', now()), limit)
    const described = describe(dataset, query, { ...counts, asOf: answer.asOf }, now())
    return { ...answer, ...described, headers: { ...answer.headers, ...described.headers } }
  }

  return defineRoute({
    ...toDescribed({ ...described, tag, description: `${described.description} ${inTables(kind.noun)}` }),
    one: kind,
    severalInTables: { limit: limitOfEach({ noun: kind.noun, default: USUAL_POINTS, max: MOST_POINTS }) },
    query: {
      ...(sourced && { include: include(['source'], 'With `source`, the provider of each observation.') }),
      start: time('First moment, inclusive; default: the first point.', '2026-01-01').optional(),
      end: time('Last moment, exclusive; default: now.', '2026-02-01').optional(),
      ...seriesParameters(intervals, 'desc'),
      ...page('points', { default: USUAL_POINTS, max: MOST_POINTS }),
    },
    record: series.record,
    ...(sourced && { recordWith: { record: sourced.record, members: { source: 'include=source' }, shapes: [] } }),
    response: toPoints({ record: documented, time: series.time, constants: { [about]: '' } }),
    datasets: [dataset],
    headers: SERIES_HEADERS,
    handle: (call) => answer({ ...call, representation: toUsualRecord(call.representation, series.record) }),
  })
}

/** @throws Problem `invalid_parameter` for a position that no answer contained. */
function parsePosition(after: string): number {
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
  { asOf, isCut, oldest, ...counts }: Counts & { readonly asOf: number | null },
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
