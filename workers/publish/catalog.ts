import { z } from 'zod'
import { DataError, toReason } from '../../shared/errors.ts'
import { toJson } from '../../shared/json.ts'
import type { FileFacts, Target } from './target.ts'

/** The file that readers begin with. A publication writes this file last. */
export const CATALOG = 'catalog.json'

/** A path below the publication's folder, without `.` and `..`. */
const path = z.string().regex(/^(?:[\w=-][\w=.-]*\/)*[\w=-][\w=.-]*$/)
const sha256 = z.string().regex(/^[0-9a-f]{64}$/)
const file = z.strictObject({ path, bytes: z.int(), sha256 })

const partition = file.extend({
  /** The values of the partition keys, as they stand in the path. A file with the rows of a year has no month. */
  keys: z.record(z.string(), z.string()),
  rows: z.int(),
  /** Earliest and latest time of the rows; null for a dataset without time. */
  from: z.iso.datetime().nullable(),
  to: z.iso.datetime().nullable(),
  /** Hash of the rows of the file and of the statement that wrote them. Equal versions have equal rows. Random if they changed during each attempt. */
  version: z.string().regex(/^[0-9a-f]{16}$/),
  coverage: z.strictObject({
    /** Entities with rows; null for a dataset that is not about entities. */
    entities: z.int().nullable(),
    /** The stored share of their due buckets, 0 to 1; null if the ledger has nothing about them. */
    complete: z.number().nullable(),
  }),
  writtenAt: z.iso.datetime(),
  /** When the file of a past month or year was last written again because its rows changed; null for never. */
  correctedAt: z.iso.datetime().nullable(),
})

const catalog = z.strictObject({
  format: z.literal(1),
  publishedAt: z.iso.datetime(),
  /** The version of the service that wrote it. */
  service: z.string(),
  datasets: z.array(
    z.strictObject({
      name: z.string(),
      description: z.string(),
      /** Names of the partition keys, in the order of the path. */
      partitionedBy: z.array(z.string()),
      sortedBy: z.array(z.string()),
      columns: z.array(
        z.strictObject({
          name: z.string(),
          /** The ClickHouse type. */
          type: z.string(),
          description: z.string(),
          unit: z.string().nullable(),
        }),
      ),
      partitions: z.array(partition),
    }),
  ),
  /** Files beside the data that are made from the catalog, under the names of their versions. */
  files: z.array(file),
  /** Replaced files, which stay until readers of an older catalog no longer need them. */
  replaced: z.array(z.strictObject({ path, replacedAt: z.iso.datetime() })),
})

export type Catalog = z.infer<typeof catalog>
export type PublishedDataset = Catalog['datasets'][number]
export type Partition = z.infer<typeof partition>

/**
 * The catalog of a target; undefined if nothing was published there.
 * @throws DataError `config` if a catalog cannot be read.
 */
export async function readCatalog(target: Pick<Target, 'place' | 'readText'>): Promise<Catalog | undefined> {
  try {
    const text = await target.readText(CATALOG)
    return text === undefined ? undefined : catalog.parse(toJson(text))
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    const next = 'publish to another folder, or delete this file to write all files again'
    throw new DataError(
      'config',
      `${target.place}/${CATALOG}: no catalog of this program (${toReason(cause)}): ${next}`,
      { cause },
    )
  }
}

/** All files that the catalog names, except those that were replaced. */
export const listFiles = ({
  datasets,
  files,
}: Catalog): (FileFacts & { readonly path: string; readonly rows?: number })[] => [
  ...datasets.flatMap(({ partitions }) => partitions),
  ...files,
]

/**
 * Reads every file of a publication and yields a line for each that is missing or differs from the catalog. `onFile` is
 * called after each file.
 * @throws DataError `config` if there is no catalog.
 */
export async function* verify(
  target: Pick<Target, 'place' | 'readText' | 'readFacts' | 'readFooter'>,
  onFile: (done: number, all: number) => void = () => {},
): AsyncGenerator<string> {
  const found = await readCatalog(target)
  if (found === undefined)
    throw new DataError(
      'config',
      `${target.place}: no ${CATALOG} there; npm run publish -- --to ${target.place} writes one`,
    )
  const files = listFiles(found)
  for (const [at, { path, bytes, sha256, rows }] of files.entries()) {
    const facts = await target.readFacts(path)
    if (facts === undefined) yield `${path}: missing`
    else if (facts.bytes !== bytes) yield `${path}: ${facts.bytes} bytes, the catalog has ${bytes}`
    else if (facts.sha256 !== sha256) yield `${path}: SHA-256 ${facts.sha256}, the catalog has ${sha256}`
    else if (rows !== undefined) {
      const footer = await target.readFooter(path)
      if (footer.rows !== rows) yield `${path}: ${footer.rows} rows, the catalog has ${rows}`
    }
    onFile(at + 1, files.length)
  }
}
