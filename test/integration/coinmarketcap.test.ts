import { describe, expect, it } from 'vitest'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Range } from '../../workers/job/define-job.ts'
import { coinmarketcap } from '../../workers/providers/coinmarketcap/prices.ts'
import { sendJson } from '../provider-server.ts'
import { readFixture, toTestToken } from '../samples.ts'
import { connectTo, paramOf, toTestTokens } from '../support/connected-provider.ts'
import { toRun } from '../support/run.ts'

const DAY = 86_400_000
const start = Date.UTC(2022, 1, 1)

describe('coinmarketcap', () => {
  const errors = readFixture('coinmarketcap/errors.json') as Record<string, unknown>
  const empty = readFixture('coinmarketcap/latest-empty.json')
  const alfa = toTestToken(1, { cmcId: '7278' })

  it('requests the latest quotes of at most a hundred coins per call', async () => {
    const { server, source } = await connectTo(coinmarketcap, (_, response) => sendJson(response, empty), 'secret')
    expect(await source.fetchLatest(toTestTokens(101), toRun().run)).toEqual([])
    expect(paramOf(server, 'id').map((ids) => ids?.split(',').length)).toEqual([100, 1])
    expect(server.requests[0]?.url.pathname).toBe('/v3/cryptocurrency/quotes/latest')
    expect(server.requests[0]?.headers['x-cmc_pro_api_key']).toBe('secret')
  })

  it('returns the latest quotes without a key, but no history', async () => {
    const answer = readFixture('coinmarketcap/latest-v3.json')
    const { server, source } = await connectTo(coinmarketcap, (_, response) => sendJson(response, answer))
    expect(await source.fetchLatest([alfa], toRun().run)).toMatchObject([{ token: 1, price: 101.2 }])
    expect(server.requests[0]?.url.pathname).toBe('/public-api/v3/cryptocurrency/quotes/latest')
    expect(server.requests[0]?.headers).not.toHaveProperty('x-cmc_pro_api_key')
    const range: Range = { from: start, to: start + DAY, interval: '1d' }
    await expect(source.fetchHistory([alfa], range, toRun().run)).rejects.toMatchObject({
      code: 'provider_unconfigured',
      message: expect.stringContaining('COINMARKETCAP_API_KEY'),
    })
  })

  it('pages history by time and by coins, within the limit of points', async () => {
    const answer = { data: {} }
    const { server, source } = await connectTo(coinmarketcap, (_, response) => sendJson(response, answer), 'secret')
    const fiveMinutes = 300_000
    await source.fetchHistory(
      toTestTokens(3),
      { from: start, to: start + 10_000 * fiveMinutes, interval: '5m' },
      toRun().run,
    )
    expect(paramOf(server, 'id')).toEqual(['1,2,3', '1,2', '3'])
    expect(paramOf(server, 'count')).toEqual(['2', '10000', '10000'])
    expect(paramOf(server, 'interval')).toEqual(['5m', '5m', '5m'])
    const split = start + 9_999 * fiveMinutes
    const isoOf = (ms: number) => new Date(ms).toISOString()
    // The provider's start is exclusive.
    const starts = [split, start, start].map((ms) => isoOf(ms - fiveMinutes))
    expect(paramOf(server, 'time_start')).toEqual(starts)
    expect(paramOf(server, 'time_end')).toEqual([
      isoOf(split + fiveMinutes - 1000),
      isoOf(split - 1000),
      isoOf(split - 1000),
    ])
  })

  it('returns history rows', async () => {
    const answer = readFixture('coinmarketcap/historical.json')
    const { source } = await connectTo(coinmarketcap, (_, response) => sendJson(response, answer), 'secret')
    const rows = await source.fetchHistory([alfa], { from: start, to: start + 2 * DAY, interval: '1d' }, toRun().run)
    expect(rows.map((row) => row.price)).toEqual([160.1, 158.75])
  })

  it('retries after the minute limit but not after the monthly limit', async () => {
    let refused = 0
    const shortLimit = await connectTo(coinmarketcap, (_, response) => {
      refused += 1
      if (refused === 1) sendJson(response, errors['1008'], 429)
      else sendJson(response, empty)
    })
    expect(await shortLimit.source.fetchLatest([alfa], toRun().run)).toEqual([])
    expect(shortLimit.calls).toMatchObject([{ outcome: 'ok', retries: 1 }])

    const periodLimit = await connectTo(coinmarketcap, (_, response) => sendJson(response, errors['1010'], 429))
    await expect(periodLimit.source.fetchLatest([alfa], toRun().run)).rejects.toMatchObject({
      code: 'provider_exhausted',
      message: expect.stringContaining('monthly limit reached'),
      retryAfterMs: expect.toSatisfy((ms: number) => ms > 0 && ms <= 31 * DAY),
    })
    expect(periodLimit.server.requests).toHaveLength(1)
  })

  it.each([
    [401, '1001', 'provider_rejected', 'COINMARKETCAP_API_KEY'],
    [
      403,
      '1006',
      'provider_unconfigured',
      "plan doesn't support this endpoint. (a larger plan of COINMARKETCAP_API_KEY",
    ],
    [
      200,
      '1006',
      'provider_unconfigured',
      "plan doesn't support this endpoint. (a larger plan of COINMARKETCAP_API_KEY",
    ],
    [200, '1008', 'provider_unavailable', 'minute limit'],
    [200, '1001', 'provider_rejected', 'error 1001: This API Key is invalid.'],
  ])('reports status %i with code %s as %s', async (status, code, expected, says) => {
    const { source } = await connectTo(
      coinmarketcap,
      (_, response) => sendJson(response, errors[code], status),
      'secret',
    )
    const error = await source.fetchLatest([alfa], toRun().run).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: expected, message: expect.stringContaining(says) })
  })

  it('keeps the rows of other calls if one response is malformed', async () => {
    const { server, source } = await connectTo(coinmarketcap, (_, response, url) => {
      const isSecond = url.searchParams.get('id') === '101'
      sendJson(response, isSecond ? { data: [{ name: 'x' }] } : { data: [{ id: 1, quote: { USD: { price: 5 } } }] })
    })
    const { run, refused } = toRun()
    expect(await source.fetchLatest(toTestTokens(102), run)).toMatchObject([{ token: 1, price: 5 }])
    expect(refused.size).toBe(0)
    expect(server.requests).toHaveLength(2)
    expect(await source.fetchLatest(toTestTokens(101), run)).toMatchObject([{ token: 1, price: 5 }])
    expect([...refused].map(([key, { code }]) => [key, code])).toEqual([[101, 'provider_malformed']])
  })

  it('rejects one malformed coin, and keeps the other coins of its call', async () => {
    const quotes = [{ timestamp: new Date(start).toISOString(), quote: { USD: { price: 5 } } }]
    const answer = { data: { 1: { id: 1, quotes }, 2: { id: 2, quotes: 'none' }, 3: { id: 3, quotes } } }
    const { source } = await connectTo(coinmarketcap, (_, response) => sendJson(response, answer), 'secret')
    const { run, refused } = toRun()
    const rows = await source.fetchHistory(toTestTokens(3), { from: start, to: start + DAY, interval: '1d' }, run)
    expect(rows.map(({ token }) => token)).toEqual([1, 3])
    expect([...refused].map(([key, { code }]) => [key, code])).toEqual([[2, 'provider_malformed']])
  })

  it('reports a coin as unknown if no page of its history lists it, but not a coin without quotes', async () => {
    const step = 300_000
    const split = start + 9_999 * step
    const quotes = [{ timestamp: new Date(split).toISOString(), quote: { USD: { price: 5 } } }]
    const { source } = await connectTo(
      coinmarketcap,
      (_, response, url) => {
        const isSecondPage = url.searchParams.get('time_start') === new Date(split - step).toISOString()
        sendJson(response, { data: { 1: { id: 1, quotes: [] }, ...(isSecondPage ? { 2: { id: 2, quotes } } : {}) } })
      },
      'secret',
    )
    const { run, refused } = toRun()
    const rows = await source.fetchHistory(toTestTokens(3), { from: start, to: split + step, interval: '5m' }, run)
    expect(rows.map(({ token }) => token)).toEqual([2])
    expect([...refused].map(([key, { code }]) => [key, code])).toEqual([[3, 'provider_unknown']])
    expect(refused.get(3)?.message).toContain('?id=3:')
  })

  it('reports no result for a coin if its older page failed, even if the newer page does not list it', async () => {
    const step = 300_000
    const split = start + 9_999 * step
    const { source } = await connectTo(
      coinmarketcap,
      (_, response, url) => {
        const isOlder = url.searchParams.get('time_start') === new Date(start - step).toISOString()
        sendJson(response, isOlder ? errors['1010'] : { data: {} }, isOlder ? 429 : 200)
      },
      'secret',
    )
    const { run, refused } = toRun()
    await source.fetchHistory([alfa], { from: start, to: split + step, interval: '5m' }, run)
    expect([...refused].map(([key, { code }]) => [key, code])).toEqual([[1, 'provider_exhausted']])
  })

  it.each([
    ['5m', 30, '2024-10-06T00:55:00.000Z'],
    ['1d', 365, '2023-11-06T00:00:00.000Z'],
    ['7d', 365, '2023-11-06T00:00:00.000Z'],
  ] as const)(
    'returns the part of a range by %s within a plan of %i days, and requests nothing older afterwards',
    async (interval, plan, newestStart) => {
      const monday = Date.UTC(2024, 10, 4)
      const clock = monday + 3_600_000
      const step = INTERVAL_SECONDS[interval] * 1000
      const { server, source } = await connectTo(
        coinmarketcap,
        (_, response, url) => {
          const begins = Date.parse(url.searchParams.get('time_start') ?? '')
          if (begins < clock - plan * DAY) return sendJson(response, errors['1006'], 403)
          const quotes = [{ timestamp: new Date(monday - step).toISOString(), quote: { USD: { price: 5 } } }]
          sendJson(response, { data: { 1: { id: 1, quotes } } })
        },
        'secret',
        clock,
      )
      const { run, refused } = toRun()
      const from = monday - 400 * DAY - 6 * DAY
      const rows = await source.fetchHistory(toTestTokens(1), { from, to: monday, interval }, run)
      expect(rows).toMatchObject([{ token: 1, price: 5 }])
      expect([...refused].map(([key, { code }]) => [key, code])).toEqual([[1, 'provider_unconfigured']])
      const [newest, beyond, ...more] = paramOf(server, 'time_start')
      expect(more).toEqual([])
      expect(newest).toBe(newestStart)
      expect(Date.parse(beyond ?? '')).toBeLessThan(clock - plan * DAY)
    },
  )

  it('names the path of the unexpected member of a response', async () => {
    const { source } = await connectTo(coinmarketcap, (_, response) => sendJson(response, { data: [{ name: 'x' }] }))
    await expect(source.fetchLatest([alfa], toRun().run)).rejects.toMatchObject({
      code: 'provider_malformed',
      message: expect.stringMatching(/^coinmarketcap .*quotes\/latest.*: .*id/),
    })
  })
})
