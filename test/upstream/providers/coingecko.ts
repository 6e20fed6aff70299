import { createHash } from 'node:crypto'
import { jsonReply, type Provider, type Reply, type UpstreamRequest } from '../exchange.ts'
import { toPng } from '../png.ts'
import { type Asset, DAY, FIVE_MINUTES, HOUR, type Listing, type World } from '../world.ts'

const RATE_LIMIT_MESSAGE =
  "You've exceeded the Rate Limit. Please visit https://www.coingecko.com/en/api/pricing to subscribe to our API plans for higher rate limits."
const IMAGES = '/coins/images/'
const STEPS: Readonly<Record<string, number>> = { '5m': FIVE_MINUTES, hourly: HOUR, daily: DAY }

/** CoinGecko, public or pro; `/api/v3` before a path is optional. Source: docs/providers.md, section 2. */
export const coingecko: Provider = {
  name: 'coingecko',
  handle(request, world) {
    const path = request.path.replace(/^\/api\/v3/, '')
    if (path.startsWith(IMAGES)) return answerImage(path)
    if (path === '/coins/list') return answerList(request, world)
    if (path === '/coins/markets') return answerMarkets(request, world)
    const [, id] = /^\/coins\/([^/]+)\/market_chart\/range$/.exec(path) ?? []
    if (id !== undefined) return answerChart(decodeURIComponent(id), request, world)
    const [, coin] = /^\/coins\/([^/]+)$/.exec(path) ?? []
    if (coin !== undefined) return answerCoin(decodeURIComponent(coin), world)
    return jsonReply({ error: 'Incorrect path. Please check https://www.coingecko.com/api/' }, 404)
  },
  failure(status) {
    if (status === 429) return jsonReply({ status: { error_code: 429, error_message: RATE_LIMIT_MESSAGE } }, 429)
    return jsonReply({ status, error: status === 500 ? 'Internal Server Error' : `Error ${status}` }, status)
  },
  empty: ({ path }) =>
    jsonReply(path.endsWith('/coins/markets') ? [] : { prices: [], market_caps: [], total_volumes: [] }),
}

function answerMarkets({ query, now, headers }: UpstreamRequest, world: World): Reply {
  if (!query.has('vs_currency')) return missing('vs_currency')
  if (query.get('vs_currency') !== 'usd') return jsonReply({ error: 'invalid vs_currency' }, 422)
  const perPage = Number(query.get('per_page') ?? 100)
  const page = Number(query.get('page') ?? 1)
  if (!Number.isInteger(perPage) || perPage < 1 || perPage > 250) return jsonReply({ error: 'invalid per_page' }, 422)
  if (!Number.isInteger(page) || page < 1) return jsonReply({ error: 'invalid page' }, 422)

  const ids = query.get('ids')?.split(',')
  const assets = world.assets.filter(({ coingeckoId }) => coingeckoId !== null && (ids?.includes(coingeckoId) ?? true))
  const spans = (query.get('price_change_percentage') ?? '').split(',')
  const rows = assets.flatMap((asset) => {
    const listing = world.listing(asset, now)
    return listing === null ? [] : [{ asset, listing }]
  })
  rows.sort((a, b) => (b.listing.marketCap ?? 0) - (a.listing.marketCap ?? 0))
  const shown = rows.slice((page - 1) * perPage, page * perPage)
  return jsonReply(shown.map(({ asset, listing }) => toMarket(asset, listing, spans, headers.host)))
}

/** All coins; contracts only if requested. */
function answerList({ query }: UpstreamRequest, world: World): Reply {
  const hasPlatforms = query.get('include_platform') === 'true'
  const coins = world.assets.flatMap(({ coingeckoId, symbol, name, chain, contractAddress }) => {
    const platforms = hasPlatforms ? { platforms: { [chain]: contractAddress } } : {}
    return coingeckoId === null ? [] : [{ id: coingeckoId, symbol: symbol.toLowerCase(), name, ...platforms }]
  })
  return jsonReply(coins)
}

function toMarket(asset: Asset, listing: Listing, spans: readonly string[], host = '') {
  const change = listing.change24h
  const before = change === null ? null : listing.price / (1 + change / 100)
  const changes: Readonly<Record<string, number | null>> = {
    '1h': listing.change1h,
    '24h': listing.change24h,
    '7d': listing.change7d,
    '30d': listing.change30d,
  }
  const extra = spans.filter((span) => span in changes)
  return {
    id: asset.coingeckoId,
    symbol: asset.symbol.toLowerCase(),
    name: asset.name,
    image: `http://${host}/coingecko${IMAGES}${asset.coingeckoId}/large/${asset.coingeckoId}.png`,
    current_price: listing.price,
    market_cap: listing.marketCap,
    market_cap_rank: listing.rank,
    fully_diluted_valuation: listing.fullyDilutedMarketCap,
    total_volume: listing.volume24h,
    high_24h: before === null ? null : Math.max(listing.price, before),
    low_24h: before === null ? null : Math.min(listing.price, before),
    price_change_24h: before === null ? null : listing.price - before,
    price_change_percentage_24h: change,
    market_cap_change_24h: null,
    market_cap_change_percentage_24h: null,
    circulating_supply: listing.circulatingSupply,
    total_supply: listing.totalSupply,
    max_supply: listing.maxSupply,
    ath: null,
    ath_change_percentage: null,
    ath_date: null,
    atl: null,
    atl_change_percentage: null,
    atl_date: null,
    roi: null,
    last_updated: new Date(listing.at).toISOString(),
    ...Object.fromEntries(extra.map((span) => [`price_change_percentage_${span}_in_currency`, changes[span]])),
  }
}

/** History available to a free key, and without a key. */
const FREE_HISTORY = 365 * DAY

function answerChart(id: string, { query, now, plan }: UpstreamRequest, world: World): Reply {
  for (const name of ['vs_currency', 'from', 'to']) if (!query.has(name)) return missing(name)
  if (query.get('vs_currency') !== 'usd') return jsonReply({ error: 'invalid vs_currency' }, 422)
  const from = Number(query.get('from')) * 1000
  const to = Number(query.get('to')) * 1000
  if (!(from <= to)) return jsonReply({ error: 'invalid date range' }, 422)
  if (plan === 'free' && from < now - FREE_HISTORY) return beyondPlan(now)
  const asset = world.assets.find(({ coingeckoId }) => coingeckoId === id)
  const step = STEPS[query.get('interval') ?? ''] ?? toAutoStep(from, to, now)
  const chart = asset ? world.chart(asset, from, to, step, now) : null
  return chart === null ? jsonReply({ error: 'coin not found' }, 404) : jsonReply(chart)
}

function beyondPlan(now: number): Reply {
  const error_message =
    'Your request exceeds the allowed time range. Public API users are limited to querying historical data within the past 365 days.'
  const timestamp = new Date(now).toISOString()
  return jsonReply({ error: { status: { timestamp, error_code: 10012, error_message } } }, 401)
}

/** The profile of a coin's project; unknown values are empty texts. */
function answerCoin(id: string, world: World): Reply {
  const asset = world.assets.find(({ coingeckoId }) => coingeckoId === id)
  const profile = asset ? world.profile(asset) : null
  if (!asset || !profile) return jsonReply({ error: 'coin not found' }, 404)
  return jsonReply({
    id,
    symbol: asset.symbol.toLowerCase(),
    name: asset.name,
    categories: [],
    platforms: { [asset.chain]: asset.contractAddress },
    links: {
      homepage: [profile.website ?? '', '', ''],
      whitepaper: profile.whitepaper ?? '',
      chat_url: [profile.discord ?? '', '', ''],
      snapshot_url: null,
      twitter_screen_name: profile.twitter ?? '',
      telegram_channel_identifier: profile.telegram ?? '',
      repos_url: { github: [], bitbucket: [] },
    },
    image: { thumb: profile.logo, small: profile.logo, large: profile.logo },
  })
}

/** Five minutes within a day that ends now, hours up to 90 days, else days. */
function toAutoStep(from: number, to: number, now: number): number {
  if (from >= now - DAY && to >= now - FIVE_MINUTES) return FIVE_MINUTES
  return to - from <= 90 * DAY ? HOUR : DAY
}

/** A square of one colour, which depends on the path. */
function answerImage(path: string): Reply {
  const bytes = toPng(50, createHash('sha256').update(path).digest().subarray(0, 3))
  return { status: 200, body: bytes.toString('latin1'), isBinary: true, headers: { 'content-type': 'image/png' } }
}

function missing(parameter: string): Reply {
  return jsonReply({ error: `Missing parameter ${parameter}` }, 422)
}
