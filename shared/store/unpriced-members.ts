import { z } from 'zod'
import { type BasketIndex, findComposition } from '../registry/index-records.ts'
import type { Database } from './clickhouse.ts'

/** A member of the index without a current price; `since` is the time of its last one, null if it never had any. */
export interface UnpricedMember {
  readonly symbol: string
  readonly since: string | null
}

/** Prices arrive every five minutes; a few slots may be late. */
const NEWEST_MS = 30 * 60_000

const quote = z.object({ token: z.number(), at: z.int() })

/**
 * Returns the members of the active composition with a newest price more than half an hour before `now` (Unix
 * milliseconds). Without any one of them, the index has no value. Returns none if all are old, because the dataset's
 * freshness reports that.
 */
export async function readUnpricedMembers(db: Database, index: BasketIndex, now: number): Promise<UnpricedMember[]> {
  const tokens = (findComposition(index, now)?.elements ?? []).map(({ token }) => token)
  const rows = await db.rows({
    name: 'unpriced-members',
    sql: `SELECT token, toUnixTimestamp64Milli(observed_at) AS at FROM token_quotes FINAL
WHERE token IN {tokens: Array(UInt64)}`,
    params: { tokens: tokens.map(({ key }) => key) },
    schema: quote,
  })
  const newest = new Map(rows.map(({ token, at }) => [token, at]))
  const old = tokens.filter(({ key }) => (newest.get(key) ?? 0) < now - NEWEST_MS)
  if (old.length === tokens.length) return []
  return old.map(({ key, symbol }) => {
    const at = newest.get(key)
    return { symbol, since: at === undefined ? null : new Date(at).toISOString() }
  })
}

/** A sentence for logs and reports; empty if every member has a price. */
export function toUnpricedNote(members: readonly UnpricedMember[]): string {
  if (members.length === 0) return ''
  const named = members.map(
    ({ symbol, since }) => `${symbol} (${since === null ? 'never priced' : `last at ${since}`})`,
  )
  return `no new value without a price of ${named.join(', ')}`
}
