import { z } from 'zod'
import { idValue, numberOrNull, timeValue } from '../record-values.ts'
import type { Registry } from '../registry/registry.ts'
import { HOLDING_KINDS, NATIVE_COIN } from './treasury.ts'

/** The members that name an asset. */
export const ASSET = {
  symbol: z.string().describe('Symbol of the asset.'),
  token: idValue.nullable().describe('Id of the token if this service has it; null if not.'),
  contractAddress: z
    .string()
    .nullable()
    .describe("Contract of the token; null for a chain's native coin, and if the source does not report it."),
  chain: idValue.nullable().describe('Id of the chain; null if the source does not report it.'),
}

/** The members with the value of an amount of an asset. */
export const ASSET_VALUE = {
  priceUsd: numberOrNull.describe('Price of one unit of the asset in US dollars; null if no source has a price.'),
  valueUsd: numberOrNull.describe('Value of the quantity in US dollars; null if `priceUsd` is null.'),
}

/** The amount of one asset in a treasury on one day, on one chain. */
export const dailyHolding = z
  .strictObject({
    recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
    ...ASSET,
    kind: z
      .enum(HOLDING_KINDS)
      .nullable()
      .describe(
        "The DAO's own token, a stablecoin in the list of this service, or another asset; null if only totals per token are stored.",
      ),
    quantity: z.number().describe('How many tokens, at all addresses together.'),
    ...ASSET_VALUE,
  })
  .meta({ id: 'DailyHolding', description: 'The amount of one asset in a treasury on one day, on one chain.' })

/** Chains of the registry as parameters: treasuries store the slug of a chain, records have its id. */
export const toChainParams = ({ chains }: Registry) => ({
  chains: chains.map(({ slug }) => slug),
  chain_ids: chains.map(({ id }) => id),
})

/**
 * SQL for the stored holdings of a row without their addresses. `asset` is unique among the assets of a chain: two of
 * them may have one symbol.
 */
const PARTS =
  'arrayMap(one -> tuple(one.chain, one.contract, one.symbol, one.quantity, one.value_usd, one.kind, ifNull(one.contract, one.symbol)), holdings)'
/** SQL for the same tuples of a row that has only totals per token. */
const TOTALS = `arrayMap((one, place) -> tuple('', CAST(NULL AS Nullable(String)), one.symbol, one.quantity, one.value_usd, '', toString(place)),
      tokens, arrayEnumerate(tokens))`

/**
 * SQL for the assets of each day, all addresses of a chain together: `dao`, `observed_at`, `symbol`, `token`, `contract`, `chain`,
 * `kind`, `quantity`, `price_usd`, `value_usd`, and `chain_name` and `asset`, which are unique together in a day. `days` selects rows of
 * the table.
 */
export const selectDailyHoldings = (days: string, isWanted = 'true'): string => `
SELECT h.dao AS dao, h.observed_at AS observed_at, h.symbol AS symbol, nullIf(t.id, '') AS token, nullIf(h.contract, '${NATIVE_COIN}') AS contract,
  nullIf(h.chain_id, '') AS chain, nullIf(h.kind, '') AS kind, h.quantity AS quantity, h.value_usd / h.quantity AS price_usd, h.value_usd AS value_usd,
  h.chain_name AS chain_name, h.asset AS asset
FROM
(
  SELECT dao, observed_at, one.1 AS chain_name, one.7 AS asset, any(one.2) AS contract, any(one.3) AS symbol, any(one.6) AS kind,
    transform(chain_name, {chains: Array(String)}, {chain_ids: Array(String)}, '') AS chain_id,
    sum(one.4) AS quantity, if(countIf(isNull(one.5)) > 0, NULL, sum(one.5)) AS value_usd
  FROM (${days})
  ARRAY JOIN if(empty(holdings), ${TOTALS}, ${PARTS}) AS one
  WHERE ${isWanted}
  GROUP BY dao, observed_at, chain_name, asset
) AS h
LEFT JOIN (SELECT id, chain_id, contract_address FROM tokens FINAL) AS t
  ON t.chain_id = h.chain_id AND t.contract_address = ifNull(h.contract, '')`
