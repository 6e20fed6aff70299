import { describe, expect, it } from 'vitest'
import { seriesTool } from '../../api/mcp/tools/series.ts'
import { HOUR_MS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import { callTool, createSource, toReply } from '../support/mcp-tools.ts'

const NOW = Date.parse('2026-05-06T12:00:00Z')
const STEP = 5 * 60_000
const ID = 'a'.repeat(24)
const PRICES = { topic: 'tokens/historic-financial', of: ID, members: ['quote.USD.price'] }

/** The route of prices: one point per 5 minutes, in pages. */
function answerPrices({ searchParams }: URL) {
  const [start, end] = ['start', 'end'].map((name) => Date.parse(searchParams.get(name) ?? ''))
  const limit = Number(searchParams.get('limit'))
  const from = Number(searchParams.get('cursor') ?? start)
  const all: object[] = []
  for (let at = from; at < (end ?? 0); at += STEP)
    all.push({ timestamp: new Date(at).toISOString(), quote: { USD: { price: (at - (start ?? 0)) / STEP } } })
  const next = from + limit * STEP
  const rest = all.length > limit ? { link: `<${'/data/x'}?cursor=${next}>; rel="next"` } : {}
  return toReply(all.slice(0, limit), { 'x-data-as-of': '2026-05-06T11:55:00.000Z', ...rest })
}

const sourceOf = () => createSource(answerPrices, NOW)

describe('series', () => {
  it('returns statistics and the source of the whole range, and thins the rows', async () => {
    const { source } = sourceOf()
    const { data, files = [] } = await callTool(seriesTool, source, { ...PRICES, last: '24h', interval: '5m' })
    expect(data.statistics).toMatchObject({
      'quote.USD.price': {
        first: { at: '2026-05-05T12:00Z', value: 0 },
        last: { at: '2026-05-06T11:55Z', value: 287 },
        min: { value: 0 },
        max: { value: 287 },
        change: 287,
      },
    })
    const { searchParams } = new URL(String(data.source))
    expect(searchParams.get('start')).toBe('2026-05-05T12:00:00.000Z')
    expect(searchParams.get('end')).toBe('2026-05-06T12:00:00.000Z')
    expect(searchParams.get('limit')).toBe('288')
    const rows = data.rows as [string, number][]
    expect(rows.length).toBeLessThan(200)
    expect(rows.length).toBeGreaterThan(50)
    const steps = new Set(rows.slice(1).map(([, value], index) => value - (rows[index]?.[1] ?? 0)))
    expect(steps.size).toBe(1)
    expect(rows.at(-1)).toEqual(['2026-05-06T11:55Z', 287])
    expect(rows[0]?.[1]).toBeLessThan([...steps][0] ?? 0)
    expect(data.showing).toMatch(new RegExp(`thinned to one of ${[...steps][0]} points, ${rows.length} of 288`))
    expect(files.map(({ mimeType }) => mimeType)).toEqual(['text/csv', 'application/vnd.apache.parquet'])
    expect(Object.values(data.whole as object)).toEqual(files.map(({ uri }) => uri))
  })

  it('reads all pages of a long range', async () => {
    const { source, requestCount: requests } = sourceOf()
    const { data } = await callTool(seriesTool, source, { ...PRICES, last: '30d', interval: '5m' })
    expect(data.statistics).toMatchObject({ 'quote.USD.price': { first: { value: 0 }, last: { value: 8_639 } } })
    expect(requests.length).toBeGreaterThan(2)
    expect(data.showing).toContain('of 8640')
  })

  it('computes statistics from the finest points, and chooses the points to read afterwards', async () => {
    const { source } = createSource((url) => {
      const interval = url.searchParams.get('interval')
      const steps = { '5m': 1, '4h': 48, '7d': 2016 }[interval ?? ''] ?? Number.NaN
      const start = Date.parse(url.searchParams.get('start') ?? '')
      // A price with its highest value between the coarse points.
      const points = [100, 100 + steps, 100 - steps, 120 - steps]
      const records = points.map((price, index) => ({
        timestamp: new Date(start + index * steps * STEP).toISOString(),
        quote: { USD: { price } },
      }))
      return toReply(records)
    }, NOW)
    const { data } = await callTool(seriesTool, source, { ...PRICES, last: '30d', points: 10 })
    expect(data).toMatchObject({
      interval: '7d',
      statisticsInterval: '5m',
      statistics: { 'quote.USD.price': { first: { value: 100 }, last: { value: 119 }, changePercent: 19 } },
    })
    expect((data.rows as unknown[][]).map(([, price]) => price)).toEqual([100, 2116, -1916, -1896])
  })

  /** The route of prices over these observations: the first one of each bucket, in pages. */
  const answerObserved =
    (observations: readonly { readonly at: number; readonly price: number }[]) =>
    ({ searchParams }: URL) => {
      const interval = searchParams.get('interval') as Interval
      const [start = 0, end = 0] = ['start', 'end'].map((name) => Date.parse(searchParams.get(name) ?? ''))
      const points = new Map<number, number>()
      for (const { at, price } of observations) {
        const bucket = toBucketStart(at, interval)
        if (bucket >= start && bucket < end && !points.has(bucket)) points.set(bucket, price)
      }
      const begin = Number(searchParams.get('cursor') ?? 0)
      const next = begin + Number(searchParams.get('limit'))
      const page = [...points].slice(begin, next)
      const records = page.map(([at, price]) => ({ timestamp: new Date(at).toISOString(), quote: { USD: { price } } }))
      return toReply(records, next < points.size ? { link: `</data/x?cursor=${next}>; rel="next"` } : {})
    }

  it.each([
    ['1y', '5m', { points: 10, interval: '7d' }],
    ['1y', '5m', { points: 200, interval: '7d' }],
    ['3y', '30m', { points: 10, interval: '7d' }],
  ])(
    'summarizes the values between coarse points and ends with the newest one: %s, points %s %j',
    async (last, finest, rows) => {
      const [from, middle] = [NOW - Number.parseInt(last, 10) * 365 * 24 * HOUR_MS, NOW - 100 * 24 * HOUR_MS]
      const observations = [
        { at: from + STEP, price: 100 },
        { at: from + 3 * STEP, price: 90 },
        // After the first observation of its hour, day and week.
        ...[0, 6, 7].map((buckets, index) => ({ at: middle + buckets * STEP, price: [101, 150, 99][index] ?? 0 })),
        { at: NOW - 2 * STEP, price: 120 },
        { at: NOW - STEP, price: 130 },
      ]
      const { source } = createSource(answerObserved(observations), NOW)
      const { data } = await callTool(seriesTool, source, { ...PRICES, last, points: rows.points })
      expect(data).toMatchObject({ interval: rows.interval, statisticsInterval: finest })
      expect(data.statistics).toEqual({
        'quote.USD.price': {
          first: { at: new Date(from + STEP).toISOString().replace(':00.000', ''), value: 100 },
          last: { at: '2026-05-06T11:55Z', value: 130 },
          min: { at: new Date(from + 3 * STEP).toISOString().replace(':00.000', ''), value: 90 },
          max: { at: new Date(middle + 6 * STEP).toISOString().replace(':00.000', ''), value: 150 },
          change: 30,
          changePercent: 30,
        },
      })
    },
  )

  it('returns every point, without files, if all fit', async () => {
    const { source } = sourceOf()
    const { data, files } = await callTool(seriesTool, source, { ...PRICES, last: '1h', interval: '5m' })
    expect(data.rows).toHaveLength(12)
    expect(data).not.toHaveProperty('showing')
    expect(files).toEqual([])
  })

  it('keeps the range if even the coarsest interval has more points than rows', async () => {
    const { source } = createSource(({ searchParams }) => {
      const start = Date.parse(searchParams.get('start') ?? '')
      return Array.from({ length: 100 }, (_, week) => ({
        recordedAt: new Date(start + week * 7 * 24 * HOUR_MS).toISOString(),
        totalHolders: week,
      }))
    }, NOW)
    const holders = { topic: 'tokens/holders/historic', of: ID, members: ['totalHolders'] }
    const { data } = await callTool(seriesTool, source, { ...holders, start: '2022-02-01', points: 10 })
    expect(data.interval).toBe('1d')
    expect(new URL(String(data.source)).searchParams.get('start')).toBe('2022-02-01T00:00:00.000Z')
    expect((data.rows as unknown[]).length).toBeLessThanOrEqual(10)
    expect(data.statistics).toMatchObject({ totalHolders: { first: { value: 0 }, last: { value: 99 } } })
  })

  it('reports a bucket as missing once it is due, not while it is running', async () => {
    const hour = (at: string, price: number | null) => ({
      timestamp: `2026-05-06T${at}:00.000Z`,
      quote: { USD: { price } },
    })
    const points = [hour('08:00', 1), hour('09:00', null), hour('10:00', 2), hour('11:00', 3), hour('12:00', null)]
    const { source } = createSource(() => points, NOW + 10 * 60_000)
    const range = { start: '2026-05-06T08:00Z', interval: '1h' }
    const { data } = await callTool(seriesTool, source, { ...PRICES, ...range })
    expect(data).toMatchObject({ missing: 1, gaps: [{ from: '2026-05-06T09:00Z', buckets: 1 }] })
  })

  it('suggests an interval if the range has more points than the limit', async () => {
    const { source, requestCount: requests } = sourceOf()
    const called = callTool(seriesTool, source, { ...PRICES, last: '1y', interval: '5m' })
    await expect(called).rejects.toThrow(/105120 points at 5m.*at most 10000: use interval 1h/)
    expect(requests).toEqual([])
  })
})
