import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Memory } from '../answers/memory.ts'
import type { ListSource } from '../lists/in-database.ts'
import { findRecordSet } from '../lists/record-sets.ts'

/** The latest market caps by token key, as a record set that is read once per change event. */
const SOURCE: ListSource = {
  name: 'market-caps',
  sql: `SELECT token AS key, '' AS name, market_cap, observed_at AS as_of, tuple(token) AS record
FROM token_quotes FINAL WHERE {all: Bool} OR has({keys: Array(UInt64)}, token)`,
  params: {},
  there: undefined,
}

const row = z.object({ key: z.number(), marketCap: z.number().nullable() })

/**
 * The latest market caps in USD by token key; a token without one is absent.
 * @throws DataError `storage`
 */
export async function readMarketCaps(call: {
  readonly db: Database
  readonly memory: Memory
  readonly signal: AbortSignal
}): Promise<ReadonlyMap<number, number>> {
  const set = await findRecordSet(call, { key: SOURCE.name, datasets: [tokenPrices] }, SOURCE)
  const caps =
    set?.records ??
    (await call.db.rows({
      name: SOURCE.name,
      sql: 'SELECT token AS key, market_cap AS marketCap FROM token_quotes FINAL',
      settings: { max_threads: 1 },
      schema: row,
    }))
  return new Map(caps.flatMap(({ key, marketCap }) => (marketCap === null ? [] : [[key, marketCap]])))
}
