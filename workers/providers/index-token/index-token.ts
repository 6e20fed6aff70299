import { z } from 'zod'
import { nodesDeclaration } from '../../../shared/config/providers/nodes.ts'
import type { IndexTokenRow } from '../../../shared/datasets/index-token.ts'
import { DataError } from '../../../shared/errors.ts'
import type { BasketIndex } from '../../../shared/registry/index-records.ts'
import type { Database } from '../../../shared/store/store.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Candidate, Provider } from '../../job/define-job.ts'
import { openDefiLlamaCoins } from '../defillama/client.ts'
import { toCoin } from '../defillama/prices.ts'
import { fetchPrices } from '../evm/dex/quote-prices.ts'
import { toLag } from '../evm/logs/node.ts'
import { createJsonRpc, type JsonRpc } from '../evm/rpc/json-rpc.ts'
import { type BlockState, callAll, createBlockState, pinBlock, type StateQuestion } from './contract-views.ts'
import { type Decimal, dividedBy, times, toText } from './decimal.ts'
import { latestRoundOf, toEtherPrice } from './ether-price.ts'
import { ETHER_PLACES, findWrappedEther, type PriceForeign, readComponents, toLockedEther } from './locked-value.ts'

/** The current state of the Index Token. */
export interface IndexTokenSource {
  /** @throws DataError `provider_unavailable` if the node lags behind the slot (Unix milliseconds). */
  fetchToken(index: BasketIndex, slot: number, signal: AbortSignal): Promise<Candidate<IndexTokenRow>>
}

/**
 * Depth of the block that is read: recent, but final. No block this deep has been replaced since Ethereum has
 * validators.
 */
const DEPTH = 12
/** Decimal places of the price of one Index Token. */
const PRICE_PLACES = 12

/**
 * The Index Token from the JSON-RPC node of its chain (docs/providers.md, section 16). All values are of one block.
 * Amounts stay integers from the chain to the row.
 */
export const indexTokenContract: Provider<IndexTokenSource, BasketIndex> = {
  name: 'index-token-contract',
  cost: nodesDeclaration.cost,
  covers: ({ token }, config) =>
    token.chain in config.providers.rpc.urls && findWrappedEther(token.chain) !== undefined,
  connect(context) {
    const { urls, batchSize, ...settings } = context.config.providers.rpc
    const prices = openDefiLlamaCoins(context)
    // One client per node, because the client adapts to the node's limits.
    const nodes = new Map<string, JsonRpc>()
    const openNode = (chain: string) => {
      const name = `rpc-${chain}`
      const client = context.http.open({ provider: name, baseUrl: urls[chain] ?? '', ...settings })
      return createJsonRpc(name, client, batchSize)
    }
    return {
      fetchToken: (index, slot, signal) => {
        const { chain } = index.token
        const node = nodes.get(chain) ?? openNode(chain)
        nodes.set(chain, node)
        return readToken(node, prices, context.db, { index, slot }, signal)
      },
    }
  },
}

async function readToken(
  rpc: JsonRpc,
  prices: HttpClient,
  db: Database,
  { index, slot }: { index: BasketIndex; slot: number },
  signal: AbortSignal,
): Promise<Candidate<IndexTokenRow>> {
  const { chain, contractAddress, mode } = index.token
  const state = createBlockState(await pinBlock(rpc, DEPTH, signal))
  const [seconds, units, places, feed] = await callAll(
    rpc,
    [
      state.time(),
      state.view(contractAddress, 'totalSupply', [], z.bigint()),
      state.view(contractAddress, 'decimals', [], z.number()),
      latestRoundOf(chain, state),
    ] as const,
    signal,
  )
  // A row of an old block would fill each slot's bucket, as if the token had been read in that slot.
  const lag = toLag(rpc, seconds, slot)
  if (lag !== undefined) throw lag
  const supply = { units, places }
  if (units === 0n) throw new DataError('provider_unavailable', `${rpc.name}: no Index Token is in circulation`)
  const ether = await toEtherPrice(feed, seconds, prices, signal)
  const reading = { chain, seconds, supply, etherUsd: ether.usd }
  const value =
    mode === 'eth'
      ? await readEther(
          rpc,
          [
            state.balance(contractAddress),
            state.view(findWrappedEther(chain) ?? '', 'balanceOf', [contractAddress], z.bigint()),
          ],
          signal,
        )
      : await toLockedEther(
          db,
          await readComponents(rpc, contractAddress, state, signal),
          reading,
          createPriceForeign(rpc, prices, { chain, seconds, state }, signal),
          signal,
        )
  return {
    index_key: index.key,
    created_at: new Date(seconds * 1000).toISOString(),
    block_number: state.block,
    value: toText(value),
    total_supply: toText(supply),
    value_usd: Number(toText(dividedBy(times(value, ether.usd), supply, PRICE_PLACES))),
    eth_usd: Number(toText(ether.usd)),
    eth_source: ether.source,
  }
}

/** Reads decimals from the tokens' contracts, and prices from DefiLlama. */
function createPriceForeign(
  rpc: JsonRpc,
  prices: HttpClient,
  { chain, seconds, state }: { chain: string; seconds: number; state: BlockState },
  signal: AbortSignal,
): PriceForeign {
  return async (addresses) => {
    const views = addresses.map((address) => state.view(address, 'decimals', [], z.number()))
    const decimals = await callAll(rpc, views, signal)
    return Promise.all(
      addresses.map(async (address, at) => {
        const priceAt = await fetchPrices(prices, toCoin(chain, address), seconds, seconds, signal)
        return { address, decimals: decimals[at] ?? 0, price: priceAt(seconds) }
      }),
    )
  }
}

/** Returns the ether of a contract, wrapped or not. */
async function readEther(
  rpc: JsonRpc,
  balances: readonly StateQuestion<bigint>[],
  signal: AbortSignal,
): Promise<Decimal> {
  const found = await callAll(rpc, balances, signal)
  return { units: found.reduce((sum, balance) => sum + balance, 0n), places: ETHER_PLACES }
}
