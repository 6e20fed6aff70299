import type { DatasetFacts } from '../../shared/datasets/list.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Memory, Sized } from '../answers/memory.ts'
import { type ListSource, readListed } from './in-database.ts'
import { createRecordSet, type ListedRecord, type RecordSet } from './record-set.ts'

/** The records of a list, or that they are too many to be kept. */
interface KeptSet extends Sized {
  readonly set: RecordSet | undefined
}

/** No list takes more of the memory than this share: the rest is for what others ask. */
const MOST_OF_MEMORY = 1 / 2

const ALWAYS = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY }

const toKey = (key: string) => `list ${key}`

/** The records of a list, if they are kept. */
export const peekRecordSet = (memory: Memory, key: string): RecordSet | undefined =>
  memory.shelf<KeptSet>().get(toKey(key))?.set

async function readSet(db: Database, source: ListSource, most: number): Promise<KeptSet> {
  const records: ListedRecord[] = []
  let bytes = 0
  for await (const record of readListed(db, source)) {
    records.push(record)
    bytes += record.bytes.length
    if (bytes > most) return { size: 0, set: undefined }
  }
  const set = createRecordSet(records)
  return { size: set.bytes, set }
}

/**
 * The records of a list, read once a commit of any of its datasets however many ask for them; undefined where they take more
 * memory than there is, and ClickHouse has to answer.
 * @throws DataError `storage`, and the reason of `signal`.
 */
export async function findRecordSet(
  { memory, signal }: { readonly memory: Memory; readonly signal: AbortSignal },
  { key, datasets }: { readonly key: string; readonly datasets: readonly DatasetFacts[] },
  source: ListSource,
): Promise<RecordSet | undefined> {
  const most = memory.maxBytes * MOST_OF_MEMORY
  if (most === 0) return undefined
  const place = { key: toKey(key), dataset: datasets.map(({ name }) => name), ...ALWAYS }
  const read = async (_: unknown, db: Database) => [await readSet(db, source, most)]
  const [kept] = await memory.shelf<KeptSet>().ask([place], read, signal)
  return kept?.set
}
