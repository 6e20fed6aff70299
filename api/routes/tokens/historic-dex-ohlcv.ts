import { z } from 'zod'
import { dexTrades } from '../../../shared/datasets/dex-trades.ts'
import { INTERVALS } from '../../../shared/intervals.ts'
import { numberOrNull, timeValue, uint64 } from '../../../shared/record-values.ts'
import { IS_ANY } from '../../formats/formats.ts'
import { defineCandles } from '../../series/candles.ts'

const candlePrice = (which: string) =>
  numberOrNull.describe(`${which} price of its trades in US dollars; null if none of them has a known price.`)

const candle = z
  .strictObject({
    timestamp: timeValue.describe('Start of the bucket.'),
    open: candlePrice('First'),
    high: candlePrice('Highest'),
    low: candlePrice('Lowest'),
    close: candlePrice('Last'),
    volumeUsd: numberOrNull.describe('Sum of the trades with a known value, in US dollars; null if there are none.'),
    volume: z.number().describe('Sum of the trades in tokens.'),
    trades: uint64.describe('Number of trades.'),
    buys: uint64.describe('Trades that bought the token.'),
    sells: uint64.describe('Trades that sold the token.'),
  })
  .meta({ id: 'DexCandle', description: 'The trades of one bucket on decentralized exchanges.' })

/** The price of the first or last trade with a price, in the order of the chain. */
const priceOf = (pick: 'argMinIf' | 'argMaxIf') =>
  `${pick}(price, tuple(traded_at, block_number, log_index, transaction_hash), isNotNull(price))`

export const historicDexOhlcvRoute = defineCandles({
  operation: 'getTokenDexCandles',
  series: 'TokenDexCandles',
  path: '/data/tokens/historic-dex-ohlcv',
  summary: 'Open, high, low, close and volume of one token on decentralized exchanges',
  description:
    'One candle per bucket with a stored trade, oldest first, on the UTC grid (7d on Mondays). `open`, `high`, `low` and `close` are prices of the trades with a known price, null if there are none; `volume` is in tokens, `volumeUsd` the sum of the trades with a known value, null if there are none; `buys` and `sells` are as seen by the trader. `X-Series-Missing` counts the due buckets without a trade.',
  dataset: dexTrades,
  intervals: INTERVALS,
  candle,
  time: 'traded_at',
  // Without trades of any value in 30 days the time does not advance, as for /data/tokens/dex-data.
  readUpTo: `SELECT toUnixTimestamp64Milli(max(as_of)) AS newest FROM dex_data FINAL WHERE token ${IS_ANY}`,
  // Sums of decimals do not depend on the order of the rows, which changes with every merge.
  values: `${priceOf('argMinIf')}, max(price), min(price), ${priceOf('argMaxIf')},
    toFloat64(sum(toDecimal128(amount_usd, 12))), toFloat64(sum(toDecimal256(amount, 18))), count(),
    countIf(side = 'BUY'), countIf(side = 'SELL')`,
})
