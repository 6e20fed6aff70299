import { z } from 'zod'
import { IS_WHOLE, KIND_VALUES } from '../../shared/datasets/treasury.ts'
import { isWallet } from '../../shared/datasets/treasury-flows.ts'
import { groupBy } from '../../shared/group-by.ts'
import { DAY_MS, type TimeRange } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import type { CacheReader } from '../cache/cache.ts'
import { toQuotes } from '../lists/lists.ts'
import { loadIncomeAndSpending } from './day-flows.ts'
import { findWindows } from './read-days.ts'
import { computeRunway, type Runway, type RunwayDefinition, type RunwayFlow, type RunwayHoldings } from './runway.ts'
import { type AssetFlows, toAssetKey, toTokens } from './sums.ts'

/** Holdings that are older are not current. */
const HOLDINGS_WITHIN_MS = 3 * DAY_MS

const storedDao = z.object({
  dao: z.number(),
  marketCap: z.number().nullable(),
  at: z.int(),
  valueUsd: z.number(),
  ownTokenUsd: z.number().nullable(),
  stablecoinUsd: z.number().nullable(),
  otherUsd: z.number().nullable(),
  isPartial: z.coerce.boolean(),
})

/** The market cap of each DAO's token, and its newest holdings by kind at the moment `at`; `at` of the row is 0 without any. */
const toDaosSql = (isPast: boolean) => `
SELECT d.key AS dao, q.market_cap AS marketCap, toUnixTimestamp64Milli(t.newest.1) AS at, t.newest.2 AS valueUsd, t.newest.3 AS ownTokenUsd,
  t.newest.4 AS stablecoinUsd, t.newest.5 AS otherUsd, t.newest.6 AS isPartial
FROM (SELECT key, token_key FROM daos FINAL) AS d
LEFT JOIN ${toQuotes(isPast)} AS q ON q.token = d.token_key
LEFT JOIN
(
  SELECT dao, argMax(tuple(observed_at, value_usd, own, stable, other, is_partial), observed_at) AS newest FROM
  (
    SELECT dao, observed_at, value_usd, ${KIND_VALUES.own_token_usd} AS own, ${KIND_VALUES.stablecoin_usd} AS stable,
      ${KIND_VALUES.other_usd} AS other, NOT ${IS_WHOLE} AS is_partial
    FROM dao_treasuries FINAL
    WHERE observed_at <= fromUnixTimestamp64Milli({at: Int64}, 'UTC') AND observed_at > fromUnixTimestamp64Milli({since: Int64}, 'UTC')
  )
  GROUP BY dao
) AS t ON t.dao = d.key`

/** The runway of a DAO, and the values by which lists are ordered. */
export interface DaoRunway {
  readonly dao: Dao
  readonly marketCap: number | null
  readonly holdings: RunwayHoldings | undefined
  readonly window: TimeRange
  readonly runway: Runway
}

/** Computes the runways of DAOs from the data stored at a moment. */
export async function readRunways(
  call: CacheReader & { readonly db: Database; readonly registry: Registry },
  daos: readonly Dao[],
  definition: RunwayDefinition,
  { at, isPast }: { readonly at: number; readonly isPast: boolean },
): Promise<DaoRunway[]> {
  const { db, registry } = call
  const keys = daos.map(({ key }) => key)
  const [windows, stored] = await Promise.all([
    findWindows(call, keys, definition.window, at),
    db.rows({
      name: 'runway-daos',
      sql: toDaosSql(isPast),
      params: { at, since: at - HOLDINGS_WITHIN_MS },
      settings: { max_threads: 1 },
      schema: storedDao,
    }),
  ])
  const from = Math.min(...[...windows.values()].map((window) => window.from))
  const flows = daos.length === 0 ? new Map() : await loadIncomeAndSpending(call, from)
  const storedOf = new Map(stored.map((row) => [row.dao, row]))
  const tokensOf = groupBy(registry.tokens, (token) => token.dao)
  return daos.flatMap((dao) => {
    const window = windows.get(dao.key)
    if (window === undefined) return []
    const { marketCap = null, ...row } = storedOf.get(dao.key) ?? { at: 0 }
    const holdings = row.at === 0 ? undefined : (row as RunwayHoldings)
    const ownTokens = tokensOf.get(dao.slug) ?? []
    const own = new Set(ownTokens.map(({ chain, contractAddress: contract }) => toAssetKey({ chain, contract })))
    const paid = (flows.get(dao.key) ?? []).filter(
      (asset: AssetFlows) => definition.assets === 'all' || !own.has(toAssetKey(asset)),
    )
    const facts = {
      hasAddresses: dao.treasuries.some(isWallet),
      ownSymbols: [...new Set(ownTokens.map(({ symbol }) => symbol))],
      ...{ window, holdings },
      spending: sumKind(paid, 'spending', window),
      income: sumKind(paid, 'income', window),
    }
    return [{ dao, marketCap, holdings, window, runway: computeRunway(facts, definition) }]
  })
}

function sumKind(assets: readonly AssetFlows[], kind: 'spending' | 'income', { from, to }: TimeRange): RunwayFlow {
  let [usd, transfers, withoutPrice] = [0, 0, 0]
  for (const { days, decimals } of assets)
    for (const flow of days) {
      if (flow.kind !== kind || flow.day < from || flow.day >= to) continue
      transfers += flow.transfers
      if (flow.priceUsd === null || decimals === null) withoutPrice += flow.transfers
      else usd += toTokens(flow.units, decimals) * flow.priceUsd
    }
  return { usd: transfers === withoutPrice ? null : usd, transfers, withoutPrice }
}
