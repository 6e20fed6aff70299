import { type TokenPriceRow, tokenPriceRow } from '../../shared/datasets/token-prices.ts'
import type { Database } from '../../shared/store/store.ts'

/** A quote in which only the given members are known; `at` is in Unix milliseconds. */
export function toQuote({ at, ...existing }: Partial<TokenPriceRow> & { token: number; at: number }): TokenPriceRow {
  const unknown = Object.fromEntries(Object.keys(tokenPriceRow.shape).map((name) => [name, null]))
  const observed_at = new Date(at).toISOString()
  return tokenPriceRow.parse({ ...unknown, is_latest: false, price: 1, ...existing, observed_at })
}

/** Stores quotes like a job. */
export async function storeQuotes(db: Database, quotes: readonly Parameters<typeof toQuote>[0][]): Promise<void> {
  await db.insert({ table: 'token_quotes_in', rows: quotes.map(toQuote) })
}
