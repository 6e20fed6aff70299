import type { Database } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { rebuild } from './rebuild.ts'
import { findRollUps, type RollUp } from './roll-ups.ts'

interface Context {
  readonly db: Database
  readonly database: string
  readonly log: Logger
}

/**
 * Computes all derived tables of a dataset again after rows of it were removed: a derived day is replaced only by one
 * of more rows. Returns the names of the tables.
 * @throws DataError `storage`, also if another run computes one of the tables.
 */
export async function rebuildDerived(
  dataset: NonNullable<RollUp['dataset']>,
  { db, database, log }: Context,
): Promise<readonly string[]> {
  const derived = (await findRollUps(db, database, [dataset])).filter((one) => one.dataset !== undefined)
  const options = { log, now: Date.now, force: true, restart: true, onPlan: () => {}, onStep: () => {} }
  for (const rollUp of derived) await rebuild(db, rollUp, options)
  return derived.map(({ table }) => table)
}
