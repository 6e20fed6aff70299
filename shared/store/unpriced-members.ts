import { z } from 'zod'
import { type BasketIndex, findComposition } from '../registry/index-records.ts'
import type { Database } from './clickhouse.ts'

/** A member of the index that has no price now; `since` is that of its last one, null where it never had any. */
export interface UnpricedMember {
  readonly symbol: string
  readonly since: string | null
}

/** Prices come every five minutes; a few slots may be late. */
const NEWEST_MS = 30 * 60_000

const quote = z.object({ token: z.number(), at: z.int() })

/**
 * The members of the composition in force whose newest price is over half an hour old at `now` (Unix milliseconds). The
 * index has no value without any one of them. Where all are old the prices as a whole are, which is told of them.
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

/** A sentence for people; empty where every member has a price. */
export function toUnpricedNote(members: readonly UnpricedMember[]): string {
  if (members.length === 0) return ''
  const named = members.map(
    ({ symbol, since }) => `${symbol} (${since === null ? 'never priced' : `last at ${since}`})`,
  )
  return `no new value without a price of ${named.join(', ')}`
}
