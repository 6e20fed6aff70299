import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { routes } from '../../api/routes.ts'
import { INTERVAL_SECONDS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'
import { toNext } from '../support/next-page.ts'
import { storeQuotes } from '../support/quotes.ts'
import { createRandom } from '../support/random.ts'
import { readTable } from '../support/tables.ts'

/** Fixed clock: results do not depend on the time of the run. */
const NOW = Date.parse('2024-03-10T12:02:00Z')
const SEED = 310
const OHLC = '/data/tokens/historic-ohlc'
const OHLCV = '/data/tokens/historic-dex-ohlcv'

let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let key = 0

interface Series {
  name: string
  id: string
  data: Record<string, number | string | null>[]
}

async function request(path: string): Promise<{ body: Series; headers: Headers }> {
  const response = await fetch(api.url + path)
  const body = (await response.json()) as Series
  expect(response.status, JSON.stringify(body)).toBe(200)
  const route = routes.find((one) => one.path === path.split('?')[0])
  expect(route?.response.safeParse(body).error).toBeUndefined()
  return { body, headers: response.headers }
}

const config = createTestConfig()

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  key = getToken(database.registry, 'AAVE').key
  const random = createRandom(SEED)
  // Three weeks with up to three observations in five minutes, and gaps of hours.
  const times = Array.from({ length: 6000 }, (_, n) => NOW - 21 * 86_400_000 + n * 300_000 + random.below(300_000))
  const selected = times.filter((at) => Math.floor(at / 10_800_000) % 4 !== 0)
  const twice = [...selected, ...selected.filter(() => random.chance(0.3)).map((at) => at + 40_000)]
  await storeQuotes(
    database.writer,
    twice.filter((at) => at < NOW).map((at) => ({ token: key, at, price: 10 + 5 * random.next() })),
  )
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

const observation = z.object({ at: z.int(), price: z.number() })
const trade = z.object({
  at: z.int(),
  place: z.tuple([z.int(), z.int(), z.string()]),
  price: z.number().nullable(),
  usd: z.number().nullable(),
  amount: z.number(),
  isBuy: z.coerce.boolean(),
})

/** Groups the rows of the range by bucket, in plain JavaScript. */
function group<Row extends { at: number }>(rows: readonly Row[], interval: Interval, from: number, to: number) {
  const groups = new Map<number, Row[]>()
  for (const row of rows) {
    const bucket = toBucketStart(row.at, interval)
    if (bucket >= from && bucket < to) groups.set(bucket, [...(groups.get(bucket) ?? []), row])
  }
  return [...groups].sort(([a], [b]) => a - b)
}

/** Returns the exclusive end of the range: the first bucket that does not start before the time. */
const nextStart = (ms: number, interval: Interval) =>
  toBucketStart(ms - 1, interval) + INTERVAL_SECONDS[interval] * 1000

describe('/data/tokens/historic-ohlc', () => {
  it.each(['30m', '1h', '4h', '1d', '7d'] as const)('aggregates the observations per %s', async (interval) => {
    const rows = await database.writer.rows({
      name: 'observations',
      sql: `SELECT toUnixTimestamp64Milli(observed_at) AS at, price FROM token_prices FINAL
WHERE token = {key: UInt64} ORDER BY observed_at`,
      params: { key },
      schema: observation,
    })
    for (const [start, end] of [
      ['2024-02-15', undefined],
      ['2024-02-20T07:31:00Z', '2024-03-07T01:00:01Z'],
    ] as const) {
      const { body, headers } = await request(
        `${OHLC}?name=aave&interval=${interval}&start=${start}${end === undefined ? '' : `&end=${end}`}`,
      )
      const to = end === undefined ? NOW : nextStart(Date.parse(end), interval)
      const expected = group(rows, interval, nextStart(Date.parse(start), interval), to).map(([bucket, inside]) => {
        const prices = inside.map(({ price }) => price)
        return {
          timestamp: new Date(bucket).toISOString(),
          ...{ open: prices[0], high: Math.max(...prices), low: Math.min(...prices), close: prices.at(-1) },
          observations: prices.length,
        }
      })
      expect(expected.length).toBeGreaterThan(1)
      expect(body.data).toEqual(expected)
      expect(headers.get('x-series-points')).toBe(String(expected.length))
      expect(headers.get('x-series-interval')).toBe(interval)
    }
  })

  it('opens with the price that the financial series has for the bucket', async () => {
    const query = 'name=aave&interval=4h&start=2024-02-15'
    const { body } = await request(`${OHLC}?${query}`)
    const quotes = (await (await fetch(`${api.url}/data/tokens/historic-financial?${query}`)).json()) as {
      data: { timestamp: string; quote: { USD: { price: number } } }[]
    }
    expect(body.data.map(({ timestamp, open }) => [timestamp, open])).toEqual(
      quotes.data.map(({ timestamp, quote }) => [timestamp, quote.USD.price]),
    )
  })

  it('supports paging and all formats, and counts missing buckets', async () => {
    const { body, headers } = await request(`${OHLC}?name=aave&interval=1h&start=2024-03-01`)
    const together: unknown[] = []
    let next: string | undefined = `${OHLC}?name=aave&interval=1h&start=2024-03-01&limit=50`
    while (next !== undefined) {
      const page = await request(next)
      together.push(...page.body.data)
      const query = toNext(page.headers.get('link'))
      next = query === undefined ? undefined : OHLC + query
    }
    expect(together).toEqual(body.data)
    const hours = (toBucketStart(NOW, '1h') - Date.parse('2024-03-01')) / 3_600_000 + 1
    expect(headers.get('x-series-missing')).toBe(String(hours - body.data.length))
    for (const format of ['csv', 'ndjson', 'parquet', 'arrow'] as const) {
      const response = await fetch(`${api.url}${OHLC}?name=aave&interval=1h&start=2024-03-01&format=${format}`)
      expect(await readTable(format, Buffer.from(await response.arrayBuffer()))).toHaveLength(body.data.length)
    }
  })
})

describe('/data/tokens/historic-dex-ohlcv', () => {
  it('computes staleness from the last read, not from the last trade', async () => {
    const later = NOW + 5 * 3_600_000
    const changeFeed = createHandFeed()
    const served = await startApi({ config, ...database, changeFeed, now: () => later })
    const isStale = async () => {
      const response = await fetch(`${served.url}${OHLCV}?name=aave&interval=1h&start=2024-03-01&order=desc`)
      const { data } = (await response.json()) as Series
      expect(data.length).toBeGreaterThan(0)
      return response.headers.get('x-data-stale')
    }
    try {
      expect(await isStale()).toBe('true')
      const read = `INSERT INTO dex_data (* EXCEPT(version)) SELECT * REPLACE({at: DateTime64(3, 'UTC')} AS as_of)
FROM dex_data FINAL WHERE token = {token: UInt64}`
      const at = new Date(later).toISOString().slice(0, -1)
      await database.writer.command({ name: 'read-on', sql: read, params: { at, token: key } })
      changeFeed.commit('dex-trades')
      expect(await isStale()).toBeNull()
    } finally {
      await served.close()
    }
  })

  it.each(['5m', '1h', '1d', '7d'] as const)('aggregates the trades of each %s bucket', async (interval) => {
    const rows = await database.writer.rows({
      name: 'trades',
      sql: `SELECT toUnixTimestamp64Milli(traded_at) AS at, tuple(block_number, log_index, transaction_hash) AS place, price,
  amount_usd AS usd, amount, side = 'BUY' AS isBuy
FROM dex_trades FINAL WHERE token = {key: UInt64} ORDER BY traded_at, block_number, log_index, transaction_hash`,
      params: { key },
      schema: trade,
    })
    const { body } = await request(`${OHLCV}?name=aave&interval=${interval}&start=2024-03-04`)
    const grouped = group(rows, interval, Date.parse('2024-03-04'), NOW)
    expect(body.data.map(({ timestamp }) => timestamp)).toEqual(
      grouped.map(([bucket]) => new Date(bucket).toISOString()),
    )
    for (const [index, [, inside]] of grouped.entries()) {
      const prices = inside.flatMap(({ price }) => price ?? [])
      const usd = inside.flatMap((one) => one.usd ?? [])
      const candle = body.data[index] ?? {}
      expect(candle).toMatchObject({
        ...{ open: prices[0] ?? null, close: prices.at(-1) ?? null },
        ...{
          high: prices.length === 0 ? null : Math.max(...prices),
          low: prices.length === 0 ? null : Math.min(...prices),
        },
        ...{ trades: inside.length, buys: inside.filter(({ isBuy }) => isBuy).length },
        sells: inside.filter(({ isBuy }) => !isBuy).length,
      })
      const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
      expect(candle.volume).toBeCloseTo(sum(inside.map(({ amount }) => amount)), 6)
      if (usd.length === 0) expect(candle.volumeUsd).toBeNull()
      else expect(candle.volumeUsd).toBeCloseTo(sum(usd), 6)
    }
  })
})
