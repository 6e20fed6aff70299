import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toBatches } from '../../shared/group-by.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeQuotes } from '../support/quotes.ts'

const dataDir = resolve(process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data'))
const folder = join(dataDir, 'prices-5m-binance-2024-genetrader')
const present = existsSync(folder)
if (!present) console.log(`real OHLC: skipped, there is no ${folder}`)

const SYMBOLS = ['UNI', 'AAVE']
const END = Date.parse('2024-09-07T00:00:00Z')

interface Candle {
  readonly timestamp: string
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
}

/** An exchange's candles as in its files, by open time. */
function readCandles(symbol: string, interval: '5m' | '1h' | '1d'): Candle[] {
  const file = readdirSync(join(folder, interval)).find((name) => name.startsWith(`${symbol}_`)) ?? ''
  const [, ...lines] = gunzipSync(readFileSync(join(folder, interval, file)))
    .toString()
    .trim()
    .split('\n')
  return lines
    .map((line) => {
      const [at = '', ...numbers] = line.split(',')
      const [open = 0, high = 0, low = 0, close = 0] = numbers.map(Number)
      return { timestamp: new Date(at).toISOString(), open, high, low, close }
    })
    .filter(({ timestamp }) => Date.parse(timestamp) < END)
}

/** Prices within the five minutes of a candle; the exchange does not publish their exact times. */
const toQuotes = (token: number) => (candle: Candle) =>
  [candle.open, candle.high, candle.low, candle.close].map((price, place) => {
    return { token, at: Date.parse(candle.timestamp) + place * 75_000, price }
  })

const answered = z.object({
  data: z.array(
    z.object({
      ...{ timestamp: z.string(), open: z.number(), high: z.number(), low: z.number(), close: z.number() },
      observations: z.int(),
    }),
  ),
})

describe.skipIf(!present)('GET /data/tokens/historic-ohlc with eight months of real prices', () => {
  let database: Awaited<ReturnType<typeof createApiDatabase>>
  let api: TestApi
  beforeAll(async () => {
    const config = createTestConfig()
    database = await createApiDatabase(config)
    for (const symbol of SYMBOLS) {
      const key = getToken(database.registry, symbol).key
      const quotes = readCandles(symbol, '5m').flatMap(toQuotes(key))
      for (const batch of toBatches(quotes, 50_000)) await storeQuotes(database.writer, batch)
    }
    api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => END })
  }, 300_000)
  afterAll(async () => {
    await api?.close()
    await database?.drop()
  })

  it.each(SYMBOLS.flatMap((symbol) => (['1h', '1d'] as const).map((interval) => [symbol, interval] as const)))(
    "returns the exchange's candles of %s at %s",
    async (symbol, interval) => {
      const { id } = getToken(database.registry, symbol)
      const query = new URLSearchParams({ id, interval, start: '2024-01-01', end: new Date(END).toISOString() })
      const response = await fetch(`${api.url}/data/tokens/historic-ohlc?${query}`)
      const { data } = answered.parse(await response.json())
      const expected = readCandles(symbol, interval)
      expect(expected.length).toBeGreaterThan(interval === '1h' ? 5_900 : 240)
      expect(data.map(({ observations: _, ...candle }) => candle)).toEqual(expected)
    },
  )
})
