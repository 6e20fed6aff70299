import { DAY_MS } from '../../../../shared/intervals.ts'
import type { Token } from '../../../../shared/registry/entities.ts'
import type { NewTradeRequest, TradeRequest } from '../../contracts/trades.ts'
import type { ChainReader } from './chain-reader.ts'
import { type FoundPools, noteFoundPools, readFoundPools } from './chain-state.ts'
import { findPools, type Pool, type PoolSearch } from './pools.ts'

/**
 * Returns the known pools of the tokens. All pools are searched again once a day, those of a new token immediately. The
 * run may contain only some tokens; pools of the others are preserved. If the search for a token fails, its earlier
 * pools are used, and the next run searches again. Without earlier pools the token fails.
 */
export async function refreshPools(
  reader: ChainReader,
  { entities, slot, state, signal }: NewTradeRequest,
): Promise<PoolSearch> {
  const found = await readFoundPools(state, reader.slug)
  const tokens = entities.map(({ contractAddress }) => contractAddress)
  const isFresh = found !== undefined && slot - found.foundAt < DAY_MS
  const all = [...new Set([...(found?.tokens ?? []), ...tokens])]
  const fresh = new Set(isFresh ? found.tokens : [])
  const unsearched = all.filter((address) => !fresh.has(address))
  if (isFresh && unsearched.length === 0) return { pools: toPoolsOf(tokens, found.pools), failed: new Map() }
  const search = await findPools(reader.node.rpc, reader.chain, unsearched, signal)
  const searched = toDated(search.pools, found)
  const before = (found?.pools ?? []).filter(({ token }) => isFresh || search.failed.has(token))
  const pools = toDistinct([...before, ...searched])
  const isFound = (address: string) => !search.failed.has(address)
  noteFoundPools(state, reader.slug, { foundAt: isFresh ? found.foundAt : slot, tokens: all.filter(isFound), pools })
  const tokensWithPools = new Set(pools.map(({ token }) => token))
  return {
    pools: toPoolsOf(tokens, pools),
    failed: new Map([...search.failed].filter(([token]) => !tokensWithPools.has(token))),
  }
}

/**
 * Records for each pool the last time at which it did not exist (`absentAt`). The time is stored with the pool, because
 * a search includes tokens of other runs, which may read the pool much later.
 */
function toDated(pools: readonly Pool[], before: FoundPools | undefined): readonly Pool[] {
  if (before === undefined) return pools
  const byAddress = new Map(before.pools.map((pool) => [pool.address, pool]))
  const searched = new Set(before.tokens)
  return pools.map((pool) => {
    const own = byAddress.get(pool.address)
    const absentAt = searched.has(pool.token) ? before.foundAt : undefined
    return { ...pool, absentAt: own === undefined ? absentAt : own.absentAt }
  })
}

/** Returns the known pools, and searches those of tokens never searched before. */
export async function findRangePools(
  reader: ChainReader,
  { entities, state, signal }: TradeRequest,
): Promise<PoolSearch> {
  const tokens = entities.map(({ contractAddress }) => contractAddress)
  const found = await readFoundPools(state, reader.slug)
  const unknown = tokens.filter((address) => !found?.tokens.includes(address))
  const stored = toPoolsOf(tokens, found?.pools ?? [])
  if (unknown.length === 0) return { pools: stored, failed: new Map() }
  const { pools, failed } = await findPools(reader.node.rpc, reader.chain, unknown, signal)
  return { pools: toDistinct([...stored, ...pools]), failed }
}

/** Tokens that are connected by shared pools, directly or through other tokens, with all their pools. */
export interface PoolGroup {
  readonly tokens: readonly Token[]
  readonly pools: readonly Pool[]
}

/** Groups the tokens so that no pool belongs to two groups. */
export function toPoolGroups(tokens: readonly Token[], pools: readonly Pool[]): PoolGroup[] {
  const byAddress = new Map(tokens.map((token) => [token.contractAddress, token]))
  const poolsOf = new Map<string, Pool[]>(tokens.map(({ contractAddress }) => [contractAddress, []]))
  for (const pool of pools) for (const end of [pool.token, pool.quote]) poolsOf.get(end)?.push(pool)
  const grouped = new Set<string>()
  return tokens.flatMap(({ contractAddress }) => {
    if (grouped.has(contractAddress)) return []
    const joined = new Set([contractAddress])
    const own = new Set<Pool>()
    // Iterating a Set includes members added during the iteration.
    for (const address of joined) {
      grouped.add(address)
      for (const pool of poolsOf.get(address) ?? []) {
        own.add(pool)
        for (const end of [pool.token, pool.quote]) if (poolsOf.has(end)) joined.add(end)
      }
    }
    return [{ tokens: [...joined].flatMap((address) => byAddress.get(address) ?? []), pools: [...own] }]
  })
}

/** Removes duplicate pools; the first one wins. */
function toDistinct(pools: readonly Pool[]): Pool[] {
  const byAddress = new Map<string, Pool>()
  for (const pool of pools) if (!byAddress.has(pool.address)) byAddress.set(pool.address, pool)
  return [...byAddress.values()]
}

export function toPoolsOf(tokens: readonly string[], pools: readonly Pool[]): Pool[] {
  const requested = new Set(tokens)
  return pools.filter(({ token, quote }) => requested.has(token) || requested.has(quote))
}
