import { z } from 'zod'
import { type DatasetFacts, datasets } from '../../shared/datasets/list.ts'
import type { TimeRange } from '../../shared/intervals.ts'
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
  /** @throws DataError `storage` */
  read(db: Database): Promise<ReadonlyMap<string, Count>>
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
const ALWAYS: TimeRange = { from: toMonth(0), to: toMonth(Date.parse('2200-01-01')) }

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

/** The counts of some months of some datasets, in one statement. */
async function countMonths(db: Database, asked: ReadonlyMap<DatasetFacts, TimeRange>): Promise<MonthCount[]> {
  const params: Record<string, number> = {}
  for (const [index, { from, to }] of [...asked.values()].entries()) {
    params[`from${index}`] = toStart(from)
    params[`to${index}`] = toStart(to)
  }
  const sql = [...asked.keys()].map(toCountSql).join('\nUNION ALL\n')
  return db.rows({ name: 'count-months', sql, params, schema: ofMonth })
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
 * everything is counted each time.
 */
export function createCounts(commits: CommitFeed): Counts {
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
  const replace = (asked: ReadonlyMap<DatasetFacts, TimeRange>, counted: readonly MonthCount[]) => {
    for (const [dataset, { from, to }] of asked) {
      const months = kept.get(dataset)
      for (const month of [...(months?.keys() ?? [])]) if (month >= from && month < to) months?.delete(month)
      for (const count of counted) if (count.dataset === dataset.name) months?.set(count.month, count)
    }
  }
  return {
    read: async (db) => {
      if (commits.source === 'nobody') for (const dataset of datasets) outdate(dataset, ALWAYS)
      const asked = new Map(outdated)
      // What changes from here on is counted again, whether this count saw it or not.
      outdated.clear()
      try {
        if (asked.size > 0) replace(asked, await countMonths(db, asked))
      } catch (error) {
        for (const [dataset, months] of asked) outdate(dataset, months)
        throw error
      }
      const counts = [...kept].flatMap(([{ name }, months]) =>
        months.size === 0 ? [] : ([[name, toCount([...months.values()])]] as const),
      )
      return new Map(counts)
    },
  }
}
