import { z } from 'zod'
import { toSeriesDueEnd } from '../../shared/buckets.ts'
import type { DailySumSeries } from '../../shared/datasets/daily-sum.ts'
import { DAY_MS, END_OF_TIME, HISTORY_START, type Interval, toBucketStart } from '../../shared/intervals.ts'
import { toLifetimes } from '../../shared/registry/ends.ts'
import { type Answer, answerRecords, toObject } from '../formats/formats.ts'
import { SERIES_HEADERS } from '../http/headers.ts'
import { oneOf, optionalLimit, time } from '../parameters/kinds.ts'
import { countDays } from '../route/cost.ts'
import { type AppContext, type Described, defineRoute, type Route, toDescribed } from '../route/define-route.ts'
import { toIntervals, toRowsSql } from './daily-rows.ts'
import { toPoints } from './filled.ts'
import {
  checkRange,
  countRows,
  describeSeries,
  isPlain,
  NO_FRAME,
  nextGridTime,
  type PointCounts,
  type SeriesQuestion,
  seriesParameters,
} from './series.ts'
import { answerPoints, answerQuestion, type SeriesCall } from './series-answer.ts'
import { type SeriesSource, toLikeForLikeSql } from './series-source.ts'

const MAX_DAYS = 10_000
const DEFAULT_DAYS = 10
const FIRST_DAY = Date.parse(HISTORY_START)

const LIKE_FOR_LIKE =
  'With `basis=like-for-like` each day is compared with the day before, or with `interval=7d` with the day a week before: the two sums are over those that have a value on both days, so that one that is new, or gone, is neither growth nor loss.'

/**
 * Defines a route for daily sums over all members of the registry: as stored, or like for like (docs/contract.md,
 * sections 2, 8 and 9).
 */
export function serveSums(series: DailySumSeries, described: Omit<Described, 'tag'>): Route {
  const { dataset, record, likeForLike } = series
  const stored = toStoredSource(series)
  const answer = ({
    query: { basis, ...query },
    ...call
  }: Call & { readonly query: Query & { basis?: string | undefined } }) => {
    if (basis === undefined) return answerStored(call, stored, query)
    const { cached: _, ...source } = stored
    const members: SeriesSource = {
      ...source,
      name: `${dataset.name}-like-for-like`,
      record: likeForLike,
      hasOwnPoints: true,
      sql: (interval) => toLikeForLikeSql(likeForLike, series.members, interval),
      params: toLifetimes(series.all(call.registry)),
    }
    return answerSums(call, members, query)
  }
  return defineRoute({
    ...toDescribed({ ...described, tag: 'Aggregated', description: `${described.description} ${LIKE_FOR_LIKE}` }),
    query: dailySumParameters,
    record,
    response: z.union([toPoints(stored), toPoints({ record: likeForLike, time: series.time })]),
    datasets: [dataset],
    headers: SERIES_HEADERS,
    // Like for like, every member of each day is read.
    estimateValues: ({ registry, query: { basis, limit, start, end }, now }) => {
      const days = start === undefined ? (limit ?? DEFAULT_DAYS) : countDays({ start, end }, now())
      return days * (basis === undefined ? 1 : series.all(registry).length)
    },
    handle: (call) => answer(call),
  })
}

/** The parameters of a series of daily sums: `limit` means days back (docs/contract.md, section 2). */
const dailySumParameters = {
  limit: optionalLimit('days', { max: MAX_DAYS }).meta({
    description: `Number of days back from now, at most ${MAX_DAYS}. If neither \`limit\` nor \`start\` is given: ${DEFAULT_DAYS} days back from \`end\`, or from now.`,
    examples: [30],
  }),
  start: time(`First moment, inclusive, not before ${HISTORY_START}.`, '2024-01-01', {
    earliest: HISTORY_START,
  }).optional(),
  end: time('Last moment, exclusive; default: now.', '2024-02-01').optional(),
  ...seriesParameters(['1d', '7d'], 'asc'),
  basis: oneOf(
    ['like-for-like'],
    'Change of the sum over the members of both days, instead of the sum over all.',
    'like-for-like',
  ).optional(),
}

type Call = SeriesCall & Pick<AppContext, 'registry'>
type Query = SeriesQuestion & { [Name in 'limit' | 'start' | 'end']?: number | undefined }

/** The sums of the last days or of a range, in the requested form. */
async function answerSums(call: Call, source: SeriesSource, query: Query): Promise<Answer> {
  checkRange(query)
  const { limit, ...question } = query
  const now = call.now()
  // An `end` alone is the end of the default number of days.
  const until = limit === undefined && query.start === undefined ? Math.min(query.end ?? now, now) : now
  const back = query.start !== undefined && limit === undefined ? 0 : until - (limit ?? DEFAULT_DAYS) * DAY_MS
  // A number of days back may reach before the start of the history, which is no client error.
  const start = Math.max(query.start ?? FIRST_DAY, back)
  const { answer } = await answerQuestion(call, source, { ...question, start })
  // The last days until now are another range from the next grid time on.
  return until === now && back > (query.start ?? 0) ? { ...answer, expiresAt: nextGridTime(now) } : answer
}

/**
 * The stored points, oldest first by default. A record contains the day, the sum and the number of its members. The
 * last days are assembled from cached rows.
 */
async function answerStored(call: Call, source: StoredSource, query: Query): Promise<Answer> {
  const { dataset } = source
  if (query.start !== undefined || query.end !== undefined || !isPlain(query, 'asc', '1d'))
    return answerSums(call, source, query)
  const at = call.now()
  const days = query.limit ?? DEFAULT_DAYS
  const from = toBucketStart(at - days * DAY_MS - 1, '1d') + DAY_MS
  const due = toSeriesDueEnd(dataset, '1d', at)
  const selection = {
    range: { from, to: END_OF_TIME, open: true },
    interval: '1d',
    order: 'asc',
    limit: undefined,
  } as const
  const found = await answerPoints(call, source, { ...selection, mostCached: Number.POSITIVE_INFINITY }, NO_FRAME)
  const { points, early, ...answer } =
    found === undefined
      ? await writePoints(call, source, from, due)
      : { ...found.answer, points: found.points.count, early: found.points.countSince(due) }
  const range = { from: Math.max(from, FIRST_DAY), to: toBucketStart(at, '1d') + DAY_MS, open: true }
  const counted = { dataset, interval: '1d', range, points, early, asOf: answer.asOf } as const
  const { headers } = describeSeries(counted, at)
  // The answer no longer contains its oldest day when this day is more than `days` days old.
  return { ...answer, headers: { ...answer.headers, ...headers }, expiresAt: from + days * DAY_MS + 1 }
}

type StoredSource = ReturnType<typeof toStoredSource>

/** The sums as stored. */
const toStoredSource = (series: DailySumSeries) =>
  ({
    name: series.dataset.name,
    dataset: series.dataset,
    record: series.record,
    time: series.time,
    intervals: toIntervals(series),
    sql: (interval: Interval) => {
      const { record } = series
      return toRowsSql({ series, record, id: '', toRecord: (values) => toObject(record, values) }, interval)
    },
    params: {},
    cached: { key: series.dataset.name, isShort: true },
  }) satisfies SeriesSource

/** The points from a time on, as ClickHouse writes them. */
async function writePoints(
  call: Call,
  { name, sql: toSql }: StoredSource,
  from: number,
  due: number,
): Promise<Answer & PointCounts> {
  const sql = `SELECT as_of, record FROM (${toSql('1d')}) ORDER BY row_at`
  const to = END_OF_TIME
  const [{ records, ...answer }, early] = await Promise.all([
    answerRecords(call, { name, sql, params: { from, to } }),
    countRows(call.db, { name, sql, params: { from: Math.max(from, due), to } }),
  ])
  return { ...answer, points: records, early: Math.min(early, records) }
}
