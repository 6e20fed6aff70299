import {
  ANY_STEP,
  type Buckets,
  intersect,
  subtract,
  subtractAll,
  toBucket,
  toBuckets,
  toSettledEnd,
  toTimes,
  totalBuckets,
} from '../../shared/buckets.ts'
import { groupBy } from '../../shared/group-by.ts'
import { type Note, openLedger } from '../../shared/ledger/ledger.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Chunk } from '../schedule/chunks.ts'
import { type BackfillRequest, type Due, toDue, toSeconds } from './request.ts'

/**
 * State of requested buckets. `newest`: the providers may not have them yet. `not renewed`: they were to be collected
 * again but were not; these buckets also count under their previous state.
 */
export const STANDINGS = [
  ...(['covered', 'coarser', 'nothing', 'unserved', 'failed', 'missing', 'newest'] as const),
  'not renewed',
] as const
export type Standing = (typeof STANDINGS)[number]

/** Buckets with the same state and reason, and their entities. */
export interface Part {
  readonly standing: Standing
  readonly reason: string
  readonly buckets: number
  readonly entities: readonly string[]
}

/** Result of a backfill. */
export interface Outcome {
  readonly title: string
  /** Names of the input datasets; empty if the dataset comes from providers. */
  readonly computedFrom: readonly string[]
  readonly parts: readonly Part[]
}

/** A job that ended without a note: it failed permanently, or was dropped. */
export interface Ended {
  readonly chunk: Chunk
  readonly reason: string
}

/**
 * Returns whether every requested bucket is stored or known to have no data. The newest buckets do not count, because
 * the slots collect them.
 */
export const isComplete = ({ parts }: Outcome): boolean =>
  parts.every(({ standing }) => standing === 'covered' || standing === 'nothing' || standing === 'newest')

/** Returns whether nothing is missing that a provider has, possibly at a coarser step. */
export const isAsGoodAsProviders = ({ parts }: Outcome): boolean =>
  parts.every(({ standing }) => standing !== 'failed' && standing !== 'missing' && standing !== 'not renewed')

/** Result of the jobs of a backfill. */
interface Run {
  readonly ended: readonly Ended[]
  /** Whether covered data was to be collected again. */
  readonly isRenewal: boolean
  /** Unix milliseconds. */
  readonly now: number
}

/** Reads the state of all requested buckets. */
export async function readOutcome(db: Database, request: BackfillRequest, run: Run): Promise<Outcome> {
  const { title, job } = request
  const parts = createParts()
  for (const due of toDue(request, run.now)) await addParts(db, request, due, { ...run, parts })
  return { title, computedFrom: job.computedFrom.map(({ name }) => name), parts: parts.all() }
}

interface Adding extends Run {
  readonly parts: ReturnType<typeof createParts>
}

/** Adds the state of the same buckets for several entities. */
async function addParts(
  db: Database,
  request: BackfillRequest,
  { within, entities }: Due,
  { ended, isRenewal, now, parts }: Adding,
) {
  const { job } = request
  const keys = entities.map(({ key }) => key)
  const ledger = openLedger(db, job.dataset)
  const counted = await ledger.count(keys, { within, seconds: toSeconds(request) })
  const counts = new Map(counted.map((count) => [count.entity, count]))
  const missing = await ledger.missing(keys, { expected: [within], seconds: ANY_STEP })
  const notes = await ledger.notes(keys, toTimes(within, job.dataset.cadence))
  const notesOf = groupBy(notes, ({ entity }) => entity)
  const settled = toBucket(toSettledEnd(now, toSeconds(request)), job.dataset.cadence)
  for (const entity of entities) {
    const count = counts.get(entity.key)
    const own = notesOf.get(entity.key) ?? []
    parts.add('covered', '', entity.name, count?.stored ?? 0)
    parts.add('nothing', '', entity.name, count?.nothing ?? 0)
    const coarser = own.find(({ state }) => state === 'coarser')?.reason ?? 'the provider has only a longer step'
    parts.add('coarser', coarser, entity.name, count?.coarser ?? 0)
    let remaining = explainBy(missing.get(entity.key) ?? [], own, request, (note, buckets) =>
      parts.add(note.state === 'failed' ? 'failed' : 'unserved', note.reason, entity.name, buckets),
    )
    for (const { chunk, reason } of ended) {
      if (!chunk.payload.entities?.includes(entity.id)) continue
      const own = toBuckets(chunk.payload, job.dataset.cadence)
      const covered = subtract(within, missing.get(entity.key) ?? [])
      if (isRenewal) parts.add('not renewed', reason, entity.name, totalBuckets(intersect(covered, own)))
      remaining = take(remaining, own, (buckets) => parts.add('missing', reason, entity.name, buckets))
    }
    remaining = take(remaining, { first: Math.max(settled, within.first), last: within.last }, (buckets) =>
      parts.add('newest', '', entity.name, buckets),
    )
    parts.add('missing', 'not collected yet', entity.name, totalBuckets(remaining))
  }
}

/** Counts the buckets explained by notes, newest note first. @returns the buckets without a note. */
function explainBy(
  missing: readonly Buckets[],
  notes: readonly Note[],
  { job }: BackfillRequest,
  add: (note: Note, buckets: number) => void,
): readonly Buckets[] {
  return notes
    .filter(({ state }) => state === 'failed' || state === 'unserved' || state === 'missed')
    .reduce(
      (remaining, note) => take(remaining, toBuckets(note, job.dataset.cadence), (buckets) => add(note, buckets)),
      missing,
    )
}

/** Subtracts `removed` from the runs and reports the number of removed buckets to `add`. */
function take(
  runs: readonly Buckets[],
  removed: Buckets | undefined,
  add: (buckets: number) => void,
): readonly Buckets[] {
  if (removed === undefined || removed.first > removed.last) return runs
  const remaining = subtractAll(runs, [removed])
  add(totalBuckets(runs) - totalBuckets(remaining))
  return remaining
}

function createParts() {
  const parts = new Map<string, { standing: Standing; reason: string; buckets: number; entities: Set<string> }>()
  return {
    add: (standing: Standing, reason: string, entity: string, buckets: number) => {
      if (buckets === 0) return
      const key = `${standing} ${reason}`
      const part = parts.get(key) ?? { standing, reason, buckets: 0, entities: new Set() }
      parts.set(key, part)
      part.buckets += buckets
      part.entities.add(entity)
    },
    all: (): Part[] => [...parts.values()].map((part) => ({ ...part, entities: [...part.entities] })),
  }
}
