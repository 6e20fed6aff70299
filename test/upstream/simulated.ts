import type { Dao } from '../../shared/registry/entities.ts'
import type { Chain } from './chain.ts'
import { type ChainFacts, ETHEREUM, LAYERS } from './chain-facts.ts'
import { createMarketProcess, type MarketProcess } from './market-process.ts'
import { toNoiseKey, unit } from './noise.ts'
import { createSimulatedChain } from './simulated-chain.ts'
import { withGovernors } from './simulated-governors.ts'
import { createSimulatedHolders } from './simulated-holders.ts'
import { createSimulatedIndexToken } from './simulated-index-token.ts'
import { inventProfile } from './simulated-profiles.ts'
import { createSimulatedProtocols } from './simulated-protocols.ts'
import { createSimulatedSocials } from './simulated-socials.ts'
import { createSimulatedSpaces } from './simulated-spaces.ts'
import { createSimulatedTransfers } from './simulated-transfers.ts'
import { createSimulatedTreasuries } from './simulated-treasuries.ts'
import {
  type Asset,
  DAY,
  FIVE_MINUTES,
  type History,
  HOUR,
  type Listing,
  type MarketChart,
  MINUTE,
  PUBLICATION_LAG,
  percentChange,
  type Quote,
  toAssets,
  toSlug,
  type World,
  type WorldRegistry,
} from './world.ts'

/** Update interval of the ETH/USD feed. */
const FEED_HEARTBEAT = 20 * MINUTE

/** A market generated from a seed: the same seed and registry give the same responses, in any process and order. */
export function createSimulatedWorld(registry: WorldRegistry, seed: number): World {
  const assets = toAssets(registry)
  const processes = new Map(assets.map((asset) => [asset.id, createMarketProcess(seed, asset)]))
  const protocols = createSimulatedProtocols(registry, seed)
  const treasuries = createSimulatedTreasuries(registry, seed, processes)
  const processOf = (asset: Asset): MarketProcess | undefined => processes.get(asset.id)
  const marketRanks = rankBySlot(processes)

  function listing(asset: Asset, now: number): Listing | null {
    const process = processOf(asset)
    const at = Math.floor((now - PUBLICATION_LAG) / MINUTE) * MINUTE
    if (!process || at < process.launch) return null
    const { rank, total } = marketRanks(asset.id, at)
    const reportsTvl = asset.dao !== null && unit(toNoiseKey(seed, asset.id), -20) < 0.5
    const tvl = reportsTvl && asset.dao !== null ? protocols.tvlOfDao(asset.dao, at) : null
    return toListing(asset, process, at, { rank, total, tvl })
  }

  function historyOf(asset: Asset): History | null {
    const process = processOf(asset)
    return process ? toHistory(process) : null
  }
  const toChain = (facts: ChainFacts) => createSimulatedChain(facts, assets, historyOf, seed)
  /** Links of a project's profile exist, even if the registry does not have them. */
  const withProfile = (dao: Dao): Dao => {
    const asset = assets.find(({ id }) => id === dao.token)
    const profile = asset && inventProfile(seed, asset)
    return {
      ...dao,
      twitter: dao.twitter ?? profile?.twitter ?? null,
      discord: dao.discord ?? profile?.discord ?? null,
      telegram: dao.telegram ?? profile?.telegram ?? null,
    }
  }
  const ether = assets.find(({ coingeckoId }) => coingeckoId === 'ethereum')
  const ethereum: Chain = {
    ...withGovernors(toChain(ETHEREUM), ETHEREUM.slug, registry, seed),
    ...(registry.index === undefined ? {} : { indexToken: createSimulatedIndexToken(registry.index, seed) }),
    etherFeed: (at) => {
      const quote = ether && historyOf(ether)?.lastAt(Math.floor(at / FEED_HEARTBEAT) * FEED_HEARTBEAT)
      return quote ? { usd: quote.price, at: quote.at } : null
    },
  }

  const chains = new Map([['ethereum', ethereum], ...LAYERS.map((facts) => [facts.slug, toChain(facts)] as const)])

  return {
    assets,
    socials: createSimulatedSocials(registry.daos.map(withProfile), seed),
    listing,
    history: historyOf,
    chart(asset, from, to, step, now) {
      const process = processOf(asset)
      return process ? toChart(process, from, Math.min(to, now), step) : null
    },
    holders(asset, now) {
      const process = processOf(asset)
      return process && now >= process.launch ? createSimulatedHolders(seed, asset, process)(now) : null
    },
    profile: (asset) => inventProfile(seed, asset),
    space: createSimulatedSpaces(registry, seed),
    treasury: treasuries.holdings,
    transfers: createSimulatedTransfers(registry, seed, treasuries.holdings),
    treasuries: treasuries.ofSlug,
    protocols: protocols.list,
    tvlSeries: protocols.tvlSeries,
    chain: (slug) => chains.get(slug) ?? null,
  }
}

function toListing(
  asset: Asset,
  process: MarketProcess,
  at: number,
  standing: { rank: number; total: number; tvl: number | null },
): Listing {
  const price = process.price(at) ?? 0
  const marketCap = price * process.circulatingSupply(at)
  const change = (span: number): number | null => percentChange(price, process.price(at - span))
  const before = at - DAY < process.launch ? null : process.volume24h(at - DAY)
  const volume24h = process.volume24h(at)
  return {
    at,
    rank: standing.rank,
    slug: toSlug(asset.name),
    dateAdded: process.launch,
    marketPairs: 20 + (asset.id.charCodeAt(0) + asset.symbol.length * 37) * 2,
    tags: asset.dao === null ? [] : ['defi', 'dao', 'governance'],
    price,
    volume24h,
    volumeChange24h: percentChange(volume24h, before),
    change1h: change(HOUR),
    change24h: change(DAY),
    change7d: change(7 * DAY),
    change30d: change(30 * DAY),
    change60d: change(60 * DAY),
    change90d: change(90 * DAY),
    marketCap,
    dominance: Math.round((marketCap / standing.total) * 1e6) / 1e4,
    fullyDilutedMarketCap: price * (process.maxSupply ?? process.totalSupply),
    circulatingSupply: process.circulatingSupply(at),
    totalSupply: process.totalSupply,
    maxSupply: process.maxSupply,
    tvl: standing.tvl,
    tvlRatio: standing.tvl === null ? null : marketCap / standing.tvl,
  }
}

function toHistory(process: MarketProcess): History {
  function quoteAt(at: number, price: number): Quote {
    const circulatingSupply = process.circulatingSupply(at)
    return {
      at,
      price,
      volume24h: process.volume24h(at),
      marketCap: price * circulatingSupply,
      circulatingSupply,
      totalSupply: process.totalSupply,
      change1h: percentChange(price, process.price(at - HOUR)),
      change24h: percentChange(price, process.price(at - DAY)),
      change7d: percentChange(price, process.price(at - 7 * DAY)),
      change30d: percentChange(price, process.price(at - 30 * DAY)),
    }
  }
  return {
    first: process.launch,
    firstIn(from, to) {
      const at = Math.ceil(Math.max(from, process.launch) / FIVE_MINUTES) * FIVE_MINUTES
      const price = at < to ? process.price(at) : null
      return price === null ? null : quoteAt(at, price)
    },
    lastAt(expected) {
      const at = Math.floor(expected / FIVE_MINUTES) * FIVE_MINUTES
      const price = process.price(at)
      return price === null ? null : quoteAt(at, price)
    },
  }
}

function toChart(process: MarketProcess, from: number, to: number, step: number): MarketChart {
  const prices: [number, number][] = []
  const market_caps: [number, number][] = []
  const total_volumes: [number, number][] = []
  const first = Math.ceil(Math.max(from, process.launch) / step) * step
  for (let at = first; at <= to; at += step) {
    const price = process.price(at)
    if (price === null) continue
    prices.push([at, price])
    market_caps.push([at, price * process.circulatingSupply(at)])
    total_volumes.push([at, process.volume24h(at)])
  }
  return { prices, market_caps, total_volumes }
}

/**
 * Market-cap ranks and their sum, computed once per five-minute slot, because one batch requests those of every token.
 */
function rankBySlot(
  processes: ReadonlyMap<string, MarketProcess>,
): (id: string, at: number) => { rank: number; total: number } {
  let ranking = { slot: Number.NaN, ranks: new Map<string, number>(), total: 0 }
  return (id, at) => {
    const slot = Math.floor(at / FIVE_MINUTES)
    if (ranking.slot !== slot) {
      const caps = [...processes].map(([key, process]) => ({
        key,
        cap: (process.price(at) ?? 0) * process.circulatingSupply(at),
      }))
      caps.sort((a, b) => b.cap - a.cap)
      const total = caps.reduce((sum, entry) => sum + entry.cap, 0)
      ranking = { slot, ranks: new Map(caps.map((entry, index) => [entry.key, index + 1])), total }
    }
    return { rank: ranking.ranks.get(id) ?? 0, total: ranking.total }
  }
}
