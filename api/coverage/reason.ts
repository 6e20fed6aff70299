import { toDueEnd } from '../../shared/coverage/wanted.ts'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { readRanges } from './ranges.ts'

/**
 * Why a dataset has no current data of an entity, according to the ledger's newest buckets. A failure has priority,
 * then the fact that the last due bucket was read, then the newest note.
 * @throws DataError `storage`, Problem `not_found` for an entity that the dataset cannot contain.
 */
export async function findReason(
  { db, registry }: { readonly db: Database; readonly registry: Registry },
  { dataset, id }: { readonly dataset: DatasetFacts; readonly id: string },
  now: number,
): Promise<string> {
  const from = toDueEnd(dataset, now) - INTERVAL_SECONDS[dataset.cadence] * 1000
  const ranges = await readRanges(db, registry, { dataset, id, from, to: now }, now)
  const failed = ranges.findLast(({ state }) => state === 'failed')
  const [due] = ranges
  if (failed === undefined && due?.state === 'covered') return due.reason ?? 'it was read, and there is no record of it'
  const told = failed ?? ranges.findLast(({ reason }) => reason !== null)
  return told?.reason ?? 'what is stored of it is not current'
}
