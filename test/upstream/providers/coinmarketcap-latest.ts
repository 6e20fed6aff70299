import type { Reply, UpstreamRequest } from '../exchange.ts'
import type { Asset, Listing, World } from '../world.ts'
import { toAnswer, toFailure } from './coinmarketcap-reply.ts'
import { toSelection } from './coinmarketcap-selection.ts'

const USD_ID = 2781
/** CoinMarketCap names a platform by its native coin; tokens of other chains have no platform. */
const PLATFORMS: Readonly<Record<string, { id: number; name: string; symbol: string; slug: string }>> = {
  ethereum: { id: 1027, name: 'Ethereum', symbol: 'ETH', slug: 'ethereum' },
  arbitrum: { id: 11841, name: 'Arbitrum', symbol: 'ARB', slug: 'arbitrum' },
  optimism: { id: 11840, name: 'Optimism', symbol: 'OP', slug: 'optimism-ethereum' },
  polygon: { id: 3890, name: 'Polygon', symbol: 'MATIC', slug: 'polygon' },
  bnb: { id: 1839, name: 'BNB Smart Chain (BEP20)', symbol: 'BNB', slug: 'bnb' },
  avalanche: { id: 5805, name: 'Avalanche', symbol: 'AVAX', slug: 'avalanche' },
  solana: { id: 5426, name: 'Solana', symbol: 'SOL', slug: 'solana' },
}

/**
 * `quotes/latest` of both versions: v3 returns arrays, v2 maps keyed by id (by symbol: maps of arrays). Source:
 * docs/providers.md, section 1.1.
 */
export function answerLatest(version: 2 | 3, request: UpstreamRequest, world: World): Reply {
  const { query, now } = request
  const selection = toSelection(query, world, (asset) => world.listing(asset, now)?.slug ?? null)
  if ('invalid' in selection) return toFailure(400, now, selection.invalid)
  const coins = selection.coins.flatMap(({ key, asset }) => {
    const listing = world.listing(asset, now)
    return listing === null ? [] : [{ key, asset, listing }]
  })
  const credits = Math.max(1, Math.ceil(coins.length / 100))
  if (version === 3) {
    return toAnswer(JSON.stringify(coins.map(({ asset, listing }) => toCoinV3(asset, listing))), credits, now)
  }
  const data: Record<string, unknown> = {}
  for (const { key, asset, listing } of coins) {
    const coin = toCoinV2(asset, listing)
    if (selection.by === 'symbol') data[key] = [...((data[key] as unknown[] | undefined) ?? []), coin]
    else data[String(coin.id)] = coin
  }
  return toAnswer(JSON.stringify(data), credits, now)
}

function toCoin(asset: Asset, listing: Listing) {
  const platform = PLATFORMS[asset.chain]
  return {
    id: Number(asset.cmcId),
    name: asset.name,
    symbol: asset.symbol,
    slug: listing.slug,
    is_active: 1,
    is_fiat: 0,
    num_market_pairs: listing.marketPairs,
    cmc_rank: listing.rank,
    date_added: new Date(listing.dateAdded).toISOString(),
    tags: listing.tags.map((tag) => ({ slug: tag, name: tag, category: 'CATEGORY' })),
    platform: platform ? { ...platform, token_address: asset.contractAddress } : null,
    max_supply: listing.maxSupply,
    circulating_supply: listing.circulatingSupply,
    total_supply: listing.totalSupply,
    infinite_supply: listing.maxSupply === null,
    self_reported_circulating_supply: null,
    self_reported_market_cap: null,
    tvl_ratio: listing.tvlRatio,
    minted_market_cap: toMintedMarketCap(listing),
    last_updated: new Date(listing.at).toISOString(),
  }
}

function toQuote(listing: Listing) {
  return {
    price: listing.price,
    volume_24h: listing.volume24h,
    volume_change_24h: listing.volumeChange24h,
    percent_change_1h: listing.change1h,
    percent_change_24h: listing.change24h,
    percent_change_7d: listing.change7d,
    percent_change_30d: listing.change30d,
    percent_change_60d: listing.change60d,
    percent_change_90d: listing.change90d,
    market_cap: listing.marketCap,
    market_cap_dominance: listing.dominance,
    fully_diluted_market_cap: listing.fullyDilutedMarketCap,
    tvl: listing.tvl,
    last_updated: new Date(listing.at).toISOString(),
  }
}

function toCoinV2(asset: Asset, listing: Listing) {
  return { ...toCoin(asset, listing), quote: { USD: toQuote(listing) } }
}

function toCoinV3(asset: Asset, listing: Listing) {
  const minted = toMintedMarketCap(listing)
  const quote = {
    id: USD_ID,
    symbol: 'USD',
    ...toQuote(listing),
    cex_volume_24h: listing.volume24h,
    dex_volume_24h: 0,
    minted_market_cap: minted,
    market_cap_by_total_supply: minted,
  }
  return { ...toCoin(asset, listing), quote: [quote] }
}

function toMintedMarketCap(listing: Listing): number | null {
  return listing.totalSupply === null ? null : listing.price * listing.totalSupply
}
