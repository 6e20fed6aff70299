import { jsonReply, type Provider, type Reply, textReply } from '../exchange.ts'
import { type Asset, PUBLICATION_LAG, type World } from '../world.ts'
import { toLlamaChain } from './defillama-chains.ts'
import { toBatch } from './defillama-coins-batch.ts'

interface CoinPrice {
  decimals?: number
  symbol: string
  price: number
  timestamp: number
  confidence: number
}

/**
 * `coins.llama.fi`: prices by `<chain>:<address>` or `coingecko:<id>`, now, at a Unix second or over time. Answers carry the coin
 * as it was asked for, unknown coins are absent. Source: providers document, section 3.2.
 */
export const defillamaCoins: Provider = {
  name: 'defillama-coins',
  handle({ path, query, now }, world) {
    if (path === '/batchHistorical') {
      return toBatch(query.get('coins'), (coin, at) => toCoinPrice(coin, world, at, false, now))
    }
    if (path.startsWith('/chart/')) return toChart(path.slice('/chart/'.length), query, world, now)
    const [, current, seconds, list] = /^\/prices\/(?:(current)|historical\/(\d+))\/(.+)$/.exec(path) ?? []
    if (list === undefined) return textReply('Not found', 404)
    const at = current === undefined ? Number(seconds) * 1000 : now - PUBLICATION_LAG
    const coins: Record<string, CoinPrice> = {}
    for (const coin of decodeURIComponent(list).split(',')) {
      const price = toCoinPrice(coin, world, at, current !== undefined, now)
      if (price) coins[coin] = price
    }
    return jsonReply({ coins })
  },
  failure: (status) => textReply('Internal server error', status),
  empty: () => jsonReply({ coins: {} }),
}

function toCoinPrice(coin: string, world: World, at: number, current: boolean, now: number): CoinPrice | null {
  const asset = findAsset(coin, world.assets)
  if (!asset) return null
  const quote = current ? world.listing(asset, now) : (world.history(asset)?.lastAt(at) ?? null)
  if (quote === null) return null
  const decimals = coin.startsWith('coingecko:') ? {} : { decimals: asset.decimals }
  return {
    ...decimals,
    symbol: asset.symbol,
    price: quote.price,
    timestamp: Math.floor(quote.at / 1000),
    confidence: 0.99,
  }
}

const PERIOD_SECONDS: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400, w: 604_800 }

/**
 * Prices of `span` periods from the Unix second `start` on. The provider answers with the observation nearest to each
 * step; here every observation of that time comes, at its own time, which is 5 minutes apart or as it was recorded.
 */
function toChart(list: string, query: URLSearchParams, world: World, now: number): Reply {
  const [, count, unit = ''] = /^(\d+)([mhdw])$/.exec(query.get('period') ?? '1d') ?? []
  const period = Number(count) * (PERIOD_SECONDS[unit] ?? Number.NaN)
  const start = Number(query.get('start') ?? Number.NaN)
  const end = Math.min(start + Number(query.get('span') ?? 1) * period, now / 1000)
  if (Number.isNaN(end)) return textReply('start, span and period must be given', 400)
  const coins: Record<string, object> = {}
  for (const coin of decodeURIComponent(list).split(',')) {
    const asset = findAsset(coin, world.assets)
    const history = asset && world.history(asset)
    const prices: { timestamp: number; price: number }[] = []
    let quote = history?.firstIn(start * 1000, end * 1000) ?? null
    while (quote !== null) {
      prices.push({ timestamp: Math.floor(quote.at / 1000), price: quote.price })
      quote = history?.firstIn(quote.at + 1, end * 1000) ?? null
    }
    if (asset && prices.length > 0) coins[coin] = { symbol: asset.symbol, confidence: 0.99, prices }
  }
  return jsonReply({ coins })
}

function findAsset(coin: string, assets: readonly Asset[]): Asset | undefined {
  const [source = '', id = ''] = coin.split(':')
  if (source === 'coingecko') return assets.find((asset) => asset.coingeckoId === id)
  const wanted = id.toLowerCase()
  return assets.find((asset) => toLlamaChain(asset.chain) === source && asset.contractAddress.toLowerCase() === wanted)
}
