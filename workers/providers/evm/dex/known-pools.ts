import { DAY_MS } from '../../../../shared/intervals.ts'
import type { Token } from '../../../../shared/registry/entities.ts'
import type { NewTradeRequest, TradeRequest } from '../../contracts/trades.ts'
import type { ChainReader } from './chain-reader.ts'
import { noteFoundPools, readFoundPools } from './chain-state.ts'
import { findPools, type Pool } from './pools.ts'

/**
 * The pools as they were found. All are searched again once a day, and those of a new token at once. The run may be about
 * some tokens only; what was found of the others is kept.
 */
export async function refreshPools(
  reader: ChainReader,
  { entities, slot, state, signal }: NewTradeRequest,
): Promise<readonly Pool[]> {
  const found = await readFoundPools(state, reader.slug)
  const tokens = entities.map(({ contractAddress }) => contractAddress)
  const isFresh = found !== undefined && slot - found.foundAt < DAY_MS
  const all = [...new Set([...(found?.tokens ?? []), ...tokens])]
  const wanted = isFresh ? all.filter((address) => !found.tokens.includes(address)) : all
  if (isFresh && wanted.length === 0) return toPoolsOf(tokens, found.pools)
  const searched = await findPools(reader.node.rpc, reader.chain, wanted, signal)
  const pools = isFresh ? toDistinct([...found.pools, ...searched]) : searched
  noteFoundPools(state, reader.slug, { foundAt: isFresh ? found.foundAt : slot, tokens: all, pools })
  return toPoolsOf(tokens, pools)
}

/** The pools that are known, and those of tokens that were never looked for. */
export async function findRangePools(reader: ChainReader, { entities, state, signal }: TradeRequest): Promise<Pool[]> {
  const tokens = entities.map(({ contractAddress }) => contractAddress)
  const found = await readFoundPools(state, reader.slug)
  const unknown = tokens.filter((address) => !found?.tokens.includes(address))
  const more = unknown.length === 0 ? [] : await findPools(reader.node.rpc, reader.chain, unknown, signal)
  return toDistinct([...toPoolsOf(tokens, found?.pools ?? []), ...more])
}

/** The pools of a token, of those that share one with it, and so on. */
export function toPoolsInCommon(token: Token, all: readonly Token[], pools: readonly Pool[]): Pool[] {
  const others = new Set(all.map(({ contractAddress }) => contractAddress))
  const joined = new Set([token.contractAddress])
  // A set goes on with what is added to it on the way.
  for (const address of joined) {
    for (const pool of toPoolsOf([address], pools)) {
      for (const end of [pool.token, pool.quote]) if (others.has(end)) joined.add(end)
    }
  }
  return toPoolsOf([...joined], pools)
}

/** Each pool once, as it was found first. */
function toDistinct(pools: readonly Pool[]): Pool[] {
  const byAddress = new Map<string, Pool>()
  for (const pool of pools) if (!byAddress.has(pool.address)) byAddress.set(pool.address, pool)
  return [...byAddress.values()]
}

export function toPoolsOf(tokens: readonly string[], pools: readonly Pool[]): Pool[] {
  return pools.filter(({ token, quote }) => tokens.includes(token) || tokens.includes(quote))
}
