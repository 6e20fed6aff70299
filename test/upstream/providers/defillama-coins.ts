import { jsonReply, type Provider, textReply } from '../exchange.ts'
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
 * `coins.llama.fi`: prices by `<chain>:<address>` or `coingecko:<id>`, now or at a Unix second. Answers carry the coin
 * as it was asked for, unknown coins are absent. Source: providers document, section 3.2.
 */
export const defillamaCoins: Provider = {
  name: 'defillama-coins',
  handle({ path, query, now }, world) {
    if (path === '/batchHistorical') {
      return toBatch(query.get('coins'), (coin, at) => toCoinPrice(coin, world, at, false, now))
    }
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

function findAsset(coin: string, assets: readonly Asset[]): Asset | undefined {
  const [source = '', id = ''] = coin.split(':')
  if (source === 'coingecko') return assets.find((asset) => asset.coingeckoId === id)
  const wanted = id.toLowerCase()
  return assets.find((asset) => toLlamaChain(asset.chain) === source && asset.contractAddress.toLowerCase() === wanted)
}
