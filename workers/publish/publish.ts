import { z } from 'zod'
import { DAY_MS } from '../../shared/intervals.ts'
import { version as service } from '../../shared/manifest.ts'
import { withLock } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { CATALOG, type Catalog, listFiles, type Partition, type PublishedDataset, readCatalog } from './catalog.ts'
import { makeCompanions } from './companions.ts'
import { published } from './datasets.ts'
import { type Published, toColumns, toOrder, toSelect } from './define-published.ts'
import { type PartitionOptions, publishPartition, readFileContents, toParams } from './partitions.ts'
import { whileHeld } from './target.ts'

/** The result of a publication. */
export interface Outcome {
  /** Partitions that were written, and those that were the same as before. */
  readonly written: readonly string[]
  readonly unchanged: number
  /** Rows and bytes of all partitions. */
  readonly rows: number
  readonly bytes: number
}

export interface PublishOptions extends PartitionOptions {
  /** How long replaced files stay for readers of an older catalog. */
  readonly keepDays: number
  /** Start of the URLs in the files for readers on other machines. */
  readonly publicUrl: string
  /** Only these datasets are read; the others stay as they are. */
  readonly only?: readonly string[]
  readonly log: Logger
}

const described = z.object({ name: z.string(), type: z.string() })

const keyOf = ({ keys }: Pick<Partition, 'keys'>) => JSON.stringify(keys)

async function publishDataset(
  options: PublishOptions,
  dataset: Published,
  before: PublishedDataset | undefined,
): Promise<PublishedDataset> {
  const { db, registry } = options
  const previousByKey = new Map(before?.partitions.map((one) => [keyOf(one), one]))
  const partitions: Partition[] = []
  for (const interval of dataset.intervals ?? (['1d'] as const)) {
    for await (const file of readFileContents(options, dataset, interval)) {
      const partition = await publishPartition(options, dataset, file, previousByKey.get(keyOf(file)))
      if (partition !== undefined) partitions.push(partition)
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
  const new_ = listFiles(before).map(({ path }) => ({ path, replacedAt: new Date(at).toISOString() }))
  return [...replaced, ...new_].filter(
    ({ path, replacedAt }) => !after.has(path) && at - Date.parse(replacedAt) < keepDays * DAY_MS,
  )
}

/**
 * Publishes the stored rows: writes the partitions whose content changed, then the files made from the catalog, then the
 * catalog. Until then readers use the old catalog, and its files stay. After a kill at any point the next run continues. If no
 * row changed, no file is written. A publication has a lock of its database, and stops before it replaces or removes a file
 * if another one may have taken it.
 * @throws DataError `storage`, also while another publication runs, or `config`
 */
export const publish = (options: PublishOptions): Promise<Outcome> => {
  const { db, target, log } = options
  const taken = `another publication of ${db.name} is running: wait until it ends`
  return withLock(db, { name: `publish ${db.name}`, taken, log }, (lock) =>
    publishAlone({ ...options, target: whileHeld(target, lock) }),
  )
}

async function publishAlone(options: PublishOptions): Promise<Outcome> {
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
  const companions = makeCompanions(datasets, publicUrl)
  const files: Catalog['files'] = []
  for (const { name, path, text, sha256 } of companions) {
    const facts = { path, bytes: Buffer.byteLength(text), sha256 }
    files.push(
      (await target.readSize(path)) === facts.bytes ? facts : { path, ...(await target.writeText(path, text)) },
    )
    if ((await target.readText(name)) !== text) await target.writeText(name, text)
  }
  const isCopy = (path: string) => companions.some(({ name }) => name === path)
  const replaced = toReplaced(before, new Set([...current, ...files.map(({ path }) => path)]), keepDays, at).filter(
    ({ path }) => !isCopy(path),
  )
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
