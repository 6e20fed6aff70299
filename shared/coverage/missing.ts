import type { DatasetFacts } from '../datasets/list.ts'
import { groupBy } from '../group-by.ts'
import type { Database } from '../store/clickhouse.ts'
import type { Lacking } from './completeness.ts'
import { toDueEnd } from './expected.ts'
import { explain } from './explain.ts'
import { ANY_STEP, toBucket, totalBuckets } from './grid.ts'
import { OPEN_END, readMissing, readNotes } from './ledger.ts'

/** The number of due buckets that are unknown at any step, by the state that explains them. */
export interface MissingCounts {
  pending: number
  failed: number
  unserved: number
}

/** Counts the missing buckets of a dataset's incomplete entities at a time in Unix milliseconds. */
export async function countMissing(
  db: Database,
  dataset: DatasetFacts,
  lacking: readonly Lacking[],
  now: number,
): Promise<MissingCounts> {
  const counts: MissingCounts = { pending: 0, failed: 0, unserved: 0 }
  if (lacking.length === 0) return counts
  const keys = lacking.flatMap(({ entities }) => entities.map(({ key }) => key))
  const notes = groupBy(await readNotes(db, dataset, keys, { from: 0, to: OPEN_END }), ({ entity }) => entity)
  const due = toBucket(toDueEnd(dataset, now), dataset.cadence)
  for (const { entities, runs: expected } of lacking) {
    const own = entities.map(({ key }) => key)
    const missing = await readMissing(db, dataset, own, { expected, seconds: ANY_STEP })
    for (const [key, runs] of missing) {
      const explainable = { expected, reports: [], notes: notes.get(key) ?? [] }
      for (const run of runs) addStates(counts, explain(dataset, explainable, run, due))
    }
  }
  return counts
}

function addStates(counts: MissingCounts, stretches: ReturnType<typeof explain>): void {
  for (const stretch of stretches) {
    const { state } = stretch
    if (state === 'pending' || state === 'failed' || state === 'unserved') counts[state] += totalBuckets([stretch])
  }
}
