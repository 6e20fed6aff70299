import {
  listTvlFiles,
  type RecordedCoin,
  type RecordedProtocol,
  readCandles,
  readChart,
  readHolders,
  readListing,
  readProtocols,
  readTvlSeries,
  toLlamaSlug,
} from './recorded-files.ts'
import { joinHistories, toCandleHistory, toChartHistory } from './recorded-history.ts'
import { readSpaces } from './recorded-spaces.ts'
import { readSwaps, toEtherPrices, toRecordedChain } from './recorded-swaps.ts'
import { NO_SOCIALS } from './socials.ts'
import {
  type Asset,
  type History,
  type Listing,
  type MarketChart,
  type Protocol,
  toAssets,
  type World,
  type WorldRegistry,
} from './world.ts'

/**
 * A world from a folder of recordings. Values and times are those of the files; a token without a recording is missing.
 * Files are read on first use and cached. Time does not advance here: `now` is only the newest time that may be served.
 */
export function createRecordedWorld(registry: WorldRegistry, dir: string): World {
  const assets = toAssets(registry)
  const listings = createOnDemand(() => readListing(dir))
  const holderLists = createOnDemand(() => readHolders(dir))
  const spaces = createOnDemand(() => readSpaces(dir))
  const tvlFiles = createOnDemand(() => listTvlFiles(dir))
  const protocols = createOnDemand(() => toProtocols(readProtocols(dir), registry))
  const chartOf = memoize((coingeckoId: string) => readChart(dir, coingeckoId))
  const tvlOf = memoize((file: string) => readTvlSeries(file))
  const swaps = createOnDemand(() => readSwaps(dir))
  const ethereum = createOnDemand(() => {
    const recorded = swaps()
    return recorded && toRecordedChain(recorded)
  })
  const historyOf = memoize((index: number) => readHistory(assets[index]))
  const indexes = new Map(assets.map((asset, index) => [asset.id, index]))
  const coinOf = (asset: Asset): RecordedCoin | undefined => listings().get(asset.cmcId ?? '')

  function readHistory(asset: Asset | undefined): History | null {
    if (!asset) return null
    const chart = asset.coingeckoId === null ? null : chartOf(asset.coingeckoId)
    const candles = readCandles(dir, asset.symbol.toUpperCase())
    const coin = coinOf(asset)
    const supply = { circulating: coin?.circulating_supply ?? null, total: coin?.total_supply ?? null }
    const recordedPrices = asset.coingeckoId === 'ethereum' ? swaps() : null
    const fromSwaps =
      recordedPrices && toChartHistory({ prices: toEtherPrices(recordedPrices), market_caps: [], total_volumes: [] })
    const market = joinHistories(chart && toChartHistory(chart), candles && toCandleHistory(candles, supply))
    return joinHistories(fromSwaps, market)
  }

  return {
    assets,
    socials: NO_SOCIALS,
    listing(asset) {
      const coin = coinOf(asset)
      return coin ? toListing(coin) : null
    },
    history: (asset) => historyOf(indexes.get(asset.id) ?? -1),
    chart(asset, from, to) {
      const chart = asset.coingeckoId === null ? null : chartOf(asset.coingeckoId)
      return chart && cut(chart, from, to)
    },
    holders: (asset) => holderLists().get(asset.contractAddress) ?? null,
    profile: () => null,
    space: (id) => spaces().get(id) ?? null,
    // No treasury was recorded.
    treasury: () => null,
    transfers: () => [],
    treasuries: () => [],
    protocols,
    tvlSeries(protocol) {
      const file = tvlFiles().get(protocol.slug)
      return file === undefined ? [] : tvlOf(file)
    },
    chain: (slug) => (slug === 'ethereum' ? ethereum() : null),
  }
}

function toListing(coin: RecordedCoin): Listing {
  const usd = coin.quote.USD
  return {
    at: Date.parse(usd.last_updated),
    rank: coin.cmc_rank,
    slug: coin.slug,
    dateAdded: Date.parse(coin.date_added),
    marketPairs: coin.num_market_pairs,
    tags: coin.tags,
    price: usd.price,
    volume24h: usd.volume_24h,
    volumeChange24h: usd.volume_change_24h,
    change1h: usd.percent_change_1h,
    change24h: usd.percent_change_24h,
    change7d: usd.percent_change_7d,
    change30d: usd.percent_change_30d,
    change60d: usd.percent_change_60d,
    change90d: usd.percent_change_90d,
    marketCap: usd.market_cap,
    dominance: usd.market_cap_dominance,
    fullyDilutedMarketCap: usd.fully_diluted_market_cap,
    circulatingSupply: coin.circulating_supply,
    totalSupply: coin.total_supply,
    maxSupply: coin.max_supply,
    tvl: usd.tvl,
    tvlRatio: coin.tvl_ratio,
  }
}

/**
 * The recording lacks ids, slugs and parents. Ids are positions, slugs come from names, and a protocol is a child of
 * the DAO's parent if its slug is the DAO's with a version suffix ("uniswap-v3" of "uniswap").
 */
function toProtocols(recorded: readonly RecordedProtocol[], registry: WorldRegistry): readonly Protocol[] {
  const parents = new Map(registry.daos.map(({ defillama, defillamaSlug }) => [defillamaSlug ?? defillama, defillama]))
  return recorded.map((entry, index) => {
    const slug = toLlamaSlug(entry.name)
    const family = slug.replace(/-v\d+$/, '')
    const parent = family === slug ? null : (parents.get(family) ?? null)
    return {
      id: String(index + 1),
      name: entry.name,
      slug,
      symbol: '-',
      address: null,
      addressChain: null,
      url: entry.url,
      category: entry.category,
      chains: entry.chains,
      geckoId: null,
      cmcId: null,
      parent,
      parentSlug: parent === null ? null : family,
      listedAt: 0,
      tvl: entry.tvl ?? null,
      change1h: null,
      change1d: null,
      change7d: null,
      marketCap: null,
    }
  })
}

function cut(chart: MarketChart, from: number, to: number): MarketChart {
  const within = ([time]: readonly [number, number]): boolean => time >= from && time <= to
  return {
    prices: chart.prices.filter(within),
    market_caps: chart.market_caps.filter(within),
    total_volumes: chart.total_volumes.filter(within),
  }
}

function createOnDemand<T>(make: () => T): () => T {
  let cached: { readonly value: T } | undefined
  return () => {
    cached ??= { value: make() }
    return cached.value
  }
}

function memoize<K, T>(make: (key: K) => T): (key: K) => T {
  const created = new Map<K, { readonly value: T }>()
  return (key) => {
    const memo = created.get(key) ?? { value: make(key) }
    created.set(key, memo)
    return memo.value
  }
}
