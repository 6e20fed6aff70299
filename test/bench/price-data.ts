import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createMarketProcess } from '../upstream/market-process.ts'
import { readCandles, readChart, readListing } from '../upstream/recorded-files.ts'
import { toCandleHistory, toChartHistory } from '../upstream/recorded-history.ts'
import { FIVE_MINUTES, type Quote, toAssets } from '../upstream/world.ts'

type Point = Pick<Quote, 'at' | 'price' | 'volume24h' | 'marketCap' | 'totalSupply' | 'circulatingSupply'>

/** Observations to store: each series is of one token, oldest first. */
export interface PriceData {
  readonly name: string
  readonly about: string
  /** Why its points compress less and cannot be rolled up; absent for 5-minute points. */
  readonly coarse?: string
  /** Maximum size of a point, as a share of its size with default codecs. */
  readonly most?: number
  series(): Iterable<readonly Point[]>
}

const TOKENS = 10

/** The recorded data, if the folder exists, and the generated data. */
export function listPriceData(dataDir: string, quick: boolean): PriceData[] {
  const recorded = [toCandleData(dataDir), toChartData(dataDir)].flatMap((data) => data ?? [])
  return [...recorded, toSimulatedData(quick ? 5_000 : 100_000)]
}

/** An exchange's 5-minute opening prices with few decimals; supplies are those of the listing. */
function toCandleData(dataDir: string): PriceData | null {
  const folder = join(dataDir, 'prices-5m-binance-2024-genetrader', '5m')
  if (!existsSync(folder)) return null
  const symbols = readdirSync(folder).map((file) => file.split('_')[0] ?? '')
  return {
    name: 'candles',
    about: `recorded opening prices of ${symbols.length} tokens every 5 minutes, in few decimals; volumes to the cent`,
    most: 0.26,
    *series() {
      const coins = new Map([...readListing(dataDir).values()].map((coin) => [coin.symbol, coin]))
      for (const symbol of symbols) {
        const candles = readCandles(dataDir, symbol)
        const coin = coins.get(symbol)
        const supply = { circulating: coin?.circulating_supply ?? null, total: coin?.total_supply ?? null }
        const history = candles && toCandleHistory(candles, supply)
        yield [...(candles?.at ?? [])].flatMap((at) => history?.lastAt(at) ?? [])
      }
    },
  }
}

/** CoinGecko's daily market charts: numbers with all digits, without supplies. */
function toChartData(dataDir: string): PriceData | null {
  const folder = join(dataDir, 'coingecko-market_chart-2022-defi_etf')
  if (!existsSync(folder)) return null
  const ids = readdirSync(folder).filter((file) => file.endsWith('.json') && file !== 'assets.json')
  return {
    name: 'market charts',
    about: `recorded daily market charts of ${ids.length} tokens, in all digits; supplies are not known`,
    coarse: 'three values a day, each with all its digits, and no supply to tell the market cap from',
    *series() {
      for (const file of ids) {
        const chart = readChart(dataDir, file.replace('.json', ''))
        const history = chart && toChartHistory(chart)
        yield (chart?.prices ?? []).flatMap(([at]) => history?.lastAt(at) ?? [])
      }
    },
  }
}

/** A market generated from a seed in a provider's form: all digits, market cap = price times supply. */
function toSimulatedData(points: number): PriceData {
  const start = Date.UTC(2024, 0, 1)
  return {
    name: 'generated',
    about: `${TOKENS} simulated tokens every 5 minutes, in all digits, supplies known`,
    *series() {
      for (const asset of toAssets(loadRegistry()).slice(0, TOKENS)) {
        const market = createMarketProcess(1, asset)
        yield Array.from({ length: points }, (_, index) => {
          const at = start + index * FIVE_MINUTES
          const [price, circulatingSupply] = [market.price(at) ?? 1, market.circulatingSupply(at)]
          const marketCap = price * circulatingSupply
          const { totalSupply } = market
          return { at, price, volume24h: market.volume24h(at), marketCap, totalSupply, circulatingSupply }
        })
      }
    },
  }
}
