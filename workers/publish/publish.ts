import { createHash } from 'node:crypto'
import { z } from 'zod'
import { version as service } from '../../api/openapi/document.ts'
import { toBuckets, toDueEnd, toStepSeconds } from '../../shared/buckets.ts'
import { DAY_MS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import { ENTIRE_REGISTRY } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { CATALOG, type Catalog, listFiles, type Partition, type PublishedDataset, readCatalog } from './catalog.ts'
import { makeCompanions } from './companions.ts'
import { published } from './datasets.ts'
import { type Published, toColumns, toOrder, toSelect } from './define-published.ts'
import type { Target } from './target.ts'

/** What a publication did. */
export interface Outcome {
  /** Partitions that were written, and those that were the same as before. */
  readonly written: readonly string[]
  readonly unchanged: number
  /** Rows and bytes of all partitions. */
  readonly rows: number
  readonly bytes: number
}

export interface PublishOptions {
  readonly db: Database
  readonly registry: Registry
  readonly target: Target
  /** How long replaced files stay for readers of an older catalog. */
  readonly keepDays: number
  /** Start of the URLs in the files for readers on other machines. */
  readonly publicUrl: string
  readonly now?: () => number
  readonly signal?: AbortSignal
  readonly onPartition?: (path: string, rows: number) => void
  /** Only these datasets are read; the others stay as they are. */
  readonly only?: readonly string[]
  /** Threads of ClickHouse for each statement; default: one for each core. */
  readonly threads?: number
}

/** Rows of one file: a dataset, for a series with its interval and the month. */
interface Piece extends TimeRange {
  readonly keys: Readonly<Record<string, string>>
  readonly interval: Interval
  readonly rows: number
  readonly hash: string
  readonly entities: readonly number[]
}

const toSettings = ({ threads }: Pick<PublishOptions, 'threads'>) => ({
  max_execution_time: 0,
  ...(threads === undefined ? {} : { max_threads: threads }),
})
const ALL: TimeRange = { from: 0, to: Date.parse('2100-01-01') }

const toParams = ({ from, to }: TimeRange) => {
  const toText = (ms: number) => new Date(ms).toISOString().slice(0, -1)
  return { from: toText(from), to: toText(to) }
}

const extent = z.object({ first: z.int(), last: z.int() })
const content = z.object({
  year: z.int(),
  month: z.int(),
  rows: z.int(),
  hash: z.string(),
  entities: z.array(z.number()),
})
const described = z.object({ name: z.string(), type: z.string() })

/** The years with rows of a dataset. */
async function listYears(options: PublishOptions, dataset: Published, interval: Interval): Promise<number[]> {
  const place = dataset.extent?.(interval)
  if (place === undefined) return []
  const [found] = await options.db.rows({
    name: `publish-${dataset.name}-extent`,
    sql: `SELECT toYear(min(${place.time}), 'UTC') AS first, toYear(max(${place.time}), 'UTC') AS last FROM ${place.table} HAVING count() > 0`,
    settings: toSettings(options),
    schema: extent,
  })
  if (found === undefined) return []
  return Array.from({ length: found.last - found.first + 1 }, (_, index) => found.first + index)
}

/**
 * The content of each month of a year, hashed over the very rows that a file would have. Whatever changed them is found: a
 * job, a back-fill, a restored backup, another name of an entity. A year at a time bounds the memory.
 */
async function* readPieces(options: PublishOptions, dataset: Published, interval: Interval): AsyncGenerator<Piece> {
  const { db, registry, signal } = options
  const names = toColumns(dataset).map(({ name }) => name)
  const time = dataset.extent === undefined ? undefined : dataset.columns[0]?.name
  const [year, month] = time === undefined ? ['0', '0'] : [`toYear(${time}, 'UTC')`, `toMonth(${time}, 'UTC')`]
  const ranges =
    time === undefined
      ? [ALL]
      : (await listYears(options, dataset, interval)).map((one) => ({
          from: Date.UTC(one, 0),
          to: Date.UTC(one + 1, 0),
        }))
  for (const range of ranges) {
    const found = await db.rows({
      name: `publish-${dataset.name}-versions`,
      sql: `SELECT toInt32(${year}) AS year, toInt32(${month}) AS month, count() AS rows, hex(sum(cityHash64(tuple(${names.join(', ')})))) AS hash,
  groupUniqArray(key) AS entities
FROM (${toSelect(dataset, interval, true)})
GROUP BY year, month ORDER BY year, month`,
      params: { ...toParams(range), ...dataset.params?.(registry) },
      settings: toSettings(options),
      schema: content,
      ...(signal === undefined ? {} : { signal }),
    })
    for (const { year: y, month: m, ...piece } of found) {
      const own = dataset.intervals === undefined ? {} : { interval }
      yield time === undefined
        ? { ...piece, interval, ...ALL, keys: {} }
        : {
            ...{ ...piece, interval, from: Date.UTC(y, m - 1), to: Date.UTC(y, m) },
            keys: { ...own, year: String(y), month: String(m).padStart(2, '0') },
          }
    }
  }
}

const toFileSql = (dataset: Published, interval: Interval) => {
  const order = toOrder(dataset)
  return `${toSelect(dataset, interval)}${order.length === 0 ? '' : `\nORDER BY ${order.join(', ')}`}`
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)

const toPath = ({ name }: Published, { keys }: Pick<Piece, 'keys'>, version: string) =>
  [name, ...Object.entries(keys).map(([key, value]) => `${key}=${value}`), `part-${version}.parquet`].join('/')

/** The stored share of the due buckets of the entities that have rows, by the ledger of the collection. */
async function readComplete({ db, now = Date.now }: PublishOptions, { of }: Published, piece: Piece) {
  if (of === undefined) return null
  const within = toBuckets({ from: piece.from, to: Math.min(piece.to, toDueEnd(of, now())) }, of.cadence)
  if (within === undefined) return null
  const entities = of.series.entity === undefined ? [ENTIRE_REGISTRY.key] : piece.entities
  const seconds = toStepSeconds(piece.interval, of.cadence)
  const covered = await openLedger(db, of).count(entities, { within, seconds })
  const stored = covered.reduce((sum, one) => sum + one.stored, 0)
  const due = entities.length * (within.last - within.first + 1) - covered.reduce((sum, one) => sum + one.nothing, 0)
  return covered.length === 0 || due <= 0 ? null : Math.min(1, Math.round((stored / due) * 1e4) / 1e4)
}

/**
 * Writes a partition. A file of the same version that an interrupted publication left is complete, because it got its
 * name only then: it is taken over.
 */
async function writePartition(
  options: PublishOptions,
  dataset: Published,
  piece: Piece,
  version: string,
  before: Partition | undefined,
): Promise<Partition> {
  const { db: _, target, registry, now = Date.now, signal } = options
  const path = toPath(dataset, piece, version)
  const time = dataset.extent === undefined ? undefined : dataset.columns[0]?.name
  const existing = before?.path === path ? undefined : await target.readFacts(path)
  const isReusable = existing !== undefined && (await target.readFooter(path)).rows === piece.rows
  const facts = isReusable
    ? existing
    : await target.writeParquet(path, {
        name: `publish-${dataset.name}`,
        sql: toFileSql(dataset, piece.interval),
        params: { ...toParams(piece), ...dataset.params?.(registry) },
        settings: toSettings(options),
        ...(signal === undefined ? {} : { signal }),
      })
  const { rows, from, to } = await target.readFooter(path, time)
  const at = new Date(now()).toISOString()
  const isCorrection = before !== undefined && Date.parse(before.writtenAt) >= piece.to
  options.onPartition?.(path, rows)
  return {
    ...{ path, ...facts, keys: { ...piece.keys }, rows, from, to, version },
    coverage: {
      entities: dataset.about === undefined ? null : piece.entities.length,
      complete: await readComplete(options, dataset, piece),
    },
    writtenAt: at,
    correctedAt: isCorrection ? at : (before?.correctedAt ?? null),
  }
}

const keyOf = ({ keys }: Pick<Partition, 'keys'>) => JSON.stringify(keys)

async function publishDataset(
  options: PublishOptions,
  dataset: Published,
  before: PublishedDataset | undefined,
): Promise<PublishedDataset> {
  const { db, registry, target } = options
  const previousByKey = new Map(before?.partitions.map((one) => [keyOf(one), one]))
  const partitions: Partition[] = []
  for (const interval of dataset.intervals ?? (['1d'] as const)) {
    const definition = digest(toFileSql(dataset, interval))
    for await (const piece of readPieces(options, dataset, interval)) {
      const version = digest(`${definition} ${piece.rows} ${piece.hash}`)
      const old = previousByKey.get(keyOf(piece))
      const isThere = old?.version === version && (await target.readSize(old.path)) === old.bytes
      partitions.push(isThere ? old : await writePartition(options, dataset, piece, version, old))
    }
  }
  const types = await db.rows({
    name: `publish-${dataset.name}-columns`,
    sql: `DESCRIBE TABLE (${toSelect(dataset, '5m')})`,
    params: { ...toParams({ from: 0, to: 0 }), ...dataset.params?.(registry) },
    schema: described,
  })
  const typeOf = new Map(types.map(({ name, type }) => [name, type.replace(/LowCardinality\((.*?)\)/, '$1')]))
  return {
    name: dataset.name,
    description: dataset.description,
    partitionedBy: [
      ...(dataset.intervals === undefined ? [] : ['interval']),
      ...(dataset.extent === undefined ? [] : ['year', 'month']),
    ],
    sortedBy: toOrder(dataset),
    columns: toColumns(dataset).map(({ name, description, unit = null }) => ({
      ...{ name, type: typeOf.get(name) ?? 'String', description, unit },
    })),
    partitions,
  }
}

/** Replaced files of this and of earlier publications that readers may still need. */
function toReplaced(before: Catalog | undefined, after: ReadonlySet<string>, keepDays: number, at: number) {
  if (before === undefined) return []
  const replaced = before.replaced.map(({ path, replacedAt }) => ({ path, replacedAt }))
  const new_ = before.datasets
    .flatMap(({ partitions }) => partitions)
    .map(({ path }) => ({ path, replacedAt: new Date(at).toISOString() }))
  return [...replaced, ...new_].filter(
    ({ path, replacedAt }) => !after.has(path) && at - Date.parse(replacedAt) < keepDays * DAY_MS,
  )
}

/**
 * Publishes the stored rows: writes the partitions whose content changed, then the files made from the catalog, then the
 * catalog. Until then readers use the old catalog, and its files stay. After a kill at any point the next run continues. If no
 * row changed, no file is written.
 * @throws DataError `storage` or `config`
 */
export async function publish(options: PublishOptions): Promise<Outcome> {
  const { target, keepDays, publicUrl, only, signal, now = Date.now } = options
  const before = await readCatalog(target)
  const datasets: PublishedDataset[] = []
  for (const dataset of published) {
    signal?.throwIfAborted()
    const old = before?.datasets.find(({ name }) => name === dataset.name)
    if (only === undefined || only.includes(dataset.name)) datasets.push(await publishDataset(options, dataset, old))
    else if (old !== undefined) datasets.push(old)
  }
  const partitions = datasets.flatMap((one) => one.partitions)
  const current = new Set(partitions.map(({ path }) => path))
  const old = new Set(before?.datasets.flatMap((one) => one.partitions))
  const written = partitions.filter((one) => !old.has(one)).map(({ path }) => path)
  const at = now()
  const replaced = toReplaced(before, current, keepDays, at)
  const files: Catalog['files'] = []
  for (const { path, text } of makeCompanions(datasets, publicUrl)) {
    const previous = before?.files.find((file) => file.path === path)
    const sha256 = createHash('sha256').update(text).digest('hex')
    const isSame = previous?.sha256 === sha256 && (await target.readText(path)) === text
    files.push(isSame ? previous : { path, ...(await target.writeText(path, text)) })
  }
  const next: Catalog = { format: 1, publishedAt: new Date(at).toISOString(), service, datasets, files, replaced }
  const isSame =
    before !== undefined && JSON.stringify({ ...next, publishedAt: before.publishedAt }) === JSON.stringify(before)
  signal?.throwIfAborted()
  if (!isSame) await target.writeText(CATALOG, `${JSON.stringify(next, null, 1)}\n`)
  const named = new Set([...listFiles(next), ...replaced].map(({ path }) => path))
  const folders = published.map(({ name }) => name)
  for (const path of await target.listData(folders)) if (!named.has(path)) await target.remove(path)
  const sum = (of: 'rows' | 'bytes') => partitions.reduce((all, one) => all + one[of], 0)
  return { written, unchanged: partitions.length - written.length, rows: sum('rows'), bytes: sum('bytes') }
}
