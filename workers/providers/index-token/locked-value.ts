import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import { toId } from '../../../shared/ids.ts'
import type { Database } from '../../../shared/store/store.ts'
import { DEX_CHAINS } from '../evm/dex/exchanges.ts'
import type { JsonRpc } from '../evm/rpc/json-rpc.ts'
import { type BlockState, callAll } from './contract-views.ts'
import { type Decimal, dividedBy, plus, times, toDecimal } from './decimal.ts'

/** A component of a Set Protocol contract: its quantity per Index Token, in the component's smallest unit. */
export interface Component {
  /** Lower-case. */
  readonly address: string
  readonly units: bigint
}

/** Facts of a reading that are known before the components are valued. */
export interface Reading {
  readonly chain: string
  /** The block's time in Unix seconds. */
  readonly seconds: number
  readonly supply: Decimal
  /** Dollars for one ether. */
  readonly etherUsd: Decimal
}

/** Decimal places of ether. */
export const ETHER_PLACES = 18
/** Largest distance of a component's price from the block's time; prices are collected every 5 minutes. */
const PRICE_REACH_MS = 30 * 60_000

const address = z.string().transform((text) => text.toLowerCase())

/** Returns the address of wrapped ether on chains whose native coin is ether. */
export function findWrappedEther(chain: string): string | undefined {
  return DEX_CHAINS[chain]?.quotes.find(({ symbol }) => symbol === 'WETH')?.address
}

/** Reads the components of a Set Protocol contract at the block of `state`. */
export async function readComponents(
  rpc: JsonRpc,
  contract: string,
  state: BlockState,
  signal: AbortSignal,
): Promise<Component[]> {
  const [addresses] = await callAll(rpc, [state.view(contract, 'getComponents', [], z.array(address))] as const, signal)
  const units = await callAll(
    rpc,
    addresses.map((one) => state.view(contract, 'getTotalComponentRealUnits', [one], z.bigint())),
    signal,
  )
  return addresses.map((one, at) => ({ address: one, units: units[at] ?? 0n }))
}

const pricedToken = z.object({
  address: z.string(),
  decimals: z.int(),
  live: z.boolean(),
  price: z.number().nullable(),
})

// Selects the observation nearest to the block's time. The newest one may be later than the block, if its slot began
// after the block.
const PRICES = `
WITH members AS
  (SELECT * FROM tokens FINAL WHERE chain_id = {chain: String} AND has({addresses: Array(String)}, contract_address))
SELECT m.contract_address AS address, m.decimals AS decimals, m.live AS live, if(p.token = 0, NULL, p.nearest_price) AS price
FROM members AS m
LEFT JOIN
(
  SELECT token, argMin(price, (abs(toUnixTimestamp64Milli(observed_at) - {at: Int64}), observed_at)) AS nearest_price
  FROM token_prices FINAL
  WHERE token IN (SELECT key FROM members)
    AND observed_at >= fromUnixTimestamp64Milli({at: Int64} - {reach: Int64}, 'UTC')
    AND observed_at <= fromUnixTimestamp64Milli({at: Int64} + {reach: Int64}, 'UTC')
  GROUP BY token
) AS p ON p.token = m.key`

/**
 * Returns the value of the components of all Index Tokens in ether, truncated to 18 places: supply times the value of
 * one token, at the stored prices of that time (docs/providers.md, section 16). For tokens that are not in the registry
 * or no longer live, no prices are stored: `priceForeign` provides them.
 * @throws DataError `provider_unavailable` with the components without a price: the others alone are not the value.
 */
export async function toLockedEther(
  db: Database,
  components: readonly Component[],
  { chain, seconds, supply, etherUsd }: Reading,
  priceForeign: PriceForeign,
  signal: AbortSignal,
): Promise<Decimal> {
  const addresses = components.map((component) => component.address)
  const params = { addresses, chain: toId('chain', chain), at: seconds * 1000, reach: PRICE_REACH_MS }
  const tokens = await db.rows({ name: 'component-prices', sql: PRICES, params, schema: pricedToken, signal })
  const byAddress = new Map([...toQuotes(chain, etherUsd), ...tokens.flatMap(toPriced)])
  const ownTokens = new Set(tokens.filter(({ live }) => live).map(({ address }) => address))
  const foreign = addresses.filter((one) => !ownTokens.has(one) && !byAddress.has(one))
  for (const { address, decimals, price } of foreign.length === 0 ? [] : await priceForeign(foreign))
    if (price !== undefined) byAddress.set(address, { places: decimals, usd: toDecimal(String(price)) })
  const unpriced: string[] = []
  let usd: Decimal = { units: 0n, places: 0 }
  for (const component of components) {
    const priced = byAddress.get(component.address)
    if (priced === undefined) unpriced.push(component.address)
    else usd = plus(usd, times({ units: component.units, places: priced.places }, priced.usd))
  }
  if (unpriced.length > 0) {
    const message = `the Index Token has components without a fresh price: ${unpriced.join(', ')}`
    throw new DataError('provider_unavailable', message)
  }
  return dividedBy(times(supply, usd), etherUsd, ETHER_PLACES)
}

/** Returns decimals and prices in USD, as of the reading, of tokens that are not in the registry or not collected. */
export type PriceForeign = (
  addresses: readonly string[],
) => Promise<readonly { readonly address: string; readonly decimals: number; readonly price: number | undefined }[]>

type Priced = readonly [address: string, value: { readonly places: number; readonly usd: Decimal }]

const toPriced = ({ address, decimals, price }: z.infer<typeof pricedToken>): Priced[] =>
  price === null ? [] : [[address, { places: decimals, usd: toDecimal(String(price)) }]]

/** Returns ether and dollar tokens, which need no stored price. */
function toQuotes(chain: string, etherUsd: Decimal): Priced[] {
  const quotes = DEX_CHAINS[chain]?.quotes ?? []
  return quotes.map(({ address, decimals, usd }) => [
    address,
    { places: decimals, usd: usd === 'dollar' ? toDecimal('1') : etherUsd },
  ])
}
