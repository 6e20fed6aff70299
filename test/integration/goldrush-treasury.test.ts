import { describe, expect, it } from 'vitest'
import { goldrush } from '../../workers/providers/goldrush/treasury.ts'
import { type Handler, sendJson } from '../provider-server.ts'
import { readFixture } from '../samples.ts'
import { address, alfa, connectTreasury, DAY, TODAY, wallet } from '../support/treasury-provider.ts'

const { signal } = new AbortController()

describe('goldrush', () => {
  const item = (contract: string, symbol: string, more: object = {}) => ({
    contract_decimals: 6,
    contract_ticker_symbol: symbol,
    contract_address: contract,
    type: 'cryptocurrency',
    is_spam: false,
    balance: '5000000',
    quote: 5,
    ...more,
  })
  const data = (items: object[]) => ({ data: { items }, error: false, error_message: null, error_code: null })
  const failure = (code: string | number, message = 'no') => ({
    data: null,
    error: true,
    error_message: message,
    error_code: code,
  })
  const holding = (day: number, quote: number) => ({
    timestamp: new Date(TODAY - day * DAY).toISOString(),
    open: { balance: '5000000', quote },
  })
  /** Responses for balances, portfolios and coin prices, from one function each. */
  const answering =
    (answers: { balances: (path: string) => object; portfolio?: (path: string) => object; coins?: object }): Handler =>
    (_, response, url) => {
      if (url.pathname.startsWith('/coins/')) return sendJson(response, { coins: answers.coins ?? {} })
      const kind = url.pathname.includes('/portfolio_v2/') ? answers.portfolio : answers.balances
      sendJson(response, kind?.(url.pathname) ?? {})
    }

  it('requests each address by the id of its chain, and sums holdings of one contract', async () => {
    const { server, source } = await connectTreasury(
      goldrush,
      answering({ balances: () => data([item('0x1', 'USDC')]) }),
    )
    const row = await source.fetchTreasury({ ...alfa, wallets: [wallet(1), wallet(2)] }, TODAY, signal)
    expect(row).toEqual({
      dao: 1,
      observed_at: '2024-05-06T00:00:00.000Z',
      value_usd: 10,
      tokens: [{ symbol: 'USDC', quantity: 10, value_usd: 10 }],
      holdings: [1, 2].map((n) => ({
        ...{ chain: 'ethereum', address: address(n), contract: '0x1', symbol: 'USDC', quantity: 5, value_usd: 5 },
        ...{ price_source: 'goldrush', kind: 'other' },
      })),
      ...{ spam_count: 0, spam: [], unread: [] },
      source: 'goldrush',
    })
    const query = '?quote-currency=USD&nft=false'
    expect(server.requests.map(({ url }) => url.pathname + url.search)).toEqual([
      `/v1/1/address/${address(1)}/balances_v2/${query}`,
      `/v1/1/address/${address(2)}/balances_v2/${query}`,
    ])
    expect(server.requests[0]?.headers.authorization).toBe('Bearer secret')
  })

  it('reads the documented response, tokens without a price and spam included', async () => {
    const { source } = await connectTreasury(
      goldrush,
      answering({ balances: () => readFixture('goldrush/balances.json') as object }),
    )
    expect(await source.fetchTreasury(alfa, TODAY, signal)).toMatchObject({
      value_usd: 9087.22,
      spam_count: 1,
      tokens: [
        { symbol: 'ETH', quantity: 2.581423, value_usd: 9087.21 },
        { symbol: 'DUST', quantity: 1e-18, value_usd: 0.01 },
        { symbol: 'UNI-V2', quantity: 173403155.20471841, value_usd: null },
      ],
    })
  })

  it('prices unpriced tokens with DefiLlama in few calls, and keeps null if it has no price', async () => {
    const ways = [{ quote: null }, { quote: 0, quote_rate: null }, { quote: 0, quote_rate: 0 }]
    const unpriced = Array.from({ length: 100 }, (_, n) => item(address(n), `T${n}`, ways[n % ways.length]))
    const coins = { [`ethereum:${address(7)}`]: { price: 3, symbol: 'T7', timestamp: Date.now() / 1000 } }
    const { server, source } = await connectTreasury(goldrush, answering({ balances: () => data(unpriced), coins }))
    const row = await source.fetchTreasury(alfa, TODAY, signal)
    expect(row).toMatchObject({ value_usd: 15 })
    expect([row?.holdings].flat()[0]).toMatchObject({ contract: address(7), price_source: 'defillama' })
    expect(row?.tokens).toHaveLength(100)
    const requests = server.requests.map(({ url }) => url.href).filter((href) => href.includes('/coins/'))
    expect(requests).toHaveLength(2)
    expect(Math.max(...requests.map((href) => href.length))).toBeLessThan(4_096)
  })

  it('is unavailable while DefiLlama is: missing prices are not stored as unknown', async () => {
    const { source } = await connectTreasury(goldrush, (_, response, url) =>
      url.pathname.startsWith('/coins/')
        ? sendJson(response, 'Internal Error', 502)
        : sendJson(response, data([item('0x1', 'A', { quote: null }), item('0x2', 'B')])),
    )
    await expect(source.fetchTreasury(alfa, TODAY, signal)).rejects.toMatchObject({ code: 'provider_unavailable' })
  })

  it('returns no row if an address is unknown, or is empty although it had holdings', async () => {
    const two = { ...alfa, wallets: [wallet(1), wallet(2)] }
    const unknown = { code: 'provider_unknown' }
    const soft = await connectTreasury(
      goldrush,
      answering({ balances: (path) => (path.includes(address(2)) ? failure('404') : data([item('0x1', 'A')])) }),
    )
    await expect(soft.source.fetchTreasury(two, TODAY, signal)).rejects.toMatchObject(unknown)
    const empty = await connectTreasury(
      goldrush,
      answering({
        balances: (path) => data(path.includes(address(2)) ? [] : [item('0x1', 'A')]),
        portfolio: () => data([item('0x1', 'A', { holdings: [holding(1, 5)] })]),
      }),
    )
    expect(await empty.source.fetchTreasury(two, TODAY, signal)).toBeUndefined()
    const hard = await connectTreasury(goldrush, (_, response) => sendJson(response, failure(400), 400))
    await expect(hard.source.fetchTreasury(two, TODAY, signal)).rejects.toMatchObject(unknown)
    expect(hard.server.requests).toHaveLength(1)
  })

  it('counts an unused address as empty, but only with other addresses', async () => {
    const answers = {
      balances: (path: string) => data(path.includes(address(2)) ? [] : [item('0x1', 'A')]),
      portfolio: (path: string) =>
        data(path.includes(address(2)) ? [] : [item('0x1', 'A', { holdings: [holding(1, 5)] })]),
    }
    const { source } = await connectTreasury(goldrush, answering(answers))
    const two = { ...alfa, wallets: [wallet(1), wallet(2)] }
    expect(await source.fetchTreasury(two, TODAY, signal)).toMatchObject({ value_usd: 5 })
    const range = { from: TODAY - DAY, to: TODAY, interval: '1d' } as const
    expect(await source.fetchHistory(two, range, signal)).toMatchObject([{ value_usd: 5 }])
    expect(await source.fetchTreasury({ ...alfa, wallets: [wallet(2)] }, TODAY, signal)).toBeUndefined()
  })

  it('is rejected without a key before a request is sent', async () => {
    const { server, source } = await connectTreasury(goldrush, answering({ balances: () => data([]) }), {})
    const range = { from: TODAY - DAY, to: TODAY, interval: '1d' } as const
    for (const call of [
      () => source.fetchTreasury(alfa, TODAY, signal),
      () => source.fetchHistory(alfa, range, signal),
    ]) {
      await expect(call()).rejects.toMatchObject({
        code: 'provider_unconfigured',
        message: expect.stringContaining('GOLDRUSH_API_KEY'),
      })
    }
    expect(server.requests).toHaveLength(0)
  })

  it.each([
    [401, 'provider_rejected', 1],
    [402, 'provider_exhausted', 1],
    [403, 'provider_rejected', 1],
    [429, 'provider_unavailable', 4],
    [500, 'provider_unavailable', 4],
    [503, 'provider_unavailable', 4],
  ])('reports status %i as %s after %i attempts, without the key', async (status, code, tries) => {
    const { server, source } = await connectTreasury(goldrush, (_, response) =>
      sendJson(response, failure(String(status), 'not with secret'), status),
    )
    const error = await source.fetchTreasury(alfa, TODAY, signal).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code })
    expect(String(error)).not.toContain('secret')
    expect(String(error).includes('GOLDRUSH_API_KEY')).toBe(status < 429)
    expect(server.requests).toHaveLength(tries)
  })

  it.each([
    ['402', 'provider_exhausted'],
    [402, 'provider_exhausted'],
    ['429', 'provider_unavailable'],
    [503, 'provider_unavailable'],
  ])('reads the error code %j of a response with status 200 as %s', async (code, expected) => {
    for (const body of [failure(code), { error: true, error_message: 'no', error_code: code }]) {
      const { source } = await connectTreasury(goldrush, (_, response) => sendJson(response, body))
      await expect(source.fetchTreasury(alfa, TODAY, signal)).rejects.toMatchObject({ code: expected })
    }
  })

  it('reports a response without a list as malformed', async () => {
    const { source } = await connectTreasury(goldrush, (_, response) => sendJson(response, { data: { items: null } }))
    await expect(source.fetchTreasury(alfa, TODAY, signal)).rejects.toMatchObject({ code: 'provider_malformed' })
  })

  it('returns the days that every address has, with DefiLlama prices of the day for unpriced tokens', async () => {
    const days = (...list: number[]) => list.map((day) => holding(day, 0))
    const portfolio = (path: string) =>
      data([item('0x1', 'A', { holdings: path.includes(address(2)) ? days(1, 2) : days(0, 1, 2, 3, 4) })])
    const prices = (href: URL) => {
      const required = JSON.parse(href.searchParams.get('coins') ?? '{}') as Record<string, number[]>
      const points = (times: number[]) =>
        // The provider has no price for one of the days, except a much older one.
        times.map((timestamp, n) => ({ timestamp: n === 0 ? timestamp - 86_400 : timestamp + 60, price: 2 }))
      return Object.fromEntries(Object.entries(required).map(([coin, times]) => [coin, { prices: points(times) }]))
    }
    const second = item('0x2', 'B', { holdings: [holding(1, 4), holding(2, 4), holding(3, 4)] })
    const { server, source } = await connectTreasury(goldrush, (_, response, url) => {
      if (url.pathname === '/coins/batchHistorical') return sendJson(response, { coins: prices(url) })
      if (url.pathname.startsWith('/coins/'))
        return sendJson(response, { coins: { 'ethereum:0x1': { price: 9, timestamp: Date.now() / 1000 } } })
      if (!url.pathname.includes('/portfolio_v2/'))
        return sendJson(response, data([item('0x1', 'A', { quote: null }), item('0x2', 'B')]))
      const { items } = portfolio(url.pathname).data
      sendJson(response, data([...items, second]))
    })
    const range = { from: TODAY - 5 * DAY, to: TODAY, interval: '1d' } as const
    const rows = await source.fetchHistory({ ...alfa, wallets: [wallet(1), wallet(2)] }, range, signal)
    const byDay = Object.fromEntries(rows.map((row) => [String(row.observed_at).slice(0, 10), row.value_usd]))
    expect(byDay).toEqual({ '2024-05-05': 8, '2024-05-04': 28, '2024-05-03': 18 })
    const requests = server.requests.filter(({ url }) => url.pathname.includes('/portfolio_v2/'))
    expect(requests.map(({ url }) => url.search)).toEqual(['?days=7', '?days=7'])
  })

  it('counts holdings on earlier days that were sold today', async () => {
    const sold = { ...holding(0, 5), close: { balance: '0', quote: 0 } }
    const spam = { ...holding(0, 9), close: { balance: '5000000', quote: 9 } }
    const { source } = await connectTreasury(
      goldrush,
      answering({
        balances: () => data([item('0x1', 'A')]),
        portfolio: () =>
          data([
            item('0x1', 'A', { holdings: [holding(1, 5)] }),
            item('0x2', 'SOLD', { holdings: [sold, holding(1, 5)] }),
            item('0x3', 'SPAM', { holdings: [spam, holding(1, 9)] }),
          ]),
      }),
    )
    const range = { from: TODAY - DAY, to: TODAY, interval: '1d' } as const
    expect(await source.fetchHistory(alfa, range, signal)).toMatchObject([{ value_usd: 10 }])
  })

  it('treats an empty portfolio as a failure if the address has holdings', async () => {
    const { source } = await connectTreasury(
      goldrush,
      answering({ balances: () => data([item('0x1', 'A')]), portfolio: () => data([]) }),
    )
    const range = { from: TODAY - DAY, to: TODAY, interval: '1d' } as const
    await expect(source.fetchHistory(alfa, range, signal)).rejects.toMatchObject({ code: 'provider_malformed' })
  })

  it('returns no history for a DAO without a complete day in the range', async () => {
    const observed = [[holding(0, 5)], [{ ...holding(1, 5), open: null }]]
    for (const holdings of observed) {
      const { source } = await connectTreasury(
        goldrush,
        answering({
          balances: () => data([item('0x1', 'A')]),
          portfolio: () => data([item('0x1', 'A', { holdings })]),
        }),
      )
      const range = { from: TODAY - DAY, to: TODAY, interval: '1d' } as const
      await expect(source.fetchHistory(alfa, range, signal)).rejects.toMatchObject({ code: 'provider_unknown' })
    }
  })

  it('does not treat an address as unused if it was emptied within the range', async () => {
    const emptied = [holding(20, 5), { ...holding(1, 0), open: { balance: '0', quote: 0 } }]
    const { source } = await connectTreasury(goldrush, (_, response, url) => {
      const isSecond = url.pathname.includes(address(2))
      if (url.pathname.includes('/balances_v2/')) return sendJson(response, data(isSecond ? [] : [item('0x1', 'A')]))
      const holdings = isSecond ? emptied : [holding(1, 5), holding(20, 5)]
      const isReported = !isSecond || Number(url.searchParams.get('days')) > 20
      sendJson(response, data(isReported ? [item('0x1', 'A', { holdings })] : []))
    })
    const range = { from: TODAY - 30 * DAY, to: TODAY, interval: '1d' } as const
    const two = { ...alfa, wallets: [wallet(1), wallet(2)] }
    await expect(source.fetchHistory(two, range, signal)).rejects.toMatchObject({ code: 'provider_malformed' })
  })
})
