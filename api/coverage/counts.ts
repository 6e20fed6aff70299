import { ClickHouseError } from '@clickhouse/client'
import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { END_OF_TIME, type TimeRange } from '../../shared/intervals.ts'
import type { ChangeEvent, ChangeFeed, Database } from '../../shared/store/store.ts'

/** Stored rows of a dataset; times are Unix milliseconds. */
export interface Count {
  readonly rows: number
  readonly entities: number
  readonly earliest: number
  readonly newest: number
  /** The source that the newest row names; an empty text if it names none. */
  readonly note: string
}

/** Stored rows by dataset name; empty datasets are absent. */
export interface Counts {
  /**
   * Counts as of the call or later. A running count continues for the next caller if its caller disconnects, because a
   * full count may take longer than any client waits.
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

/** The months of all collected data. */
const ALWAYS: TimeRange = { from: toMonth(0), to: toMonth(END_OF_TIME) }

const join = (a: TimeRange, b: TimeRange): TimeRange => ({
  from: Math.min(a.from, b.from),
  to: Math.max(a.to, b.to),
})

/**
 * SQL that counts a series by month, for the months in the parameters `from` and `to`. A dataset without entities
 * counts as one entity.
 */
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
type MonthsOfDatasets = ReadonlyMap<DatasetFacts, TimeRange>

/** ClickHouse's error code for a statement that would read more rows than allowed; returned before any row is read. */
const TOO_MANY_ROWS = '158'
/** 2 cores count this number of rows in 20 seconds; a statement of the API may take one minute. */
const MOST_ROWS = 500_000_000

/**
 * Counts some months of some datasets in one statement. Returns undefined if it would read more than `mostRows` rows;
 * without `mostRows` there is no limit.
 */
async function countMonths(
  db: Database,
  requested: MonthsOfDatasets,
  mostRows?: number,
): Promise<MonthCount[] | undefined> {
  const params: Record<string, number> = {}
  for (const [index, { from, to }] of [...requested.values()].entries()) {
    params[`from${index}`] = toStart(from)
    params[`to${index}`] = toStart(to)
  }
  const sql = [...requested.keys()].map(toCountSql).join('\nUNION ALL\n')
  // With another server default (`break`), ClickHouse would stop at the limit and return a partial count.
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

/** Splits the datasets in two, or the months of a single dataset; undefined for one month of one dataset. */
function halve(requested: MonthsOfDatasets): [MonthsOfDatasets, MonthsOfDatasets] | undefined {
  const entries = [...requested]
  const middle = Math.ceil(entries.length / 2)
  if (entries.length > 1) return [new Map(entries.slice(0, middle)), new Map(entries.slice(middle))]
  const [[dataset, { from, to }]] = entries as [[DatasetFacts, TimeRange]]
  if (to - from <= 1) return undefined
  const at = Math.ceil((from + to) / 2)
  return [new Map([[dataset, { from, to: at }]]), new Map([[dataset, { from: at, to }]])]
}

function toCount(months: readonly MonthCount[]): Count {
  const newest = months.reduce((a, b) => (b.newest > a.newest ? b : a))
  return {
    rows: months.reduce((sum, { rows }) => sum + rows, 0),
    entities: new Set(months.flatMap(({ entities }) => entities)).size,
    earliest: Math.min(...months.map(({ earliest }) => earliest)),
    newest: newest.newest,
    note: newest.note,
  }
}

/**
 * Caches counts by month and recounts a month after a change event affects it. Without change events everything is
 * recounted each time. A statement reads at most `mostRows` rows, or one month of one dataset.
 */
export function createCounts(changeFeed: ChangeFeed, db: Database, mostRows: number = MOST_ROWS): Counts {
  const cached = new Map<DatasetFacts, Map<number, MonthCount>>(datasets.map((dataset) => [dataset, new Map()]))
  const outdated = new Map<DatasetFacts, TimeRange>(datasets.map((dataset) => [dataset, ALWAYS]))
  const outdate = (dataset: DatasetFacts, months: TimeRange) => {
    outdated.set(dataset, join(outdated.get(dataset) ?? months, months))
  }
  changeFeed.follow((change: ChangeEvent | undefined) => {
    for (const dataset of datasets) {
      if (change !== undefined && change.dataset !== dataset.name) continue
      const { from, to } = change ?? {}
      outdate(dataset, from === undefined || to === undefined ? ALWAYS : { from: toMonth(from), to: toMonth(to) + 1 })
    }
  })
  const replace = (requested: MonthsOfDatasets, counted: readonly MonthCount[]) => {
    for (const [dataset, { from, to }] of requested) {
      const months = cached.get(dataset)
      for (const month of [...(months?.keys() ?? [])]) if (month >= from && month < to) months?.delete(month)
      for (const count of counted) if (count.dataset === dataset.name) months?.set(count.month, count)
    }
  }
  const countOutdated = async () => {
    const remaining: MonthsOfDatasets[] = [new Map(outdated)]
    // Changes from here on are counted again, whether this count included them or not.
    outdated.clear()
    try {
      for (let part = remaining.at(-1); part !== undefined; part = remaining.at(-1)) {
        const halves = halve(part)
        const counted = await countMonths(db, part, halves && mostRows)
        remaining.pop()
        if (counted !== undefined) replace(part, counted)
        else if (halves !== undefined) remaining.push(...halves)
      }
    } catch (error) {
      for (const part of remaining) for (const [dataset, months] of part) outdate(dataset, months)
      throw error
    }
  }
  let underway: Promise<void> | undefined
  /** A running count may be outdated, so one more count may follow, which all waiting callers share. */
  const count = async () => {
    // If the running count fails, its months are marked as outdated again.
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
      if (changeFeed.source === 'nobody') for (const dataset of datasets) outdate(dataset, ALWAYS)
      await count()
      const counts = [...cached].flatMap(([{ name }, months]) =>
        months.size === 0 ? [] : ([[name, toCount([...months.values()])]] as const),
      )
      return new Map(counts)
    },
  }
}
