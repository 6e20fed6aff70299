import { ClickHouseError } from '@clickhouse/client'
import { z } from 'zod'
import { type DatasetFacts, datasets } from '../../shared/datasets/list.ts'
import { END_OF_TIME, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Commit, CommitFeed } from '../../shared/store/commits.ts'

/** What is stored of a dataset; times are Unix milliseconds. */
export interface Count {
  readonly rows: number
  readonly entities: number
  readonly earliest: number
  readonly newest: number
  /** Where the newest row says that it comes from; an empty text where none says it. */
  readonly note: string
}

/** What is stored, by the names of the datasets; none of those that are empty. */
export interface Counts {
  /**
   * As of this moment or a later one. What has begun to be counted is counted for whoever asks next, also when who asked
   * has left: all of it may take longer than anybody waits.
   * @throws DataError `storage`
   */
  read(): Promise<ReadonlyMap<string, Count>>
}

const ofMonth = z.object({
  dataset: z.string(),
  month: z.int(),
  rows: z.int(),
  entities: z.array(z.number()),
  earliest: z.int(),
  newest: z.int(),
  note: z.string(),
})

type MonthCount = z.infer<typeof ofMonth>

/** Months are counted from the year 0. */
const toMonth = (ms: number) => 12 * new Date(ms).getUTCFullYear() + new Date(ms).getUTCMonth()
const toStart = (month: number) => Date.UTC(Math.floor(month / 12), month % 12)

/** Everything that is collected, in months. */
const ALWAYS: TimeRange = { from: toMonth(0), to: toMonth(END_OF_TIME) }

const join = (one: TimeRange, other: TimeRange): TimeRange => ({
  from: Math.min(one.from, other.from),
  to: Math.max(one.to, other.to),
})

/** The counts of a series by month, of the months in parameters `from` and `to`. One about all together counts as one. */
function toCountSql({ name, series }: DatasetFacts, index: number): string {
  const { table, entity = '1', time, source = "''" } = series
  const start = (parameter: string) => `fromUnixTimestamp64Milli({${parameter}${index}: Int64}, 'UTC')`
  return `SELECT '${name}' AS dataset, 12 * toYear(${time}) + toMonth(${time}) - 1 AS month, count() AS rows,
  groupUniqArray(toUInt64(${entity})) AS entities, toUnixTimestamp64Milli(toDateTime64(min(${time}), 3)) AS earliest,
  toUnixTimestamp64Milli(toDateTime64(max(${time}), 3)) AS newest, toString(argMax(${source}, ${time})) AS note
FROM ${table} FINAL
WHERE ${time} >= ${start('from')} AND ${time} < ${start('to')}
GROUP BY month`
}

/** Months by dataset. */
type Asked = ReadonlyMap<DatasetFacts, TimeRange>

/** ClickHouse's code for a statement that would read more rows than it may; it says so before it reads any. */
const TOO_MANY_ROWS = '158'
/** What 2 cores count in 20 seconds; a statement of the API may take a minute. */
const MOST_ROWS = 500_000_000

/**
 * The counts of some months of some datasets, in one statement; undefined where it would have to read more than `mostRows`,
 * if so many are given.
 */
async function countMonths(db: Database, asked: Asked, mostRows?: number): Promise<MonthCount[] | undefined> {
  const params: Record<string, number> = {}
  for (const [index, { from, to }] of [...asked.values()].entries()) {
    params[`from${index}`] = toStart(from)
    params[`to${index}`] = toStart(to)
  }
  const sql = [...asked.keys()].map(toCountSql).join('\nUNION ALL\n')
  // A server that is told to would break off at so many rows instead, and tell what it has counted.
  const settings =
    mostRows === undefined ? {} : { max_rows_to_read: String(mostRows), read_overflow_mode: 'throw' as const }
  try {
    return await db.rows({ name: 'count-months', sql, params, settings, schema: ofMonth })
  } catch (error) {
    const { cause } = error as Error
    const isTooMany = cause instanceof ClickHouseError && cause.code === TOO_MANY_ROWS
    if (mostRows !== undefined && isTooMany) return undefined
    throw error
  }
}

/** Some datasets and the others, or of one dataset the months before and after; undefined for a month of a dataset. */
function halve(asked: Asked): [Asked, Asked] | undefined {
  const entries = [...asked]
  const middle = Math.ceil(entries.length / 2)
  if (entries.length > 1) return [new Map(entries.slice(0, middle)), new Map(entries.slice(middle))]
  const [[dataset, { from, to }]] = entries as [[DatasetFacts, TimeRange]]
  if (to - from <= 1) return undefined
  const at = Math.ceil((from + to) / 2)
  return [new Map([[dataset, { from, to: at }]]), new Map([[dataset, { from: at, to }]])]
}

function toCount(months: readonly MonthCount[]): Count {
  const newest = months.reduce((one, other) => (other.newest > one.newest ? other : one))
  return {
    rows: months.reduce((sum, { rows }) => sum + rows, 0),
    entities: new Set(months.flatMap(({ entities }) => entities)).size,
    earliest: Math.min(...months.map(({ earliest }) => earliest)),
    newest: newest.newest,
    note: newest.note,
  }
}

/**
 * Counts by month, each of which is counted again when a commit concerns it. Without anybody who tells of commits,
 * everything is counted each time. A statement reads `mostRows` rows at most, or a month of a dataset.
 */
export function createCounts(commits: CommitFeed, db: Database, mostRows: number = MOST_ROWS): Counts {
  const kept = new Map<DatasetFacts, Map<number, MonthCount>>(datasets.map((dataset) => [dataset, new Map()]))
  const outdated = new Map<DatasetFacts, TimeRange>(datasets.map((dataset) => [dataset, ALWAYS]))
  const outdate = (dataset: DatasetFacts, months: TimeRange) => {
    outdated.set(dataset, join(outdated.get(dataset) ?? months, months))
  }
  commits.follow((change: Commit | undefined) => {
    for (const dataset of datasets) {
      if (change !== undefined && change.dataset !== dataset.name) continue
      const { from, to } = change ?? {}
      outdate(dataset, from === undefined || to === undefined ? ALWAYS : { from: toMonth(from), to: toMonth(to) + 1 })
    }
  })
  const replace = (asked: Asked, counted: readonly MonthCount[]) => {
    for (const [dataset, { from, to }] of asked) {
      const months = kept.get(dataset)
      for (const month of [...(months?.keys() ?? [])]) if (month >= from && month < to) months?.delete(month)
      for (const count of counted) if (count.dataset === dataset.name) months?.set(count.month, count)
    }
  }
  const countOutdated = async () => {
    const left: Asked[] = [new Map(outdated)]
    // What changes from here on is counted again, whether this count saw it or not.
    outdated.clear()
    try {
      for (let part = left.at(-1); part !== undefined; part = left.at(-1)) {
        const halves = halve(part)
        const counted = await countMonths(db, part, halves && mostRows)
        left.pop()
        if (counted !== undefined) replace(part, counted)
        else if (halves !== undefined) left.push(...halves)
      }
    } catch (error) {
      for (const part of left) for (const [dataset, months] of part) outdate(dataset, months)
      throw error
    }
  }
  let underway: Promise<void> | undefined
  /** What is being counted may be outdated by now, so that it takes one more count at most; one for all who wait for it. */
  const count = async () => {
    // If it fails, what it was to count is outdated again.
    await underway?.catch(() => undefined)
    if (outdated.size > 0) {
      underway ??= countOutdated().finally(() => {
        underway = undefined
      })
    }
    await underway
  }
  return {
    read: async () => {
      if (commits.source === 'nobody') for (const dataset of datasets) outdate(dataset, ALWAYS)
      await count()
      const counts = [...kept].flatMap(([{ name }, months]) =>
        months.size === 0 ? [] : ([[name, toCount([...months.values()])]] as const),
      )
      return new Map(counts)
    },
  }
}
