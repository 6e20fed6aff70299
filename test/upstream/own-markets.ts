import { noise, toNoiseKey } from './noise.ts'
import { type Asset, DAY, HOUR, type Listing, type MarketChart, type Quote, type World } from './world.ts'

/** Whether all providers tell of one market, or each of its own, as they do: from other exchanges, at other times. */
export type Markets = 'agreeing' | 'differing'

interface OwnMarket {
  /** How far its prices are from the world's, for the most part. */
  readonly basisPoints: number
  /** How much older than others' its newest quotes are, and at which second of the minute it looks. */
  readonly lagMs: number
}

/** No two are so near to each other that their prices could be taken for one another's. */
const OWN_MARKETS: Readonly<Record<string, OwnMarket>> = {
  coinmarketcap: { basisPoints: 4, lagMs: 0 },
  coingecko: { basisPoints: 21, lagMs: 83_000 },
  'defillama-coins': { basisPoints: -14, lagMs: 47_000 },
  defillama: { basisPoints: -14, lagMs: 0 },
  moralis: { basisPoints: -31, lagMs: 0 },
  ethplorer: { basisPoints: 38, lagMs: 0 },
  binplorer: { basisPoints: 38, lagMs: 0 },
  goldrush: { basisPoints: -48, lagMs: 0 },
}
/** How far a token's price strays from that, from hour to hour. */
const STRAY_BASIS_POINTS = 3

/**
 * The world as one provider tells of it: prices, and what follows from them, are by some basis points its own. What is
 * counted, such as supplies and trades, is the same for all.
 */
export function toOwnMarket(world: World, provider: string): World {
  const own = OWN_MARKETS[provider]
  if (own === undefined) return world
  const rateAt = (name: string, at: number) =>
    1 + (own.basisPoints + STRAY_BASIS_POINTS * noise(toNoiseKey(7, `${provider} ${name}`), at / HOUR)) / 1e4
  const priced = <T extends { readonly price: number | null }>(held: T, name: string, at: number): T => ({
    ...held,
    price: held.price === null ? null : held.price * rateAt(name, at),
  })
  return {
    ...world,
    listing(asset, now) {
      const listing = world.listing(asset, now - own.lagMs)
      return listing && toOwnListing(listing, own, (at) => rateAt(asset.id, at))
    },
    history(asset) {
      const history = world.history(asset)
      if (history === null) return null
      const toOwn = (quote: Quote | null) => quote && toOwnQuote(quote, (at) => rateAt(asset.id, at))
      return {
        first: history.first,
        firstIn: (from, to) => toOwn(history.firstIn(from, to)),
        lastAt: (at) => toOwn(history.lastAt(at)),
      }
    },
    chart(asset, from, to, step, now) {
      const chart = world.chart(asset, from, to, step, now)
      return chart && toOwnChart(chart, { to, shiftMs: step < DAY ? toSecond(own) : 0 }, (at) => rateAt(asset.id, at))
    },
    holders(asset, now) {
      const list = world.holders(asset, now)
      return list && priced(list, asset.id, now)
    },
    treasury: (chain, address, at) =>
      world.treasury(chain, address, at)?.map((holding) => priced(holding, toName(world, holding.contract), at)) ??
      null,
  }
}

type RateAt = (at: number) => number

/** A token that an asset is has the asset's price. */
const toName = ({ assets }: World, contract: string): string =>
  assets.find((asset: Asset) => asset.contractAddress === contract)?.id ?? contract

const toSecond = ({ lagMs }: OwnMarket) => lagMs % 60_000

const times = (value: number | null, rate: number) => (value === null ? null : value * rate)

/** A change in percent between two moments, each at its own rate. */
function toOwnChange(change: number | null, rateAt: RateAt, at: number, span: number): number | null {
  return change === null ? null : ((1 + change / 100) * (rateAt(at) / rateAt(at - span)) - 1) * 100
}

function toOwnListing(listing: Listing, own: OwnMarket, rateAt: RateAt): Listing {
  const at = listing.at + toSecond(own)
  const price = listing.price * rateAt(at)
  const toChange = (change: number | null, span: number) => toOwnChange(change, rateAt, at, span)
  return {
    ...listing,
    at,
    price,
    volume24h: times(listing.volume24h, rateAt(at)),
    change1h: toChange(listing.change1h, HOUR),
    change24h: toChange(listing.change24h, DAY),
    change7d: toChange(listing.change7d, 7 * DAY),
    change30d: toChange(listing.change30d, 30 * DAY),
    change60d: toChange(listing.change60d, 60 * DAY),
    change90d: toChange(listing.change90d, 90 * DAY),
    marketCap: times(listing.circulatingSupply, price),
    fullyDilutedMarketCap: times(listing.maxSupply ?? listing.totalSupply, price),
    tvlRatio: times(listing.tvlRatio, rateAt(at)),
  }
}

function toOwnQuote(quote: Quote, rateAt: RateAt): Quote {
  const { at } = quote
  const price = quote.price * rateAt(at)
  const toChange = (change: number | null, span: number) => toOwnChange(change, rateAt, at, span)
  return {
    ...quote,
    price,
    volume24h: times(quote.volume24h, rateAt(at)),
    marketCap: times(quote.circulatingSupply, price),
    change1h: toChange(quote.change1h, HOUR),
    change24h: toChange(quote.change24h, DAY),
    change7d: toChange(quote.change7d, 7 * DAY),
    change30d: toChange(quote.change30d, 30 * DAY),
  }
}

/** Points stand at times of their own, but for those of whole days. */
function toOwnChart(chart: MarketChart, { to, shiftMs }: { to: number; shiftMs: number }, rateAt: RateAt): MarketChart {
  const toOwn = (points: MarketChart['prices']) =>
    points.flatMap(([at, value]) => (at + shiftMs > to ? [] : [[at + shiftMs, value * rateAt(at + shiftMs)] as const]))
  return {
    prices: toOwn(chart.prices),
    market_caps: toOwn(chart.market_caps),
    total_volumes: toOwn(chart.total_volumes),
  }
}
