import { createHash, randomUUID } from 'node:crypto'
import { z } from 'zod'
import { toBuckets, toDueEnd, toStepSeconds } from '../../shared/buckets.ts'
import type { Interval, TimeRange } from '../../shared/intervals.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import { ENTIRE_REGISTRY } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { type Database, type Statement, toClickHouseCode } from '../../shared/store/store.ts'
import type { Partition } from './catalog.ts'
import { type Published, toColumns, toOrder, toSelect } from './define-published.ts'
import type { Target } from './target.ts'

/** The source and the target of the partitions of a publication. */
export interface PartitionOptions {
  readonly db: Database
  readonly registry: Registry
  readonly target: Target
  readonly now?: () => number
  readonly signal?: AbortSignal
  readonly onPartition?: (path: string, rows: number) => void
  /** Threads of ClickHouse for each statement; default: one for each core. */
  readonly threads?: number
}

/** The rows of a file, as ClickHouse counted and hashed them. */
interface Content {
  readonly rows: number
  readonly hash: string
  readonly entities: readonly number[]
}

/** The rows of one file: a whole dataset, or one interval and one month or year of a series. */
export interface FileContent extends TimeRange, Content {
  readonly keys: Readonly<Record<string, string>>
  readonly interval: Interval
}

/** Settings of the statements that read the stored rows. */
const toSettings = ({ threads }: Pick<PartitionOptions, 'threads'>) => ({
  max_execution_time: 0,
  ...(threads === undefined ? {} : { max_threads: threads }),
})
const ALL: TimeRange = { from: 0, to: Date.parse('2100-01-01') }

/** The parameters of a range in the rows of a dataset. */
export const toParams = ({ from, to }: TimeRange) => {
  const toText = (ms: number) => new Date(ms).toISOString().slice(0, -1)
  return { from: toText(from), to: toText(to) }
}

const extent = z.object({ year: z.int(), month: z.int() })
const content = z.object({
  year: z.int(),
  month: z.int(),
  rows: z.int(),
  hash: z.string(),
  entities: z.array(z.number()),
})

/**
 * The ranges of the statements that read the rows of a dataset: years with rows, and months for an interval whose files
 * have a month each.
 */
async function listRanges(options: PartitionOptions, dataset: Published, interval: Interval): Promise<TimeRange[]> {
  const place = dataset.extent?.(interval)
  if (place === undefined) return []
  const isByMonth = dataset.intervals !== undefined && !dataset.isYearly?.(interval)
  const time = `toDateTime64(${place.time}, 3, 'UTC')`
  const rows = await options.db.rows({
    name: `publish-${dataset.name}-extent`,
    sql: `SELECT DISTINCT toInt32(toYear(${time})) AS year, toInt32(${isByMonth ? `toMonth(${time})` : '0'}) AS month FROM ${place.table} ORDER BY year, month`,
    settings: toSettings(options),
    schema: extent,
  })
  return rows.map(({ year, month }) => toFileRange(year, month))
}

/** The column by which the rows of a dataset are partitioned. */
const findTime = ({ extent, columns }: Published) => (extent === undefined ? undefined : columns[0]?.name)

/** The hash of rows does not depend on their order. */
const toHash = (dataset: Published) =>
  `hex(sum(cityHash64(tuple(${toColumns(dataset)
    .map(({ name }) => name)
    .join(', ')}))))`

/** The content of each month or year of a range, hashed over the very rows that a file would have. The month of a year is 0. */
async function readContents(
  options: PartitionOptions,
  dataset: Published,
  { interval, ...range }: TimeRange & Pick<FileContent, 'interval'>,
) {
  const { db, registry, signal } = options
  const time = findTime(dataset)
  const moment = `toDateTime64(${time}, 3, 'UTC')`
  const year = time === undefined ? '0' : `toYear(${moment})`
  const month = time === undefined || dataset.isYearly?.(interval) ? '0' : `toMonth(${moment})`
  return db.rows({
    name: `publish-${dataset.name}-versions`,
    sql: `SELECT toInt32(${year}) AS year, toInt32(${month}) AS month, count() AS rows, ${toHash(dataset)} AS hash,
  groupUniqArray(key) AS entities
FROM (${toSelect(dataset, interval, true)})
GROUP BY year, month ORDER BY year, month`,
    params: { ...toParams(range), ...dataset.params?.(registry) },
    settings: toSettings(options),
    schema: content,
    ...(signal === undefined ? {} : { signal }),
  })
}

/**
 * The content of each file. Whatever changed it is found: a job, a back-fill, a restored backup, another name of an
 * entity. Each statement reads one range, which bounds its memory: ClickHouse loads joined tables into memory.
 */
export async function* readFileContents(
  options: PartitionOptions,
  dataset: Published,
  interval: Interval,
): AsyncGenerator<FileContent> {
  const isWhole = findTime(dataset) === undefined
  const ranges = isWhole ? [ALL] : await listRanges(options, dataset, interval)
  for (const range of ranges) {
    for (const { year: y, month: m, ...found } of await readContents(options, dataset, { ...range, interval })) {
      const own = dataset.intervals === undefined ? {} : { interval }
      yield isWhole
        ? { ...found, interval, ...ALL, keys: {} }
        : {
            ...{ ...found, interval, ...toFileRange(y, m) },
            keys: { ...own, year: String(y), ...(m === 0 ? {} : { month: String(m).padStart(2, '0') }) },
          }
    }
  }
}

/** A month, or the year if the month is 0. */
const toFileRange = (year: number, month: number): TimeRange =>
  month === 0
    ? { from: Date.UTC(year, 0), to: Date.UTC(year + 1, 0) }
    : { from: Date.UTC(year, month - 1), to: Date.UTC(year, month) }

/** SQL for the rows of a file in their order, with a condition on all of them. */
function toFileSql(dataset: Published, interval: Interval, condition?: string): string {
  const order = toOrder(dataset)
  return [
    `SELECT * FROM (${toSelect(dataset, interval)})`,
    ...(condition === undefined ? [] : [`WHERE ${condition}`]),
    ...(order.length === 0 ? [] : [`ORDER BY ${order.join(', ')}`]),
  ].join('\n')
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)

const toPath = ({ name }: Published, { keys }: Pick<FileContent, 'keys'>, version: string) =>
  [name, ...Object.entries(keys).map(([key, value]) => `${key}=${value}`), `part-${version}.parquet`].join('/')

/** The stored share of the due buckets of the entities that have rows, by the ledger of the collection. */
async function readComplete({ db, now = Date.now }: PartitionOptions, { of }: Published, file: FileContent) {
  if (of === undefined) return null
  const within = toBuckets({ from: file.from, to: Math.min(file.to, toDueEnd(of, now())) }, of.cadence)
  if (within === undefined) return null
  const entities = of.series.entity === undefined ? [ENTIRE_REGISTRY.key] : file.entities
  const seconds = toStepSeconds(file.interval, of.cadence)
  const covered = await openLedger(db, of).count(entities, { within, seconds })
  const stored = covered.reduce((sum, one) => sum + one.stored, 0)
  const due = entities.length * (within.last - within.first + 1) - covered.reduce((sum, one) => sum + one.nothing, 0)
  return covered.length === 0 || due <= 0 ? null : Math.min(1, Math.round((stored / due) * 1e4) / 1e4)
}

/** ClickHouse's code for a condition of `throwIf`. */
const CONTENT_CHANGED = '395'

/**
 * The statement with the rows of a file. With `isChecked` it fails unless they have its count and hash: all
 * reads of one statement share one state of each table.
 */
function toFileStatement(
  options: PartitionOptions,
  dataset: Published,
  file: FileContent,
  isChecked: boolean,
): Statement {
  const { registry, signal } = options
  const rows = toSelect(dataset, file.interval)
  const check = `throwIf((SELECT (count(), ${toHash(dataset)}) FROM (${rows})) != ({rows: UInt64}, {hash: String}), 'rows changed') = 0`
  return {
    name: `publish-${dataset.name}`,
    sql: toFileSql(dataset, file.interval, isChecked ? check : undefined),
    params: {
      ...{ ...toParams(file), ...dataset.params?.(registry) },
      ...(isChecked ? { rows: file.rows, hash: file.hash } : {}),
    },
    settings: { ...toSettings(options), enable_shared_storage_snapshot_in_query: 1 },
    ...(signal === undefined ? {} : { signal }),
  }
}

/** Version of the rules for files: files of earlier rules are written again. 2: the rows were checked when written. */
const RULES = 2

const toVersion = (dataset: Published, { interval, rows, hash }: FileContent) =>
  digest(`${RULES} ${toFileSql(dataset, interval)} ${rows} ${hash}`)

/** How often a partition is written whose rows change between the hash and the file. */
const MOST_TRIES = 3

/**
 * Writes a partition if its rows changed. If they change again before they are written, hashes them again. If they keep
 * changing, writes them with a version that no later rows have, so that the next publication writes them again.
 * Undefined if all rows are gone.
 */
export async function publishPartition(
  options: PartitionOptions,
  dataset: Published,
  first: FileContent,
  before: Partition | undefined,
): Promise<Partition | undefined> {
  let file: FileContent | undefined = first
  for (let tries = 1; file !== undefined; tries += 1) {
    const version = toVersion(dataset, file)
    if (before?.version === version && (await options.target.readSize(before.path)) === before.bytes) return before
    const isChecked = tries < MOST_TRIES
    try {
      return await writePartition(options, dataset, file, {
        version: isChecked ? version : digest(randomUUID()),
        before,
        isChecked,
      })
    } catch (error) {
      if (!isChecked || toClickHouseCode(error) !== CONTENT_CHANGED) throw error
      const [found]: Content[] = await readContents(options, dataset, file)
      file = found === undefined ? undefined : { ...file, ...found }
    }
  }
  return undefined
}

/**
 * Writes a partition. A file of the same version that an interrupted publication completed is used if its bytes have the
 * hash that they had then.
 */
async function writePartition(
  options: PartitionOptions,
  dataset: Published,
  file: FileContent,
  { version, before, isChecked }: { version: string; before: Partition | undefined; isChecked: boolean },
): Promise<Partition> {
  const { target, now = Date.now } = options
  const path = toPath(dataset, file, version)
  const finished = before?.path === path || !isChecked ? undefined : await target.readFinished(path)
  const facts = finished ?? (await target.writeParquet(path, toFileStatement(options, dataset, file, isChecked)))
  const { rows, from, to } = await target.readFooter(path, findTime(dataset))
  const at = new Date(now()).toISOString()
  const isCorrection = before !== undefined && Date.parse(before.writtenAt) >= file.to
  options.onPartition?.(path, rows)
  return {
    ...{ path, ...facts, keys: { ...file.keys }, rows, from, to, version },
    coverage: {
      entities: dataset.about === undefined ? null : file.entities.length,
      complete: await readComplete(options, dataset, file),
    },
    writtenAt: at,
    correctedAt: isCorrection ? at : (before?.correctedAt ?? null),
  }
}
