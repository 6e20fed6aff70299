import { z } from 'zod'
import { INTERVALS, type Interval } from '../../../shared/intervals.ts'
import { type Call, defineTool, type Told } from '../define-tool.ts'
import { Mistake } from '../mistake.ts'
import { chooseInterval, toRange } from '../range.ts'
import { checkWhere, type Parameters, toFacts, toOf, toPath, toRecords } from '../requests.ts'
import type { Reply } from '../source.ts'
import { findGaps, toStatistics } from '../statistics.ts'
import { cutToSize, type Json, shorten, valueAt } from '../table.ts'
import { findTopic, type Topic } from '../topics.ts'

const MOST_MEMBERS = 6
const MOST_GAPS = 10

/** Arguments of the tool, what it chooses itself, and other words for the range. */
const NOT_IN_WHERE = 'id name start end interval points order fill limit cursor fields format period days'.split(' ')

const input = z.strictObject({
  topic: z
    .string()
    .max(80)
    .describe('One with intervals: tokens/historic-financial, daos/treasury/historic, index/historic.'),
  of: z.string().max(200).optional().describe('Name or id of the token or DAO.'),
  members: z
    .array(z.string().max(120))
    .max(MOST_MEMBERS)
    .optional()
    .describe('Member paths; the first numbers without it.'),
  last: z.string().optional().describe('24h, 30d, 12w, 6m, 2y. Default 30d.'),
  start: z.string().optional().describe('Inclusive, UTC, instead of last.'),
  end: z.string().optional().describe('Exclusive; now without it.'),
  interval: z.enum(INTERVALS).optional().describe('Without it the finest with at most `points`.'),
  points: z.int().min(2).max(400).default(200),
  where: z.record(z.string(), z.string()).optional().describe('Other parameters of the topic, such as basis.'),
})

type SeriesCall = Call<z.output<typeof input>>

interface Asked {
  readonly topic: Topic
  /** The member that says when. */
  readonly time: string
  readonly members: readonly string[]
  readonly interval: Interval
  readonly parameters: Parameters
  /** Said where the range holds more points than are asked for. */
  readonly isCut: boolean
}

const MOSTLY_MISSING =
  'More than half is missing. A coarser interval may have it; status with the dataset and an id tells why.'

const isNumber = (type: string) => /^(number|integer)/.test(type)

function toMembers(topic: Topic, wanted: readonly string[] | undefined): readonly string[] {
  const numbers = topic.members.filter(({ type }) => isNumber(type)).map(({ path }) => path)
  const unknown = wanted?.filter((path) => !numbers.includes(path)) ?? []
  if (unknown.length > 0)
    throw new Mistake(`"${topic.name}" has no numbers ${unknown.join(', ')}. It has ${numbers.join(', ')}.`)
  return wanted ?? numbers.slice(0, MOST_MEMBERS)
}

async function toAsked({ source, input: asked }: SeriesCall): Promise<Asked> {
  const topic = await findTopic(source, asked.topic)
  const { of, where = {}, points } = asked
  if (topic.intervals.length === 0) throw new Mistake(`"${topic.name}" is no series: ask for it with query.`)
  checkWhere(topic, where, NOT_IN_WHERE)
  if (topic.takes === 'one' && of === undefined) throw new Mistake(`"${topic.name}" is about one: name it in of.`)
  if (topic.takes === 'none' && of !== undefined)
    throw new Mistake(`"${topic.name}" is about all together: leave out of.`)
  const range = toRange(asked, source.now())
  if (asked.interval !== undefined && !topic.intervals.includes(asked.interval))
    throw new Mistake(`"${topic.name}" has no ${asked.interval}, but ${topic.intervals.join(', ')}.`)
  const { interval, from } = chooseInterval(
    asked.interval === undefined ? topic.intervals : [asked.interval],
    range,
    points,
  )
  const [start, end] = [from, range.to].map((ms) => new Date(ms).toISOString())
  return {
    topic,
    time: topic.members.find(({ type, path }) => type === 'time' && !path.includes('.'))?.path ?? '',
    members: toMembers(topic, asked.members),
    interval,
    parameters: { ...toOf(of === undefined ? [] : [of]), ...where, start, end, interval, order: 'asc' },
    isCut: from > range.from,
  }
}

/** A time without what the interval says anyway. */
const toShortTime = (time: string, interval: Interval) =>
  interval === '1d' || interval === '7d' ? time.slice(0, 10) : `${time.slice(0, 16)}Z`

/** The addresses of the whole as files, with every member. */
const toWhole = (base: string, { topic, parameters }: Asked) =>
  Object.fromEntries(['csv', 'parquet'].map((format) => [format, base + toPath(topic.path, { ...parameters, format })]))

function toShowing(asked: Asked, shown: number, buckets: number): Json {
  if (shown === buckets && !asked.isCut) return {}
  return {
    showing: `the newest ${shown} points of the range; ask with an end for older ones, fewer members or a coarser interval`,
  }
}

function toData(call: SeriesCall, asked: Asked, reply: Reply) {
  const { topic, interval, members } = asked
  const all = toRecords(reply)
  const records = all.slice(-call.input.points)
  const times = records.map((record) => toShortTime(String(record[asked.time]), interval))
  const gaps = findGaps(times, records, members)
  const known = records.flatMap((record, index) =>
    members.every((path) => valueAt(record, path) === null) ? [] : [index],
  )
  const statistics = members.map((path) => [
    path,
    toStatistics(
      times,
      records.map((record) => valueAt(record, path)),
    ) ?? null,
  ])
  const limit = topic.has('cursor') ? { limit: String(Math.max(records.length, 1)) } : {}
  const { made, shown } = cutToSize(known.length, (count) => {
    const rows = known.slice(known.length - count)
    return {
      source: call.source.base + toPath(topic.path, { ...asked.parameters, fill: 'null', ...limit }),
      ...toFacts(reply),
      interval,
      ...toShowing(asked, count, known.length),
      statistics: Object.fromEntries(statistics),
      columns: [asked.time, ...members],
      rows: rows.map((index) => [times[index], ...members.map((path) => shorten(valueAt(records[index], path), 0))]),
      missing: gaps.reduce((sum, { buckets }) => sum + buckets, 0),
      gaps: gaps.slice(0, MOST_GAPS),
      ...(gaps.length > MOST_GAPS ? { moreGaps: gaps.length - MOST_GAPS } : {}),
      ...(records.length > 2 * known.length ? { note: MOSTLY_MISSING } : {}),
      whole: toWhole(call.source.base, asked),
    }
  })
  return { made, shown, missing: made.missing }
}

async function run(call: SeriesCall): Promise<Told> {
  const asked = await toAsked(call)
  const { topic, interval } = asked
  const format = topic.has('format') ? { format: 'ndjson' } : {}
  const limit = topic.has('cursor') ? { limit: String(call.input.points + 1) } : {}
  const path = toPath(topic.path, { ...asked.parameters, fill: 'null', ...limit, ...format })
  const { made, shown, missing } = toData(call, asked, await call.source.ask(path, call.signal))
  return { line: `${shown} points of ${topic.name}, each ${interval}; ${missing} missing.`, data: made }
}

export const seriesTool = defineTool({
  name: 'series',
  description:
    'A history as points: picks the interval, gives first, last, min, max and change of each member over them, the gaps, and the addresses of the whole as CSV and Parquet. A point is the first observation of its bucket.',
  input,
  call: run,
})
