import type { Database } from '../../shared/store/store.ts'

/**
 * Stores an invented market: `points` observations of each token, `stepMs` apart, the last at `until`. Every value is a
 * different exact number. The last observation is the latest quote. `price` is the first price. Without `supplies`,
 * supplies are unknown.
 */
export async function storeMarket(
  db: Database,
  market: {
    keys: readonly number[]
    until: number
    points: number
    stepMs: number
    price?: number
    supplies?: boolean
  },
): Promise<void> {
  await db.command({
    name: 'store-market',
    sql: `INSERT INTO token_quotes_in (* EXCEPT(collected_at))
SELECT token, fromUnixTimestamp64Milli({until: Int64} - toInt64({points: UInt32} - 1 - number) * {stepMs: Int64}, 'UTC'),
  number = {points: UInt32} - 1, {price: Float64} + rank + (number % 1000) / 1000, 1000.25 + number, 1e6 * (rank + 1) + number, if({supplies: Bool}, 2e6, NULL), if({supplies: Bool}, 1e6, NULL),
  if(rank % 2 = 0, NULL, 3e6), 4e6 + rank, -1.5, 0.1, -0.2, 0.3, -0.4, 0.5, -0.6, NULL
FROM (SELECT arrayJoin(arrayZip({keys: Array(UInt64)}, range(length({keys: Array(UInt64)})))) AS pair, pair.1 AS token, pair.2 AS rank) AS t
CROSS JOIN numbers({points: UInt32}) AS n`,
    params: { price: 1.5, supplies: true, ...market },
  })
}
