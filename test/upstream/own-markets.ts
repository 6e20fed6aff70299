import { noise, toNoiseKey } from './noise.ts'
import { type Asset, DAY, HOUR, type Listing, type MarketChart, type Quote, type World } from './world.ts'

/**
 * Whether all providers report the same market, or each a slightly different one, like real providers with other
 * exchanges and times.
 */
export type Markets = 'agreeing' | 'differing'

interface OwnMarket {
  /** Typical difference from the world's price. */
  readonly basisPoints: number
  /** Lag of its newest quotes behind those of other providers; also determines the second of its observations. */
  readonly lagMs: number
}

/** The distances are large enough to attribute each price to its provider. */
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
/** Hourly variation of a token's price around that difference. */
const STRAY_BASIS_POINTS = 3

/**
 * The world as one provider reports it: prices and derived values differ by some basis points. Counted values, such as
 * supplies and trades, are the same for all.
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

/** The token of an asset has the asset's price. */
const toName = ({ assets }: World, contract: string): string =>
  assets.find((asset: Asset) => asset.contractAddress === contract)?.id ?? contract

const toSecond = ({ lagMs }: OwnMarket) => lagMs % 60_000

const times = (value: number | null, rate: number) => (value === null ? null : value * rate)

/** A change in percent between two times, each with its own rate. */
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

/** Points have irregular times, except daily ones. */
function toOwnChart(chart: MarketChart, { to, shiftMs }: { to: number; shiftMs: number }, rateAt: RateAt): MarketChart {
  const toOwn = (points: MarketChart['prices']) =>
    points.flatMap(([at, value]) => (at + shiftMs > to ? [] : [[at + shiftMs, value * rateAt(at + shiftMs)] as const]))
  return {
    prices: toOwn(chart.prices),
    market_caps: toOwn(chart.market_caps),
    total_volumes: toOwn(chart.total_volumes),
  }
}
