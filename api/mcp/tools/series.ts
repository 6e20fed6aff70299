import { z } from 'zod'
import { toSeriesDueEnd } from '../../../shared/buckets.ts'
import { datasets } from '../../../shared/datasets/list.ts'
import {
  countBuckets,
  INTERVAL_SECONDS,
  INTERVALS,
  type Interval,
  type TimeRange,
  toBucketStart,
} from '../../../shared/intervals.ts'
import { FORMATS } from '../../formats/formats.ts'
import { nearestPath } from '../../parameters/kinds.ts'
import { type Call, defineTool, type FileLink, type ToolAnswer } from '../define-tool.ts'
import { Mistake } from '../mistake.ts'
import { chooseInterval, toRange } from '../range.ts'
import { checkWhere, type Parameters, resolveExact, toCursor, toFacts, toOf, toPath, toRecords } from '../requests.ts'
import { findResource, type Resource } from '../resources.ts'
import type { Reply } from '../source.ts'
import { createStatistics, findGaps, type Statistics } from '../statistics.ts'
import { cutToSize, type Json, shorten, valueAt } from '../table.ts'

const MOST_MEMBERS = 6
const MOST_GAPS = 10
/** Maximum number of buckets from which rows and gaps are selected: a year of hours. */
const MOST_READ = 10_000
/** Maximum number of buckets for statistics: a year of five minutes. */
const MOST_SUMMARIZED = 110_000
/** Points are read in pages, so that other requests run in between. */
const PAGE = 2_000

/** Other arguments of the tool set these parameters, or the tool sets them itself. */
const NOT_IN_WHERE = 'id name start end interval points order fill limit cursor fields format bom period days'.split(
  ' ',
)

const text = z.string().optional()

const input = z.strictObject({
  topic: z.string().max(80).describe('One with intervals: tokens/historic-financial, index/historic.'),
  of: z.string().max(200).optional().describe('Its name, symbol or id.'),
  members: z
    .array(z.string().max(120))
    .max(MOST_MEMBERS)
    .optional()
    .describe('Up to 6 member paths; the first numbers without it.'),
  last: z.string().optional().describe('24h, 30d, 12w, 6m, 2y. Default 30d.'),
  start: z.string().optional().describe('Inclusive, UTC, instead of last.'),
  end: z.string().optional().describe('Exclusive; default now.'),
  interval: z.enum(INTERVALS).optional().describe('Default: finest with at most `points`.'),
  points: z.int().min(2).max(400).default(200).describe('Rows: up to 400, default 200.'),
  where: z.object({ basis: text, by: text, include: text }).catchall(z.string()).optional(),
})

type SeriesCall = Call<z.output<typeof input>>

interface ResolvedSeries {
  readonly resource: Resource
  /** The member with the time of a point. */
  readonly time: string
  readonly members: readonly string[]
  readonly interval: Interval
  /** The finest interval that statistics of the range can cover. */
  readonly statisticsInterval: Interval
  readonly range: TimeRange
  readonly parameters: Parameters
}

const MOSTLY_MISSING =
  'More than half is missing. A coarser interval may have it; the tool status with the dataset and an id returns the reason.'

const toStepMs = (interval: Interval) => INTERVAL_SECONDS[interval] * 1000

const isNumber = (type: string) => /^(number|integer)/.test(type)

function toMembers(resource: Resource, requested: readonly string[] | undefined): readonly string[] {
  const numbers = resource.members.filter(({ type }) => isNumber(type)).map(({ path }) => path)
  const unknown = requested?.filter((path) => !numbers.includes(path)) ?? []
  const [first] = unknown
  if (first === undefined) return requested ?? numbers.slice(0, MOST_MEMBERS)
  const near = nearestPath(first, numbers)
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`
  throw new Mistake(`"${resource.name}" has no numbers ${unknown.join(', ')}.${hint} It has ${numbers.join(', ')}.`)
}

/** @throws Mistake for too many points, with the finest interval that has few enough. */
function checkLength(resource: Resource, interval: Interval, range: TimeRange): void {
  const count = countBuckets(range.from, range.to, interval)
  if (count <= MOST_READ) return
  const coarser = resource.intervals.find((one) => countBuckets(range.from, range.to, one) <= MOST_READ)
  const advice = coarser === undefined ? '' : `use interval ${coarser}, or `
  throw new Mistake(
    `The range has ${count} points at ${interval}, but an answer covers at most ${MOST_READ}: ${advice}a shorter range.`,
  )
}

async function resolveSeries(call: SeriesCall): Promise<ResolvedSeries> {
  const { source, input: args } = call
  const resource = await findResource(source, args.topic)
  const { of, where = {}, points } = args
  if (resource.intervals.length === 0) throw new Mistake(`"${resource.name}" is not a series: use the tool query.`)
  checkWhere(resource, where, NOT_IN_WHERE)
  if (resource.takes === 'one' && of === undefined) throw new Mistake(`"${resource.name}" is about one: name it in of.`)
  if (resource.takes === 'none' && of !== undefined)
    throw new Mistake(`"${resource.name}" is about all together: leave out of.`)
  const range = toRange(args, source.now())
  if (args.interval !== undefined && !resource.intervals.includes(args.interval))
    throw new Mistake(`"${resource.name}" has no ${args.interval}, but ${resource.intervals.join(', ')}.`)
  const interval = args.interval ?? chooseInterval(resource.intervals, range, points)
  checkLength(resource, interval, range)
  const members = toMembers(resource, args.members)
  const idsOf = await resolveExact(call, resource.path, of === undefined ? [] : [of])
  const ids = of === undefined ? [] : idsOf(of)
  const [start, end] = [range.from, range.to].map((ms) => new Date(ms).toISOString())
  return {
    resource,
    time: resource.members.find(({ type, path }) => type === 'time' && !path.includes('.'))?.path ?? '',
    members,
    interval,
    statisticsInterval:
      resource.intervals.find((one) => countBuckets(range.from, range.to, one) <= MOST_SUMMARIZED) ?? interval,
    range,
    parameters: { ...toOf(ids.length === 1 ? ids : [of ?? []].flat()), ...where, start, end, interval, order: 'asc' },
  }
}

/** A time at the precision of the interval. */
const toShortTime = (time: string, interval: Interval) =>
  interval === '1d' || interval === '7d' ? time.slice(0, 10) : `${time.slice(0, 16)}Z`

/** The whole range as files, with every member. */
const toFiles = (
  base: string,
  { resource, parameters }: ResolvedSeries,
): readonly (FileLink & { readonly format: string })[] =>
  (['csv', 'parquet'] as const).map((format) => ({
    uri: base + toPath(resource.path, { ...parameters, format }),
    name: `${resource.name}.${format}`,
    mimeType: FORMATS[format].mediaType,
    format,
  }))

/** Every nth known point, so that at most `count` remain; always includes the newest. */
function thin<T>(indexes: readonly T[], count: number): { readonly selected: readonly T[]; readonly step: number } {
  const step = Math.max(1, Math.ceil(indexes.length / Math.max(count, 1)))
  return { selected: indexes.filter((_, index) => (indexes.length - 1 - index) % step === 0), step }
}

const toShowing = (shown: number, all: number, step: number): Json =>
  shown === all
    ? {}
    : {
        showing: `rows thinned to one of ${step} points, ${shown} of ${all}; statistics and gaps are of the whole range. Ask for a shorter range, or open a file of whole, for each point`,
      }

/** The end of the due buckets, in Unix milliseconds: a later bucket without a value is not missing yet. */
function findDueEnd({ operation }: Resource, interval: Interval, now: number): number {
  const own = datasets.filter(({ name }) => operation['x-datasets'].includes(name))
  return Math.min(...own.map((dataset) => toSeriesDueEnd(dataset, interval, now)))
}

/** The points of a series, with a record for each bucket. */
interface Points {
  readonly first: Reply
  readonly records: readonly Json[]
}

function toData(
  call: SeriesCall,
  resolved: ResolvedSeries,
  { rows: { first, records }, statistics }: { readonly rows: Points; readonly statistics: Statistics },
  files: ReturnType<typeof toFiles>,
) {
  const { resource, interval, statisticsInterval, members } = resolved
  const times = records.map((record) => toShortTime(String(record[resolved.time]), interval))
  const due = findDueEnd(resource, interval, call.source.now())
  const dueRecords = records.filter((record) => Date.parse(String(record[resolved.time])) < due)
  const gaps = findGaps(times, dueRecords, members)
  const filled = records.flatMap((record, index) =>
    members.every((path) => valueAt(record, path) === null) ? [] : [index],
  )
  const limit = resource.has('cursor') ? { limit: String(Math.max(records.length, 1)) } : {}
  const { answer, shown } = cutToSize(Math.min(filled.length, call.input.points), (count) => {
    const { selected, step } = thin(filled, count)
    return {
      source: call.source.base + toPath(resource.path, { ...resolved.parameters, fill: 'null', ...limit }),
      ...toFacts(first),
      interval,
      ...toShowing(selected.length, filled.length, step),
      statisticsInterval,
      statistics: statistics.summarize(),
      columns: [resolved.time, ...members],
      rows: selected.map((index) => [
        times[index],
        ...members.map((path) => shorten(valueAt(records[index], path), 0)),
      ]),
      missing: gaps.reduce((sum, { buckets }) => sum + buckets, 0),
      gaps: gaps.slice(0, MOST_GAPS),
      ...(gaps.length > MOST_GAPS ? { moreGaps: gaps.length - MOST_GAPS } : {}),
      ...(dueRecords.length > 2 * filled.length ? { note: MOSTLY_MISSING } : {}),
      whole: Object.fromEntries(files.map(({ format, uri }) => [format, uri])),
    }
  })
  return { answer, points: filled.length, missing: answer.missing, isThinned: shown < filled.length }
}

/** Reads the points of the parameters in pages. */
async function* readPages(
  { source, signal }: Pick<SeriesCall, 'source' | 'signal'>,
  { resource, parameters }: Pick<ResolvedSeries, 'resource' | 'parameters'>,
): AsyncGenerator<Reply> {
  const format = resource.has('format') ? { format: 'ndjson' } : {}
  const limit = resource.has('cursor') ? { limit: String(PAGE) } : {}
  let cursor: string | undefined
  do {
    const page = await source.request(toPath(resource.path, { ...parameters, ...limit, cursor, ...format }), signal)
    yield page
    cursor = toCursor(page)
  } while (cursor !== undefined)
}

/** Reads a record for each bucket of the range. */
async function readBuckets(call: SeriesCall, { resource, parameters }: ResolvedSeries): Promise<Points> {
  const records: Json[] = []
  let first: Reply | undefined
  for await (const page of readPages(call, { resource, parameters: { ...parameters, fill: 'null' } })) {
    first ??= page
    records.push(...toRecords(page))
  }
  return { first: first as Reply, records }
}

/**
 * The ranges of which statistics are computed. Coarse points do not have the values of the first and the last bucket
 * completely, so finer points are read for these.
 */
function toSummarized({ resource, statisticsInterval, range }: ResolvedSeries): (TimeRange & { interval: Interval })[] {
  const [finest = statisticsInterval] = resource.intervals
  const whole = { ...range, interval: statisticsInterval }
  if (statisticsInterval === finest) return [whole]
  const head = {
    from: range.from,
    to: toBucketStart(range.from, statisticsInterval) + toStepMs(statisticsInterval),
  }
  const tail = { from: Math.max(range.from, toBucketStart(range.to - 1, statisticsInterval)), to: range.to }
  return [{ ...head, interval: finest }, whole, { ...tail, interval: finest }]
}

/** Statistics of the range. Coarse points miss the highest and lowest values, and begin and end elsewhere. */
async function readStatistics(call: SeriesCall, resolved: ResolvedSeries, rows: Points): Promise<Statistics> {
  const { resource, time, members, interval, statisticsInterval, parameters } = resolved
  const statistics = createStatistics(members)
  const add = (records: readonly Json[], step: Interval) => {
    for (const record of records) statistics.add(toShortTime(String(record[time]), step), record)
  }
  for (const { from, to, interval: step } of toSummarized(resolved)) {
    if (step === interval && step === statisticsInterval) {
      add(rows.records, step)
      continue
    }
    const [start, end] = [from, to].map((ms) => new Date(ms).toISOString())
    for await (const page of readPages(call, { resource, parameters: { ...parameters, start, end, interval: step } }))
      add(toRecords(page), step)
  }
  return statistics
}

async function run(call: SeriesCall): Promise<ToolAnswer> {
  const resolved = await resolveSeries(call)
  const { resource, interval } = resolved
  const files = toFiles(call.source.base, resolved)
  const rows = await readBuckets(call, resolved)
  const statistics = await readStatistics(call, resolved, rows)
  const { answer, points, missing, isThinned } = toData(call, resolved, { rows, statistics }, files)
  return {
    summary: `${points} points of ${resource.name}, each ${interval}; ${missing} missing.`,
    data: answer,
    files: isThinned ? files.map(({ format: _, ...file }) => file) : [],
  }
}

export const seriesTool = defineTool({
  name: 'series',
  title: 'Read a series',
  description:
    'A history as points: first, last, min, max and change of each member over the range, from points of statisticsInterval; gaps; all as CSV and Parquet. Rows are thinned to fit. A point is the first observation of its bucket.',
  input,
  output: {
    statistics: z.looseObject({}),
    columns: z.array(z.unknown()),
    rows: z.array(z.unknown()),
  },
  call: run,
})
