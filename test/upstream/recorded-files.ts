import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'
import type { HolderList, MarketChart, TvlPoint } from './world.ts'

/** Candles as columns: open times (Unix milliseconds), opening prices in USD, volumes in the base token. */
export interface Candles {
  readonly at: Float64Array
  readonly open: Float64Array
  readonly volume: Float64Array
  /** Milliseconds between candles. */
  readonly step: number
}

const nullableNumber = z.number().nullable()
const RecordedCoin = z.object({
  id: z.number(),
  name: z.string(),
  symbol: z.string(),
  slug: z.string(),
  num_market_pairs: z.number(),
  date_added: z.string(),
  tags: z.array(z.string()),
  max_supply: nullableNumber,
  circulating_supply: nullableNumber,
  total_supply: nullableNumber,
  cmc_rank: z.number(),
  tvl_ratio: nullableNumber,
  last_updated: z.string(),
  quote: z.object({
    USD: z.object({
      price: z.number(),
      volume_24h: nullableNumber,
      volume_change_24h: nullableNumber,
      percent_change_1h: nullableNumber,
      percent_change_24h: nullableNumber,
      percent_change_7d: nullableNumber,
      percent_change_30d: nullableNumber,
      percent_change_60d: nullableNumber,
      percent_change_90d: nullableNumber,
      market_cap: nullableNumber,
      market_cap_dominance: nullableNumber,
      fully_diluted_market_cap: nullableNumber,
      tvl: nullableNumber,
      last_updated: z.string(),
    }),
  }),
})
export type RecordedCoin = z.infer<typeof RecordedCoin>

const Point = z.tuple([z.number(), z.number()])
const RecordedChart = z.object({
  prices: z.array(Point),
  market_caps: z.array(Point),
  total_volumes: z.array(Point),
})
const RecordedProtocol = z.object({
  name: z.string(),
  category: z.string(),
  tvl: z.number().optional(),
  chains: z.array(z.string()).default([]),
  url: z.string().default(''),
})
export type RecordedProtocol = z.infer<typeof RecordedProtocol>
const RecordedTvl = z.object({
  tvl: z.array(z.object({ date: z.number(), totalLiquidityUSD: z.number() })),
})
const RecordedHolder = z.object({ address: z.string(), balance: z.number(), share: z.number() })
const RecordedHolders = z.tuple([
  z.object({ response: z.object({ body: z.object({ holders: z.array(RecordedHolder) }) }) }),
  z.object({
    response: z.object({
      body: z.object({
        address: z.string(),
        holdersCount: z.number(),
        totalSupply: z.string(),
        price: z.object({ rate: z.number() }),
      }),
    }),
  }),
])

/** Candles of a symbol in the finest recorded resolution, null without any. */
export function readCandles(dir: string, symbol: string): Candles | null {
  for (const resolution of ['5m', '1h']) {
    const file = join(dir, 'prices-5m-binance-2024-genetrader', resolution, `${symbol}_USDT-${resolution}.csv.gz`)
    if (existsSync(file)) return toCandles(gunzipSync(readFileSync(file)).toString(), file)
  }
  return null
}

function toCandles(csv: string, file: string): Candles {
  const lines = csv.trimEnd().split('\n').slice(1)
  const at = new Float64Array(lines.length)
  const open = new Float64Array(lines.length)
  const volume = new Float64Array(lines.length)
  for (const [index, line] of lines.entries()) {
    const cells = line.split(',')
    at[index] = Date.parse(cells[0] ?? '')
    open[index] = Number(cells[1])
    volume[index] = Number(cells[5])
  }
  const step = (at[1] ?? Number.NaN) - (at[0] ?? Number.NaN)
  if (!(step > 0) || at.at(-1) !== (at[0] ?? 0) + step * (at.length - 1)) throw new Error(`${file} has gaps`)
  return { at, open, volume, step }
}

/** The recorded listing, keyed by CoinMarketCap id. */
export function readListing(dir: string): ReadonlyMap<string, RecordedCoin> {
  const file = join(dir, 'fixtures-coinmarketcap', 'listings_latest_2022-12-16.json')
  const { data } = z.object({ data: z.array(RecordedCoin) }).parse(readJson(file))
  return new Map(data.map((coin) => [String(coin.id), coin]))
}

/** CoinGecko's market chart of a coin in daily points, null without a recording. */
export function readChart(dir: string, coingeckoId: string): MarketChart | null {
  const file = join(dir, 'coingecko-market_chart-2022-defi_etf', `${coingeckoId}.json`)
  return existsSync(file) ? RecordedChart.parse(readJson(file)) : null
}

export function readProtocols(dir: string): readonly RecordedProtocol[] {
  const file = join(dir, 'defillama-protocols-tvl-bma-d', 'lite-protocols2_2025-12-19.json.gz')
  return z.array(RecordedProtocol).parse(readJson(file))
}

/** DefiLlama's slug of a protocol, which keeps dots and other signs. */
export function toLlamaSlug(name: string): string {
  return name.toLowerCase().replaceAll(' ', '-').replaceAll("'", '')
}

/** The files of the recorded TVL histories, by the slug of the protocol's name. */
export function listTvlFiles(dir: string): ReadonlyMap<string, string> {
  const folder = join(dir, 'defillama-protocols-tvl-bma-d', 'protocol_tvl')
  return new Map(readdirSync(folder).map((name) => [toLlamaSlug(name.replace(/\.json\.gz$/, '')), join(folder, name)]))
}

export function readTvlSeries(file: string): readonly TvlPoint[] {
  return RecordedTvl.parse(readJson(file)).tvl
}

/** The recorded holder lists, by the token's contract address. */
export function readHolders(dir: string): ReadonlyMap<string, HolderList> {
  const file = join(dir, 'fixtures-ethplorer-openbb', 'uni_getTopTokenHolders_getTokenInfo_2022-01-31.json')
  const [top, info] = RecordedHolders.parse(readJson(file))
  const { address, holdersCount, totalSupply, price } = info.response.body
  const holders = top.response.body.holders.map(({ address, balance, share }) => {
    return { address, balance: BigInt(balance), recordedBalance: balance, share }
  })
  return new Map([[address, { count: holdersCount, totalSupply: BigInt(totalSupply), price: price.rate, holders }]])
}

function readJson(file: string): unknown {
  const bytes = readFileSync(file)
  return JSON.parse((file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString())
}
