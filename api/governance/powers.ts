import { z } from 'zod'
import { delegations } from '../../shared/datasets/delegations.ts'
import type { Database } from '../../shared/store/store.ts'
import type { CacheReader, Sized } from '../cache/cache.ts'
import { toPowers } from './delegates.ts'

/** The power that is delegated to the addresses of a person, in base units of the token. */
export interface OwnPower {
  readonly units: bigint
  readonly decimals: number
  /** Place of that power among all other delegates, from 1 on; null without power. */
  readonly rank: number | null
}

/** The powers of all delegates of a DAO at a moment, the largest first. */
interface CachedPowers extends Sized {
  readonly units: readonly bigint[]
  /** The index of each delegate. */
  readonly places: ReadonlyMap<string, number>
  readonly decimals: number
}

/** Estimated bytes of a delegate: its address, its power and its entry. */
const DELEGATE_BYTES = 200

const stored = z.object({ delegates: z.array(z.string()), units: z.array(z.string()), decimals: z.int() })

async function readPowers(db: Database, isPast: boolean, params: Readonly<Record<string, unknown>>) {
  const [row] = await db.rows({
    name: 'governance-powers',
    sql: `SELECT groupArray(delegate) AS delegates, groupArray(toString(units)) AS units, any(decimals) AS decimals
FROM (SELECT delegate, units, decimals FROM (${toPowers(isPast)}) ORDER BY units DESC, delegate)`,
    params,
    schema: stored,
  })
  if (row === undefined) throw new Error('the statement returns one row')
  return {
    size: DELEGATE_BYTES * row.delegates.length,
    units: row.units.map(BigInt),
    places: new Map(row.delegates.map((delegate, place) => [delegate, place])),
    decimals: row.decimals,
  }
}

/** How many units are larger; the units are in descending order. */
function countLarger(units: readonly bigint[], own: bigint): number {
  let [low, high] = [0, units.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((units[middle] as bigint) > own) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * The power of a person at the end of a range. The powers of all delegates at that moment are cached, so the record of
 * another person reads only its own votes. `params` are those of the range: `dao`, `space` and `at`.
 */
export async function findOwnPower(
  reader: CacheReader,
  { isPast, params }: { readonly isPast: boolean; readonly params: Readonly<Record<string, unknown>> },
  addresses: readonly string[],
): Promise<OwnPower> {
  const key = `governance-powers ${params.dao} ${params.space} ${isPast ? params.at : 'now'}`
  const load = (db: Database): Promise<CachedPowers> => readPowers(db, isPast, params)
  const cached = await reader.cache.get(key, { datasets: [delegations.name] }, load, reader)
  const own = addresses.flatMap((address) => cached.units[cached.places.get(address) ?? -1] ?? [])
  const units = own.reduce((sum, one) => sum + one, 0n)
  // No address of the person has more than all of them together, so only others are counted.
  return { units, decimals: cached.decimals, rank: units > 0n ? 1 + countLarger(cached.units, units) : null }
}
