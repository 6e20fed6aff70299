import { subtractAll, toBucketTime, toTimes, toYear } from '../buckets.ts'
import { DataError, toReason } from '../errors.ts'
import { groupBy } from '../group-by.ts'
import { type Database, readEngineTime, toAltered } from '../store/store.ts'
import { recordExpected } from './expected.ts'
import { noteProven } from './recount-state.ts'
import { addCoverage, readCoverage, toYears } from './tables.ts'
import type { LedgerDataset, NewExpectedRange, Report } from './types.ts'

/**
 * See `Ledger.removeUnfounded`. A concurrent report of a worker may be removed too; the next recount restores it from
 * its rows. The coverage of a dataset with cursors is proven afterwards: missing ranges are read again.
 */
export async function removeUnfounded(
  db: Database,
  dataset: LedgerDataset,
  unfounded: readonly Report[],
): Promise<void> {
  const inYears = unfounded.flatMap((report) =>
    toYears(report, dataset.cadence).map((buckets) => ({ ...report, ...buckets })),
  )
  const groups = groupBy(inYears, ({ entity, provider, seconds, first }) =>
    [entity, provider, seconds, toYear(first, dataset.cadence)].join(' '),
  )
  for (const group of groups.values()) await removeOf(db, dataset, group)
  if (!dataset.resumes) return
  await recordExpected(db, dataset, toRemovedRanges(dataset, unfounded))
  await noteProven(db, dataset, await readEngineTime(db))
}

/**
 * The time of the removed buckets of each entity. The buckets counted as collected, so they are expected, whatever was
 * requested.
 */
function toRemovedRanges({ cadence }: LedgerDataset, removed: readonly Report[]): NewExpectedRange[] {
  return [...groupBy(removed, ({ entity }) => entity)].map(([entity, own]) => {
    const first = own.reduce((least, run) => Math.min(least, run.first), Number.POSITIVE_INFINITY)
    const last = own.reduce((most, run) => Math.max(most, run.last), 0)
    return { entity, ...toTimes({ first, last }, cadence), interval: cadence }
  })
}

/** A bitmap only gains bits, so the bitmap of the year is deleted and rebuilt. */
async function removeOf(db: Database, dataset: LedgerDataset, group: readonly Report[]): Promise<void> {
  const [one] = group
  if (one === undefined) return
  const { entity, provider, seconds } = one
  const year = toYear(one.first, dataset.cadence)
  const toBucket = (ms: number) => Math.ceil(ms / toBucketTime(1, dataset.cadence))
  const within = { first: toBucket(Date.UTC(year)), last: toBucket(Date.UTC(year + 1)) - 1 }
  const held = await readCoverage(db, dataset, [entity], within)
  const remaining = held
    .filter((report) => report.state === 'stored' && report.provider === provider && report.seconds === seconds)
    .flatMap((report) => subtractAll([report], group).map((run) => ({ ...report, ...run })))
  const remove = {
    name: 'coverage-remove',
    sql: `ALTER TABLE ${toAltered('coverage', db.cluster)} DELETE WHERE dataset = {dataset: String} AND entity = {entity: UInt64} AND year = {year: UInt16}
  AND state = 'stored' AND provider = {provider: String} AND interval_seconds = {seconds: UInt32}`,
    params: { dataset: dataset.name, entity, year, provider, seconds },
    settings: { mutations_sync: 2 },
  }
  try {
    await db.command(remove)
  } finally {
    // Also after a lost response, because the server may have completed the deletion.
    await putBack(db, dataset, remaining)
  }
}

async function putBack(db: Database, dataset: LedgerDataset, remaining: readonly Report[]): Promise<void> {
  try {
    await addCoverage(db, dataset, remaining)
  } catch (cause) {
    const what = `${dataset.name}: a part of its coverage that has rows was taken out as well: run the same again, which finds it`
    throw new DataError('storage', `${what}: ${toReason(cause)}`, { cause })
  }
}
