import { z } from 'zod'
import { toSeriesDueEnd } from '../../shared/buckets.ts'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { countBuckets, EARLIEST_MS, type Interval, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import { toJson } from '../../shared/json.ts'
import { toStaleAt } from '../../shared/store/store.ts'
import {
  type Answer,
  answerRecords,
  findOwnersOfPage,
  type RecordSource,
  type Representation,
  refuseCursor,
} from '../formats/formats.ts'
import { Problem } from '../problem/problem.ts'
import type { AppContext } from '../route/define-route.ts'
import type { Named } from '../route/entities.ts'
import { type SeriesQuestion, startAfter, toExpiry, toSeriesHeaders, toSeriesRange } from './series.ts'

/** A series of one or several owners as a table. */
export interface TableSource extends Pick<RecordSource, 'name' | 'rowHash' | 'identity'> {
  readonly dataset: DatasetFacts
  /** The order of the rows of an owner by time. */
  readonly order: 'asc' | 'desc'
  /**
   * SQL for the first `limit` rows in order: `owner` (the key), `row_at` (start of the bucket), `as_of` and `record`.
   * Parameters: the owners `entities`; `from` and `to` in Unix milliseconds on the grid; of the owner `resumed` only
   * rows with buckets from `resume` on, or before it if the newest are first.
   */
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
  /**
   * SQL that selects `newest`, the time up to which the rows of `entities` were read (Unix milliseconds). If absent, the
   * table is as old as its newest row.
   */
  readonly readUpTo?: string
}

/** The owner of a row, and the start of its bucket in Unix milliseconds. */
export interface TablePlace {
  readonly owner: number
  readonly at: number
}

/** The parameters of `TableSource.sql`. */
export interface TableRange extends TimeRange {
  readonly entities: readonly number[]
  readonly resumed: number
  readonly resume: number
}

const ROW_AT = 'toUnixTimestamp64Milli(row_at)'

/** SQL for `TableSource.sql` from unordered rows of the range, with `record` and so on. */
export function inTableOrder(rows: string, order: 'asc' | 'desc'): string {
  const [isAfter, direction] = order === 'asc' ? ['>=', 'ASC'] : ['<', 'DESC']
  return `SELECT * FROM (${rows})
WHERE owner != {resumed: UInt64} OR ${ROW_AT} ${isAfter} {resume: Int64}
ORDER BY owner, row_at ${direction}
LIMIT {limit: UInt64}`
}

/** @throws Problem `invalid_parameter` for parameters of one owner only. */
export function checkTable({ order, points, fill }: SeriesQuestion, usual: 'asc' | 'desc'): void {
  if ((order ?? usual) === usual && points === undefined && fill === undefined) return
  const param = points !== undefined ? 'points' : fill !== undefined ? 'fill' : 'order'
  throw new Problem('invalid_parameter', `${param} is for one id or name, not for a table of several.`, { param })
}

const placeValues = z.tuple([z.int(), z.int()])

/**
 * The last row of a page, from a cursor's sort values.
 * @throws Problem `invalid_parameter` for a position outside the range, or of another owner.
 */
export function readTablePlace(after: string, owners: readonly number[], { from, to }: TimeRange): TablePlace {
  const { data: [owner, at] = [] } = placeValues.safeParse(toJson(after))
  if (owner === undefined || at === undefined || !owners.includes(owner) || at < from || at >= to) throw refuseCursor()
  return { owner, at }
}

/** The first word of the cursor after a page with rows of each owner. */
const OF_EACH = 'each'

/** How many rows of each owner the pages before had, and the end of the range of the first page in Unix milliseconds. */
const roundValues = z.tuple([z.literal(OF_EACH), z.int().positive(), z.int()])

/** Whether a cursor is that of `answerEachTable`. */
export const isOfEach = (after: string): boolean => after !== '' && roundValues.safeParse(toJson(after)).success

/** Maximum buckets of an answer without a limit: more would exceed the time limit of a query. */
const MAX_BUCKETS = 5_000_000

const counted = z.object({ owner: z.number(), rows: z.int(), early: z.int(), oldest: z.int() })
type Counts = ReadonlyMap<number, z.infer<typeof counted>>
const newestRow = z.object({ newest: z.int() })

interface TableQuery {
  readonly interval: Interval
  readonly start?: number | undefined
  readonly end?: number | undefined
  readonly limit?: number | undefined
}

/** The buckets of a page: the ranges of its owners, between the last row of the page before and its own. */
function defineBuckets(
  { order }: TableSource,
  { interval, start }: TableQuery,
  range: TimeRange,
  place: TablePlace | undefined,
) {
  /** The bound between a row and those that follow it. */
  const toBound = (at: number) => (order === 'asc' ? startAfter(at, interval) : toBucketStart(at, interval))
  const toRangeOf = (owner: number, cut?: TablePlace): TimeRange => {
    const [lower, upper] = order === 'asc' ? [place, cut] : [cut, place]
    return {
      from: lower?.owner === owner ? toBound(lower.at) : range.from,
      to: upper?.owner === owner ? Math.min(toBound(upper.at), range.to) : range.to,
    }
  }
  const countIn = ({ from, to }: TimeRange) => countBuckets(from, to, interval)
  return {
    resume: place === undefined ? range.from : toBound(place.at),
    perOwner: countIn(range),
    countAll: (owners: readonly number[]) => owners.reduce((sum, owner) => sum + countIn(toRangeOf(owner)), 0),
    /**
     * Number of due buckets without a row. The last owner of `counts` may have one row more than the page, the last in order.
     */
    countMissing: (owners: readonly number[], counts: Counts, records: number, due: number, cut?: TablePlace) => {
      let [expected, early, seen] = [0, 0, 0]
      for (const owner of owners) {
        const found = counts.get(owner) ?? { rows: 0, early: 0, oldest: range.to }
        const rows = Math.min(found.rows, records - seen)
        seen += rows
        early += order === 'asc' ? Math.max(0, rows - (found.rows - found.early)) : Math.min(found.early, rows)
        const { from, to } = toRangeOf(owner, cut)
        const isFromOldest = start === undefined && owner !== cut?.owner
        const first = isFromOldest ? toBucketStart(found.oldest, interval) : from
        expected += countIn({ from: Math.max(first, from), to: Math.min(to, due) })
        if (owner === cut?.owner) break
      }
      return Math.max(0, expected - (records - early))
    },
  }
}

/**
 * A series of one or several owners as a table: owner after owner in the order of their ids. `limit` counts the rows of
 * all owners together; without it, a start is required. Missing buckets are counted as in the answers of each owner
 * alone, without `start` from its oldest row on. Returns the parameters of the rows, too.
 * @throws DataError `storage`, Problem `invalid_parameter`.
 */
export async function answerSeriesTable(
  call: Pick<AppContext, 'db' | 'now'> & {
    readonly representation: Representation
    readonly entities: readonly Named[]
  },
  source: TableSource,
  query: TableQuery,
): Promise<{ readonly answer: Answer; readonly records: number; readonly range: TableRange }> {
  const { db, representation } = call
  const { name, dataset, order, sql, readUpTo } = source
  const { interval, limit } = query
  const now = call.now()
  const keys = call.entities.map(({ key }) => key)
  const range = toSeriesRange({ start: query.start ?? EARLIEST_MS, end: query.end, interval }, now)
  const due = toSeriesDueEnd(dataset, interval, now)
  const place = representation.after === '' ? undefined : readTablePlace(representation.after, keys, range)
  const rest = place === undefined ? keys : keys.filter((key) => key >= place.owner)
  const buckets = defineBuckets(source, query, range, place)
  const most = buckets.countAll(rest)
  if (limit === undefined && most > MAX_BUCKETS) {
    const detail = `This range has ${most} buckets: give a limit and follow the Link of each answer, or ask for at most ${MAX_BUCKETS}.`
    throw new Problem('invalid_parameter', detail, { param: 'limit' })
  }
  // A shard of a distributed table cannot parse times close to 1970.
  const stored = { from: Math.max(range.from, EARLIEST_MS), to: range.to }
  const resumed = { resumed: place?.owner ?? 0, resume: buckets.resume }
  const params = { ...source.params, ...stored, ...resumed }
  const count = (entities: readonly number[], limit: number, from = stored.from) =>
    db.rows({
      name: `${name}-owners`,
      sql: `SELECT owner, count() AS rows, countIf(${ROW_AT} >= {due: Int64}) AS early, min(${ROW_AT}) AS oldest
FROM (SELECT owner, row_at FROM (${sql})) GROUP BY owner`,
      params: { ...params, entities, from, due, limit },
      settings: { max_threads: 1 },
      schema: counted,
    })
  const findOwners = async (): Promise<{ readonly owners: readonly number[]; readonly counts: Counts }> => {
    if (limit !== undefined) return findOwnersOfPage(rest, { limit, size: Math.ceil(limit / buckets.perOwner) }, count)
    // In a complete table only the rows that are not due are counted.
    const early = due < range.to ? await count(rest, most, Math.max(stored.from, due)) : []
    return { owners: rest, counts: new Map(early.map((one) => [one.owner, one])) }
  }
  const { owners, counts } = await findOwners()
  const { next, records, ...answer } = await answerRecords(
    { db, representation },
    {
      ...source,
      sql: `SELECT *, tuple(owner, ${ROW_AT}) AS page_key FROM (${sql})`,
      params: { ...params, entities: owners, limit: most },
      ...(limit === undefined ? {} : { page: limit }),
    },
  )
  const cut = next === '' ? undefined : readTablePlace(next, keys, range)
  const endsNow = range.open && (cut === undefined || order === 'desc')
  const readNewest = async (statement: string) => {
    const statementOf = { name: `${name}-newest`, sql: statement, params: { entities: keys }, schema: newestRow }
    return (await db.rows(statementOf))[0]?.newest ?? 0
  }
  const newest = endsNow ? (readUpTo === undefined ? answer.asOf : await readNewest(readUpTo)) : null
  const missing = buckets.countMissing(owners, counts, records, due, cut)
  return {
    answer: {
      ...answer,
      headers: { ...answer.headers, ...toSeriesHeaders(interval, records, missing) },
      staleAt: newest === null || newest === 0 ? null : toStaleAt(newest, dataset),
      ...toExpiry(range, due, now),
    },
    records,
    range: { ...stored, ...resumed, entities: owners },
  }
}

const timesOfOwner = z.object({ owner: z.number(), times: z.array(z.int()) })

/** The rows of an owner from `skip` on, at most `each`, and how many of its buckets these rows leave out. */
function readRound(
  times: readonly number[],
  { skip, each }: { readonly skip: number; readonly each: number },
  { from, to, start, due, interval }: TimeRange & Pick<TableQuery, 'start' | 'interval'> & { readonly due: number },
) {
  const shown = times.slice(skip, skip + each)
  const isCut = times.length > skip + each
  // The pages before counted the buckets of an owner that has no more rows.
  if (shown.length === 0 && skip > 0) return { isCut, missing: 0 }
  const first = isCut || start === undefined ? (shown.at(-1) ?? to) : from
  const expected = countBuckets(first, Math.min(times[skip - 1] ?? to, due), interval)
  return { isCut, missing: Math.max(0, expected - shown.filter((at) => at < due).length) }
}

/**
 * A series of several owners as a table with the newest `each` rows of every owner, owner after owner in the order of their
 * ids. The next page has the rows before these. Missing buckets are counted as in `answerSeriesTable`.
 * @throws DataError `storage`, Problem `invalid_parameter`.
 */
export async function answerEachTable(
  call: Parameters<typeof answerSeriesTable>[0],
  source: TableSource,
  query: Omit<TableQuery, 'limit'> & { readonly each: number },
): Promise<Answer> {
  const { db, representation } = call
  const { name, dataset } = source
  const { interval, start, each } = query
  const now = call.now()
  const range = toSeriesRange({ start: start ?? EARLIEST_MS, end: query.end, interval }, now)
  const due = toSeriesDueEnd(dataset, interval, now)
  const [, skip = 0, to = range.to] = roundValues.safeParse(toJson(representation.after || 'null')).data ?? []
  if (to > range.to) throw refuseCursor()
  const keys = call.entities.map(({ key }) => key)
  const from = Math.max(range.from, EARLIEST_MS)
  const params = {
    ...{ ...source.params, from, to, entities: keys, resumed: 0, resume: to },
    limit: keys.length * countBuckets(from, to, interval),
  }
  const toRound = (skipped: string, rows: string) => `SELECT * FROM (${source.sql}) ORDER BY owner, row_at DESC
LIMIT ${skipped}, ${rows} BY owner`
  const owners = await db.rows({
    name: `${name}-owners`,
    sql: `SELECT owner, arrayReverseSort(groupArray(${ROW_AT})) AS times
FROM (${toRound('0', '{rows: UInt64}')}) GROUP BY owner`,
    params: { ...params, rows: skip + each + 1 },
    settings: { max_threads: 1 },
    schema: timesOfOwner,
  })
  const timesOf = new Map(owners.map(({ owner, times }) => [owner, times]))
  const rounds = keys.map((key) =>
    readRound(timesOf.get(key) ?? [], { skip, each }, { from: range.from, to, start, due, interval }),
  )
  const {
    next: _,
    records,
    ...answer
  } = await answerRecords(
    { db, representation },
    { ...source, sql: toRound('{skip: UInt64}', '{each: UInt64}'), params: { ...params, skip, each } },
  )
  const next = rounds.some(({ isCut }) => isCut)
    ? { Link: representation.nextLink(JSON.stringify([OF_EACH, skip + each, to])) }
    : {}
  const missing = rounds.reduce((sum, one) => sum + one.missing, 0)
  return {
    ...answer,
    headers: { ...answer.headers, ...next, ...toSeriesHeaders(interval, records, missing) },
    staleAt: range.open && skip === 0 && answer.asOf ? toStaleAt(answer.asOf, dataset) : null,
    ...toExpiry({ ...range, to }, due, now),
  }
}
