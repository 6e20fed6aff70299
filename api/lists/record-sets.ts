import { LRUCache } from 'lru-cache'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { CommitFeed } from '../../shared/store/commits.ts'
import { createFlights } from '../serving/flight.ts'
import { type ListSource, readListed } from './in-database.ts'
import { createRecordSet, type ListedRecord, type RecordSet } from './record-set.ts'

/** The records of lists, each read once a commit however many ask for them. */
export interface RecordSets {
  /**
   * The records under a key, which change with commits of the datasets; undefined where they take more memory than there
   * is. Rejects with the reason of `left` when whoever asked is gone.
   */
  get(
    key: string,
    datasets: readonly DatasetFacts[],
    source: ListSource,
    left: AbortSignal,
  ): Promise<RecordSet | undefined>
}

/** A set, or that it is too large to be kept, and the versions of its datasets when it was read. */
interface Entry {
  readonly set: RecordSet | undefined
  readonly versions: string
  readonly readAt: number
}

/** How long a set is used while nobody tells of commits. */
const UNHEARD_MS = 1000

/** Record sets by byte budget; 0 keeps none, and none is read. */
export function createRecordSets(options: {
  db: Database
  maxBytes: number
  commits: CommitFeed
  now: () => number
}): RecordSets {
  const { db, maxBytes, commits, now } = options
  const kept = new LRUCache<string, Entry>({
    maxSize: Math.max(1, maxBytes),
    sizeCalculation: ({ set }, key) => key.length + 100 + (set?.bytes ?? 0),
  })
  const flights = createFlights<RecordSet | undefined>(Number.POSITIVE_INFINITY)
  const toVersions = (datasets: readonly DatasetFacts[]) => {
    const versions = datasets.map(({ name }) => commits.version(name))
    return { text: versions.join(), areHeard: !versions.includes(undefined) }
  }
  const readWhole = async (source: ListSource, abandoned: AbortSignal): Promise<RecordSet | undefined> => {
    const records: ListedRecord[] = []
    let bytes = 0
    for await (const record of readListed(db, source, abandoned)) {
      records.push(record)
      bytes += record.json.length
      if (bytes > maxBytes) return undefined
    }
    const set = createRecordSet(records)
    return set.bytes > maxBytes ? undefined : set
  }
  return {
    get: async (key, datasets, source, left) => {
      if (maxBytes === 0) return undefined
      const { text, areHeard } = toVersions(datasets)
      const entry = kept.get(key)
      const isYoung = areHeard || now() - (entry?.readAt ?? 0) < UNHEARD_MS
      if (entry !== undefined && entry.versions === text && isYoung) return entry.set
      const readAt = now()
      const { flight } = flights.board(`${text} ${key}`, async (abandoned) => {
        const set = await readWhole(source, abandoned)
        kept.set(key, { set, versions: text, readAt })
        return set
      })
      return flight.join(left)
    },
  }
}
