import { z } from 'zod'
import { DAY_MS, INTERVAL_SECONDS } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Database } from '../../../shared/store/store.ts'

const NEWEST_MARKET_CAPS = `
  SELECT token, argMax(market_cap, bucket_at) AS usd FROM token_price_rollups FINAL
  WHERE interval_seconds = ${INTERVAL_SECONDS['1d']} AND bucket_at >= fromUnixTimestamp64Milli({since: Int64}) AND market_cap > 0
  GROUP BY token`

const marketCapOf = z.object({ token: z.number(), usd: z.number() })

/** Maximum age of a market cap that is used to rank tokens. */
const VALID_DAYS = 30

/**
 * Sorts the tokens by their stored market cap as of `at` (Unix milliseconds), largest first, tokens without one last.
 */
export async function orderByMarketCap<T extends Pick<Token, 'key'>>(
  db: Database,
  tokens: readonly T[],
  at: number,
): Promise<T[]> {
  const params = { since: at - VALID_DAYS * DAY_MS }
  const rows = await db.rows({ name: 'newest-market-caps', sql: NEWEST_MARKET_CAPS, params, schema: marketCapOf })
  const sizes = new Map(rows.map(({ token, usd }) => [token, usd]))
  const sizeOf = ({ key }: T) => sizes.get(key) ?? 0
  return [...tokens].sort((a, b) => sizeOf(b) - sizeOf(a))
}
