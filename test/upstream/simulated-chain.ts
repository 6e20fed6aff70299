import { createHash } from 'node:crypto'
import { type Chain, type ChainLog, encodeV2Swap, encodeV3Swap, type PoolQuestion } from './chain.ts'
import type { ChainFacts } from './chain-facts.ts'
import { toNoiseKey, unit } from './noise.ts'
import type { Asset, History } from './world.ts'

const TRADERS = 4_000

interface Pool {
  readonly address: string
  readonly key: number
  /** Index among all pools, also used as the log index: a pool has at most one swap per block. */
  readonly index: number
  readonly isV3: boolean
  readonly asset: Asset
  readonly quote: Asset
  /** Share of the blocks with a swap. */
  readonly density: number
}

const toHex = (text: string, digits: number) => createHash('sha256').update(text).digest('hex').slice(0, digits)

/**
 * A chain generated from a seed: blocks at a constant pace, pools of the registry's tokens, and swaps at approximately
 * the market's prices. A swap is a function of seed, pool and block, so that no state is needed and any range can be
 * requested.
 */
export function createSimulatedChain(
  facts: ChainFacts,
  assets: readonly Asset[],
  historyOf: (asset: Asset) => History | null,
  seed: number,
): Chain {
  const { anchor, secondsPerBlock } = facts
  const pools = toPools(facts, assets, seed)
  const byAddress = new Map(pools.map((pool) => [pool.address, pool]))
  const timeOf = (block: number) => anchor.seconds + Math.floor((block - anchor.block) * secondsPerBlock)
  return {
    chainId: facts.chainId,
    habits: facts.habits,
    headAt: (now) => Math.max(0, anchor.block + Math.floor((now / 1000 - anchor.seconds) / secondsPerBlock)),
    timeOf: (block) => Math.max(0, timeOf(block)),
    pool: (question) => byAddress.get(toPoolAddress(question))?.address ?? null,
    logs(from, to, addresses) {
      const matchingPools = pools.filter(({ address }) => addresses.has(address))
      const found: ChainLog[] = []
      for (let block = from; matchingPools.length > 0 && block <= to; block += 1) {
        for (const pool of matchingPools) {
          if (unit(pool.key, block) >= pool.density) continue
          const log = toLog(pool, block, timeOf(block) * 1000, historyOf)
          if (log !== null) found.push(log)
        }
      }
      return found
    },
    transaction: (hash) => ({ blockNumber: Number.parseInt(hash.slice(2, 10), 16), from: toTrader(hash) }),
  }
}

function toPoolAddress({ factory, tokens, fee }: PoolQuestion): string {
  return `0x${toHex([factory, ...[...tokens].sort(), fee ?? ''].join(' '), 40)}`
}

/** Each token has a pool with ether; further pools, exchanges and quote tokens are random. */
function toPools(
  { slug, quotes, offers, secondsPerBlock, swapsPerHour, reference }: ChainFacts,
  assets: readonly Asset[],
  seed: number,
): Pool[] {
  const worldly = new Map(assets.filter(({ dao }) => dao === null).map((asset) => [asset.symbol, asset]))
  /** The asset of a symbol, with its address on this chain. */
  const toQuote = (symbol: string): Asset | undefined => {
    const [asset, local] = [worldly.get(symbol), quotes[symbol]]
    return asset && local && { ...asset, contractAddress: local.address, decimals: local.decimals }
  }
  const toPool = (address: string, asset: Asset, quote: Asset, isV3: boolean, perHour?: number) => {
    const key = toNoiseKey(seed, address)
    const density = ((perHour ?? swapsPerHour * 20 ** unit(key, -1)) * secondsPerBlock) / 3600
    return { address, key, isV3, asset, quote, density }
  }
  const listed = assets.filter(({ chain, dao }) => chain === slug && dao !== null)
  const found = listed.flatMap((asset) =>
    offers.flatMap(({ quote: symbol, factory, fee, share }, at) => {
      const quote = toQuote(symbol)
      if (quote === undefined || unit(toNoiseKey(seed, asset.id), -30 - at) >= share) return []
      const address = toPoolAddress({ factory, tokens: [asset.contractAddress, quote.contractAddress], fee })
      return [toPool(address, asset, quote, fee !== null)]
    }),
  )
  const [ether, dollar] = [toQuote('WETH'), toQuote('USDC')]
  if (reference !== undefined && ether !== undefined && dollar !== undefined)
    found.push(toPool(reference.address, ether, dollar, true, reference.swapsPerHour))
  return found.map((pool, index) => ({ ...pool, index }))
}

function toLog(pool: Pool, block: number, at: number, historyOf: (asset: Asset) => History | null): ChainLog | null {
  const price = historyOf(pool.asset)?.lastAt(at)?.price
  const quotePrice = historyOf(pool.quote)?.lastAt(at)?.price
  if (price === undefined || quotePrice === undefined) return null
  const usd = 10 ** (1.5 + 2.5 * unit(pool.key ^ 1, block))
  const sign = unit(pool.key ^ 2, block) < 0.5 ? 1n : -1n
  // Fee and slippage: within a percent of the price.
  const paid = usd * (0.995 + 0.01 * unit(pool.key ^ 3, block))
  const net = sign * toUnits(usd / price, pool.asset.decimals)
  const quoteNet = -sign * toUnits(paid / quotePrice, pool.quote.decimals)
  if (net === 0n || quoteNet === 0n) return null
  const isFirst = pool.asset.contractAddress < pool.quote.contractAddress
  const nets = isFirst ? ([net, quoteNet] as const) : ([quoteNet, net] as const)
  const hash = `0x${block.toString(16).padStart(8, '0')}${toHex(`${pool.address} ${block}`, 56)}`
  return {
    address: pool.address,
    ...(pool.isV3 ? encodeV3Swap(...nets) : encodeV2Swap(...nets)),
    blockNumber: block,
    transactionHash: hash,
    transactionIndex: pool.index,
    logIndex: pool.index,
  }
}

/** Whole tokens in their smallest unit, to nine decimals. */
function toUnits(amount: number, decimals: number): bigint {
  const digits = Math.min(9, decimals)
  return BigInt(Math.round(amount * 10 ** digits)) * 10n ** BigInt(decimals - digits)
}

function toTrader(hash: string): string {
  return `0x${toHex(`trader ${Number.parseInt(hash.slice(10, 18), 16) % TRADERS}`, 40)}`
}
