import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Memory, Place, Sized } from '../answers/memory.ts'

interface Newest extends Sized {
  readonly at: number | null
}

const newestRow = z.object({ newest: z.int() })

async function readNewest(db: Database, token: number): Promise<Newest> {
  const [row] = await db.rows({
    name: 'newest-price',
    sql: `SELECT toUnixTimestamp64Milli(observed_at) AS newest FROM token_prices
WHERE token = {token: UInt64}
ORDER BY token DESC, observed_at DESC
LIMIT 1`,
    params: { token },
    settings: { max_threads: 1 },
    schema: newestRow,
  })
  return { at: row?.newest ?? null, size: 8 }
}

const toPlace = (token: number): Place => ({
  key: `newest ${token}`,
  dataset: tokenPrices.name,
  from: Number.NEGATIVE_INFINITY,
  to: Number.POSITIVE_INFINITY,
})

/** Like `readNewestKept`, from the cache only; undefined if it is not cached. */
export const peekNewest = (memory: Memory, token: number): number | null | undefined =>
  memory.shelf<Newest>().get(toPlace(token).key)?.at

/**
 * The time of a token's newest observation in Unix milliseconds; null if there is none. It is read again after every
 * change event, because any event may concern a newer one.
 */
export async function readNewestKept(
  { memory, signal }: { readonly memory: Memory; readonly signal: AbortSignal },
  token: number,
): Promise<number | null> {
  const place = toPlace(token)
  const [newest] = await memory.shelf<Newest>().ask([place], async (_, db) => [await readNewest(db, token)], signal)
  return newest?.at ?? null
}
