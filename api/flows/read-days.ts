import type { Buckets } from '../../shared/buckets.ts'
import { treasuryFlows } from '../../shared/datasets/treasury-flows.ts'
import { DAY_MS, INTERVAL_SECONDS, type TimeRange, toBucketStart } from '../../shared/intervals.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import type { Database } from '../../shared/store/store.ts'
import type { CacheReader, Sized } from '../cache/cache.ts'

interface CachedMissing extends Sized {
  /** Days without coverage by DAO, as numbers since 1970; a DAO without missing days is absent. */
  readonly byDao: ReadonlyMap<number, readonly Buckets[]>
}

/** Estimated memory of a DAO's entry, in bytes. */
const DAO_BYTES = 300

/** The days of a range whose transfers were not completely read. */
async function loadMissingDays(
  reader: CacheReader,
  daos: readonly number[],
  { from, to }: TimeRange,
): Promise<CachedMissing['byDao']> {
  const load = async (db: Database): Promise<CachedMissing> => {
    const expected = [{ first: from / DAY_MS, last: to / DAY_MS - 1 }]
    const byDao = await openLedger(db, treasuryFlows).missing(daos, { expected, seconds: INTERVAL_SECONDS['1d'] })
    return { byDao, size: DAO_BYTES * daos.length }
  }
  const key = `treasury-flows missing ${from} ${to} ${daos.join(' ')}`
  return (await reader.cache.get(key, { datasets: [treasuryFlows.name] }, load, reader)).byDao
}

const isMissing = (runs: readonly Buckets[], first: number, last: number) =>
  runs.some((run) => run.first <= last && run.last >= first)

/** Transfers are read daily, and up to two hours before the reading: the last complete day ends at most this long ago. */
const LATEST_DAYS = 3

/** The window of each DAO: the last `days` that were read completely, if it ends in the last three days. */
export async function findWindows(
  reader: CacheReader,
  daos: readonly number[],
  days: number,
  now: number,
): Promise<ReadonlyMap<number, TimeRange & { readonly isComplete: boolean }>> {
  const today = toBucketStart(now, '1d')
  const missing = await loadMissingDays(reader, daos, { from: today - (days + LATEST_DAYS) * DAY_MS, to: today })
  return new Map(
    daos.map((dao) => {
      const runs = missing.get(dao) ?? []
      const ends = Array.from({ length: LATEST_DAYS + 1 }, (_, ago) => today - ago * DAY_MS)
      const end = ends.find((to) => !isMissing(runs, to / DAY_MS - days, to / DAY_MS - 1))
      const to = end ?? today
      return [dao, { from: to - days * DAY_MS, to, isComplete: end !== undefined }]
    }),
  )
}

/** A reading that is older than this many days leaves the time of an answer to its newest transfer. */
const OLDEST_DAYS = 30

/** The end of the last day of a DAO whose transfers were read completely; undefined if there is none of late. */
export async function findReadEnd(reader: CacheReader, dao: number, now: number): Promise<number | undefined> {
  const today = toBucketStart(now, '1d')
  const missing = await loadMissingDays(reader, [dao], { from: today - OLDEST_DAYS * DAY_MS, to: today })
  const runs = missing.get(dao) ?? []
  for (let end = today; end > today - OLDEST_DAYS * DAY_MS; end -= DAY_MS)
    if (!isMissing(runs, end / DAY_MS - 1, end / DAY_MS - 1)) return end
  return undefined
}
