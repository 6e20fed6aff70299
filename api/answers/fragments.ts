import { LRUCache } from 'lru-cache'
import type { Commit, CommitFeed } from '../../shared/store/commits.ts'

/** A stretch of a long series whose buckets have all ended: its points as bytes, and what an answer tells of them. */
export interface Fragment {
  /** The points as JSON, a comma and a line break between two. */
  readonly bytes: Buffer
  readonly points: number
  /** Newest time used, in Unix milliseconds; null without points. */
  readonly asOf: number | null
  /** Differs whenever the bytes do. */
  readonly digest: string
}

/** The times that a fragment's points are made of, in Unix milliseconds, `to` excluded. */
interface Span {
  readonly from: number
  readonly to: number
}

export interface Fragments {
  /**
   * Whether bytes of that length would find room together, beside all that is being collected to be kept; they may be
   * collected until the signal is aborted.
   */
  claim(bytes: number, signal: AbortSignal): boolean
  get(key: string): Fragment | undefined
  /** A moment: taken before data is read, it tells `keep` whether the data may have changed since. */
  mark(): number
  /** Keeps a fragment that was read since the mark, unless something was committed about its times meanwhile. */
  keep(key: string, dataset: string, span: Span, mark: number, fragment: Fragment): void
}

interface Kept extends Span {
  readonly dataset: string
  readonly fragment: Fragment
}

/** What an entry costs beyond its bytes. */
const ENTRY_BYTES = 512
/** So many of the last changes are remembered; what was read before them is not kept. */
const MAX_CHANGES = 500

type Concerns = (of: Span & { readonly dataset: string }) => boolean

function toConcerns(change: Commit | undefined): Concerns {
  if (change === undefined) return () => true
  const { dataset, from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = change
  return (of) => of.dataset === dataset && from < of.to && to >= of.from
}

/**
 * Fragments by byte budget; 0 keeps nothing. A commit drops those whose times it concerns and leaves all others, so that
 * of a long series only the open end is read again; whatever may have been missed drops everything.
 */
export function createFragments(options: { maxBytes: number; commits: CommitFeed }): Fragments {
  const { maxBytes, commits } = options
  const kept = new LRUCache<string, Kept>({
    maxSize: Math.max(1, maxBytes),
    sizeCalculation: ({ fragment }, key) => fragment.bytes.length + key.length + ENTRY_BYTES,
  })
  let changes: Concerns[] = []
  let forgotten = 0
  let claimed = 0
  commits.follow((change) => {
    const concerns = toConcerns(change)
    for (const [key, span] of [...kept.entries()]) if (concerns(span)) kept.delete(key)
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
    keep: (key, dataset, span, mark, fragment) => {
      if (commits.version(dataset) === undefined || mark < forgotten) return
      const entry = { dataset, ...span, fragment }
      if (!changes.slice(mark - forgotten).some((concerns) => concerns(entry))) kept.set(key, entry)
    },
  }
}
