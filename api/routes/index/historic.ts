import { z } from 'zod'
import { toSeriesDueEnd } from '../../../shared/buckets.ts'
import { indexPoints } from '../../../shared/datasets/index-points.ts'
import { countBuckets, DAY_MS, HISTORY_START, INTERVALS, type TimeRange } from '../../../shared/intervals.ts'
import type { BasketIndex } from '../../../shared/registry/index-records.ts'
import {
  type Answer,
  answerRecords,
  idValue,
  MOST_CACHED,
  timeValue,
  toIdSql,
  toObject,
} from '../../formats/formats.ts'
import { SERIES_HEADERS } from '../../http/headers.ts'
import { integerParameter, optionalPage, time } from '../../parameters/kinds.ts'
import { Problem } from '../../problem/problem.ts'
import { type AppContext, defineRoute } from '../../route/define-route.ts'
import { toPoints } from '../../series/filled.ts'
import {
  checkRange,
  countRows,
  describeSeries,
  isPlain,
  NO_FRAME,
  nextGridTime,
  type PointCounts,
  type SeriesQuestion,
  type SeriesRange,
  seriesParameters,
  toSeriesRange,
} from '../../series/series.ts'
import { answerPoints, answerQuestion, fromCache, type SeriesCall } from '../../series/series-answer.ts'
import type { SeriesSource } from '../../series/series-source.ts'

const INTERVAL = '5m'
const MAX_DAYS = 10_000

const point = z
  .strictObject({
    _id: idValue.describe('Id of the point.'),
    valueUsd: z.number().meta({ description: 'Value of the basket in US dollars.' }),
    composition: idValue.meta({ description: 'Id of the active composition.' }),
    createdAt: timeValue.meta({ description: 'Start of the 5-minute slot.' }),
  })
  .meta({ id: 'IndexPoint', description: 'Value of the Index in one slot.' })

const POINTS = `
SELECT observed_at AS as_of, value_usd AS valueUsd, composition, created_at AS createdAt,
  ${toIdSql("'index'", '{id: String}', 'toUnixTimestamp64Milli(created_at)')} AS _id
FROM index_points FINAL
WHERE index_key = {index: UInt64}
  AND created_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND created_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
ORDER BY index_key, created_at`

const RECORDS = `SELECT createdAt AS row_at, as_of, ${toObject(point, '_id, valueUsd, composition, createdAt')} AS record, createdAt, valueUsd, composition
FROM (${POINTS})`
const ROW_HASH = 'sipHash64(tuple(createdAt, valueUsd, composition))'

const days = (description: string) =>
  integerParameter(MAX_DAYS)
    .optional()
    .meta({ description, examples: [7] })

export const indexHistoricRoute = defineRoute({
  operation: 'getIndexHistory',
  path: '/data/index/historic',
  aliases: ['/data/index/historic-data', '/data/index/historic-value'],
  tag: 'Index',
  summary: 'The value of the Index over time',
  description:
    "One point per 5-minute slot in which every member of the basket has a price, oldest first, since the launch on 29 November 2022. At a coarser interval a bucket has its first point, with that point's time. `X-Series-Missing` counts the due buckets without a point.",
  query: {
    period: days(
      `Days back from now, at most ${MAX_DAYS}; 1, or one before \`end\`, when neither it nor \`start\` is given.`,
    ),
    days: days('The same as `period`; if both are present they must be equal.'),
    start: time('First moment, inclusive; points begin with the launch.', '2024-01-01', {
      earliest: HISTORY_START,
    }).optional(),
    end: time('Last moment, exclusive; default: now.', '2024-01-08T00:00:00Z').optional(),
    ...seriesParameters(INTERVALS, 'asc'),
    ...optionalPage('points', { max: 1_000_000 }),
  },
  record: point,
  response: toPoints({ record: point, time: 'createdAt' }),
  datasets: [indexPoints],
  headers: SERIES_HEADERS,
  peek: fromCache((call) => answerIndex(call)),
  handle: (call) => answerIndex(call),
})

type Call = SeriesCall & Pick<AppContext, 'registry'>

interface Query extends SeriesQuestion {
  readonly period?: number | undefined
  readonly days?: number | undefined
  readonly start?: number | undefined
  readonly end?: number | undefined
  readonly limit?: number | undefined
}

async function answerIndex(call: Call & { readonly query: Query }): Promise<Answer> {
  const { query, registry, now } = call
  if (query.period !== undefined && query.days !== undefined && query.period !== query.days) {
    throw new Problem('invalid_parameter', 'period and days mean the same and must not differ.', { param: 'days' })
  }
  const { index } = registry
  const isExplicit =
    query.start !== undefined ||
    query.end !== undefined ||
    query.limit !== undefined ||
    call.representation.after !== ''
  if (isExplicit || !isPlain(query, 'asc', INTERVAL)) return answerInForm(call, index, query)
  const back = now() - (query.period ?? query.days ?? 1) * DAY_MS
  const range = toSeriesRange({ start: Math.max(back, index.launch), interval: INTERVAL }, now())
  const { points, early, ...answer } = await answerRange(call, index, range)
  const counted = { dataset: indexPoints, interval: INTERVAL, range, points, early, asOf: answer.asOf } as const
  const { headers, ...described } = describeSeries(counted, now())
  return { ...answer, ...described, headers: { ...answer.headers, ...headers } }
}

const toSource = (index: BasketIndex): SeriesSource => ({
  name: 'index-historic',
  dataset: indexPoints,
  record: point,
  time: 'createdAt',
  intervals: INTERVALS,
  sql: () => `SELECT row_at, as_of, record FROM (${RECORDS})`,
  params: { index: index.key, id: index.id },
  cached: { key: `index ${index.key}` },
})

/** Answers a request with a range, order or interval. The first slot with a value represents a coarser bucket. */
async function answerInForm(call: Call, index: BasketIndex, query: Query): Promise<Answer> {
  checkRange(query)
  const { period, days: daysAlias, ...question } = query
  const back = period ?? daysAlias ?? (query.start === undefined ? 1 : MAX_DAYS)
  const now = call.now()
  const isUntilNow = [period, daysAlias, query.start].some((value) => value !== undefined)
  const until = isUntilNow ? now : Math.min(query.end ?? now, now)
  const earliest = Math.max(query.start ?? 0, index.launch)
  const start = Math.max(earliest, until - back * DAY_MS)
  const { answer } = await answerQuestion(call, toSource(index), { ...question, start })
  // A range that ends now moves with the grid, so the answer expires at the next grid time.
  return until === now && start > earliest ? { ...answer, expiresAt: nextGridTime(now) } : answer
}

/** Points in text formats are made from cached chunks; ClickHouse writes every other answer. */
async function answerRange(
  call: Call,
  index: BasketIndex,
  range: SeriesRange,
): Promise<Answer & PointCounts & { headers?: Record<string, string> }> {
  const due = toSeriesDueEnd(indexPoints, INTERVAL, call.now())
  const selection = { range, interval: INTERVAL, order: 'asc', limit: undefined } as const
  const found = await answerPoints(
    call,
    toSource(index),
    { ...selection, mostCached: MOST_CACHED.indexPoints },
    NO_FRAME,
  )
  if (found !== undefined) return { ...found.answer, points: found.points.count, early: found.points.countSince(due) }
  const most = countBuckets(range.from, range.to, INTERVAL)
  const toStatement = ({ from, to }: TimeRange) => ({
    name: 'index-historic',
    sql: `${RECORDS} LIMIT {limit: UInt32}`,
    params: { index: index.key, id: index.id, from, to, limit: most },
  })
  const late = { from: Math.max(range.from, due), to: range.to }
  const [{ records, ...answer }, early] = await Promise.all([
    answerRecords(call, { ...toStatement(range), rowHash: ROW_HASH }, { isLong: most > MOST_CACHED.indexPoints }),
    countRows(call.db, toStatement(late)),
  ])
  return { ...answer, points: records, early: Math.min(early, records) }
}
