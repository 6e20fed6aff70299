import { z } from 'zod'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { timeValue, uint64 } from '../../formats/formats.ts'
import { defineCandles } from '../../series/candles.ts'

const candle = z
  .strictObject({
    timestamp: timeValue.describe('Start of the bucket.'),
    open: z.number().describe('First observed price in US dollars.'),
    high: z.number().describe('Highest observed price in US dollars.'),
    low: z.number().describe('Lowest observed price in US dollars.'),
    close: z.number().describe('Last observed price in US dollars.'),
    observations: uint64.describe('Stored observations of the bucket.'),
  })
  .meta({ id: 'PriceCandle', description: 'The observed prices of one bucket.' })

export const historicOhlcRoute = defineCandles({
  operation: 'getTokenCandles',
  series: 'TokenCandles',
  path: '/data/tokens/historic-ohlc',
  summary: 'Open, high, low and close of one token over time',
  description:
    'One candle per bucket that has a stored observation, oldest first, on the UTC grid (7d on Mondays): the first, highest, lowest and last price of the observations in the bucket, and their number. Prices between two observations are unknown. `X-Series-Missing` counts the due buckets without any.',
  dataset: tokenPrices,
  intervals: ['30m', '1h', '4h', '1d', '7d'],
  candle,
  time: 'observed_at',
  values: 'argMin(price, observed_at), max(price), min(price), argMax(price, observed_at), count()',
})
