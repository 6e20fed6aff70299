import { LRUCache } from 'lru-cache'
import type { TimeRange } from '../../shared/intervals.ts'
import type { Commit, CommitFeed } from '../../shared/store/commits.ts'

/** The bytes of a range of a long series whose buckets have all ended, and what an answer tells of its points. */
export interface Fragment {
  /** The points as JSON, a comma and a line break between two. */
  readonly bytes: Buffer
  readonly points: number
  /** Newest time used, in Unix milliseconds; null without points. */
  readonly asOf: number | null
  /** Differs whenever the bytes do. */
  readonly digest: string
}

export interface Fragments {
  /**
   * Whether there is room to collect so many bytes, beside what others are collecting. If there is, it is taken until
   * the signal is aborted.
   */
  claim(bytes: number, signal: AbortSignal): boolean
  get(key: string): Fragment | undefined
  /** A moment: taken before data is read, it tells `keep` whether the data may have changed since. */
  mark(): number
  /**
   * Keeps a fragment that was read since the mark, unless a commit since then concerns `range`, the times of the
   * observations that its points are made of.
   */
  keep(key: string, dataset: string, range: TimeRange, mark: number, fragment: Fragment): void
}

interface KeptFragment extends TimeRange {
  readonly dataset: string
  readonly fragment: Fragment
}

/** What an entry costs beyond its bytes. */
const ENTRY_BYTES = 512
/**
 * So many of the last commits are remembered. What was read before the oldest of them is not kept: it may be outdated.
 */
const MAX_CHANGES = 500

/** Whether a commit concerns some times of a dataset; one that nobody knows concerns everything. */
type Concerns = (of: TimeRange & { readonly dataset: string }) => boolean

function toConcerns(change: Commit | undefined): Concerns {
  if (change === undefined) return () => true
  const { dataset, from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = change
  return (of) => of.dataset === dataset && from < of.to && to >= of.from
}

/**
 * Fragments by byte budget; 0 keeps nothing. A commit drops those whose times it concerns and leaves all others, so
 * that of a long series only the end that still grows is read again. When commits may have been missed, all are
 * dropped.
 */
export function createFragments(options: { maxBytes: number; commits: CommitFeed }): Fragments {
  const { maxBytes, commits } = options
  const kept = new LRUCache<string, KeptFragment>({
    maxSize: Math.max(1, maxBytes),
    sizeCalculation: ({ fragment }, key) => fragment.bytes.length + key.length + ENTRY_BYTES,
  })
  let changes: Concerns[] = []
  let forgotten = 0
  let claimed = 0
  commits.follow((change) => {
    const concerns = toConcerns(change)
    for (const [key, fragment] of [...kept.entries()]) if (concerns(fragment)) kept.delete(key)
    changes.push(concerns)
    if (changes.length < 2 * MAX_CHANGES) return
    forgotten += changes.length - MAX_CHANGES
    changes = changes.slice(-MAX_CHANGES)
  })
  return {
    claim: (bytes, signal) => {
      if (signal.aborted || claimed + bytes > maxBytes / 2) return false
      claimed += bytes
      const release = () => {
        claimed -= bytes
      }
      signal.addEventListener('abort', release, { once: true })
      return true
    },
    get: (key) => kept.get(key)?.fragment,
    mark: () => forgotten + changes.length,
    keep: (key, dataset, range, mark, fragment) => {
      if (commits.version(dataset) === undefined || mark < forgotten) return
      const entry = { dataset, ...range, fragment }
      if (!changes.slice(mark - forgotten).some((concerns) => concerns(entry))) kept.set(key, entry)
    },
  }
}
