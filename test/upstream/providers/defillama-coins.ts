import { jsonReply, type Provider, type Reply, textReply } from '../exchange.ts'
import { type Asset, HOUR, PUBLICATION_LAG, type World } from '../world.ts'
import { toLlamaChain } from './defillama-chains.ts'
import { toBatch } from './defillama-coins-batch.ts'
import { nearestStored, toConfidence } from './defillama-coins-stored.ts'

interface CoinPrice {
  decimals?: number
  symbol: string
  price: number
  timestamp: number
  confidence: number
}

/** Default tolerance between the requested time and the time of a price. */
const HISTORY_WIDTH_MS = 6 * HOUR

/**
 * `coins.llama.fi`: prices by `<chain>:<address>` or `coingecko:<id>`, now, at a Unix second or over time. Responses
 * name the coins as requested; unknown coins are missing. Source: docs/providers.md, section 3.2.
 */
export const defillamaCoins: Provider = {
  name: 'defillama-coins',
  handle({ path, query, now }, world) {
    const widthMs = toWidthMs(query, HISTORY_WIDTH_MS)
    if (path === '/batchHistorical')
      return toBatch(query.get('coins'), (coin, at) => toPastPrice(coin, world, at, widthMs))
    if (path.startsWith('/chart/')) return toChart(path.slice('/chart/'.length), query, world, now)
    const [, current, seconds, list] = /^\/prices\/(?:(current)|historical\/(\d+))\/(.+)$/.exec(path) ?? []
    if (list === undefined) return textReply('Not found', 404)
    const coins: Record<string, CoinPrice> = {}
    for (const coin of decodeURIComponent(list).split(',')) {
      const price =
        current === undefined
          ? toPastPrice(coin, world, Number(seconds) * 1000, widthMs)
          : toCurrentPrice(coin, world, now)
      if (price) coins[coin] = price
    }
    return jsonReply({ coins })
  },
  failure: (status) => textReply('Internal server error', status),
  empty: () => jsonReply({ coins: {} }),
}

function toCurrentPrice(coin: string, world: World, now: number): CoinPrice | null {
  const asset = findAsset(coin, world.assets)
  const listing = asset && world.listing(asset, now)
  return asset && listing ? toPrice(coin, asset, listing) : null
}

function toPastPrice(coin: string, world: World, at: number, widthMs: number): CoinPrice | null {
  const asset = findAsset(coin, world.assets)
  const history = asset && world.history(asset)
  const stored = asset && history ? nearestStored(asset, history, at, widthMs) : null
  return asset && stored ? toPrice(coin, asset, stored) : null
}

function toPrice(coin: string, asset: Asset, { price, at }: { price: number; at: number }): CoinPrice {
  const decimals = coin.startsWith('coingecko:') ? {} : { decimals: asset.decimals }
  const timestamp = Math.floor(at / 1000)
  return { ...decimals, symbol: asset.symbol, price, timestamp, confidence: toConfidence(asset) }
}

const PERIOD_SECONDS: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400, w: 604_800 }
const CHART_QUERY: ReadonlySet<string> = new Set(['start', 'end', 'span', 'period', 'searchWidth'])

/** Parses a duration such as `5m`, or plain seconds, into seconds. */
function toSeconds(text: string): number {
  const [, count, unit] = /^(\d+)([mhdw])?$/.exec(text) ?? []
  return Number(count) * (unit === undefined ? 1 : (PERIOD_SECONDS[unit] ?? Number.NaN))
}

function toWidthMs(query: URLSearchParams, otherwise: number): number {
  const searchWidth = query.get('searchWidth')
  return searchWidth === null ? otherwise : toSeconds(searchWidth) * 1000
}

/**
 * For each of `span` steps the closest stored price at its own time, each price only once. Without `searchWidth` the
 * tolerance is a tenth of the period.
 */
function toChart(list: string, query: URLSearchParams, world: World, now: number): Reply {
  const unknown = [...query.keys()].find((name) => !CHART_QUERY.has(name))
  if (unknown !== undefined) return textReply(`unknown query parameter ${unknown}`, 400)
  if (query.has('start') === query.has('end')) return textReply('use either start or end parameter', 400)
  const period = toSeconds(query.get('period') ?? '1d') * 1000
  const steps = Math.max(1, Number(query.get('span') ?? 0))
  const widthMs = toWidthMs(query, period / 10)
  const start = query.has('start')
    ? Number(query.get('start')) * 1000
    : Number(query.get('end')) * 1000 - (steps - 1) * period
  if (![period, steps, widthMs, start].every(Number.isFinite)) return textReply('a parameter is no number', 400)
  const coins: Record<string, object> = {}
  for (const coin of decodeURIComponent(list).split(',')) {
    const asset = findAsset(coin, world.assets)
    const history = asset && world.history(asset)
    if (!asset || !history) continue
    const prices = new Map<number, number>()
    for (let step = 0; step < steps; step += 1) {
      const stored = nearestStored(asset, history, start + step * period, widthMs)
      if (stored !== null && stored.at <= now - PUBLICATION_LAG) prices.set(Math.floor(stored.at / 1000), stored.price)
    }
    const points = [...prices].map(([timestamp, price]) => ({ timestamp, price }))
    if (points.length > 0) coins[coin] = { symbol: asset.symbol, confidence: toConfidence(asset), prices: points }
  }
  return jsonReply({ coins })
}

function findAsset(coin: string, assets: readonly Asset[]): Asset | undefined {
  const [source = '', id = ''] = coin.split(':')
  if (source === 'coingecko') return assets.find((asset) => asset.coingeckoId === id)
  const lowerCaseId = id.toLowerCase()
  return assets.find(
    (asset) => toLlamaChain(asset.chain) === source && asset.contractAddress.toLowerCase() === lowerCaseId,
  )
}
