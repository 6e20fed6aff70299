import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toBucketStart } from '../../shared/intervals.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import prices from '../../workers/jobs/prices.ts'
import treasury from '../../workers/jobs/treasury.ts'
import { runJob } from '../../workers/run/runner.ts'
import { getToken } from '../support/entities.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { createSimulatedWorld } from '../upstream/simulated.ts'

const NOW = Date.parse('2024-05-06T07:05:09Z')
const MINUTE = 60_000

const row = z.object({
  observed_at: z.string(),
  price: z.number(),
  volume_24h: z.number().nullable(),
  market_cap: z.number().nullable(),
  circulating_supply: z.number().nullable(),
})
const quote = row.extend({ percent_change_7d: z.number().nullable(), percent_change_60d: z.number().nullable() })
type Row = z.infer<typeof row>

const cmcAnswer = z.object({
  data: z.array(
    z.object({
      id: z.number(),
      circulating_supply: z.number(),
      quote: z.tuple([
        z.object({
          price: z.number(),
          volume_24h: z.number(),
          market_cap: z.number(),
          percent_change_7d: z.number().nullable(),
          percent_change_60d: z.number().nullable(),
          last_updated: z.string(),
        }),
      ]),
    }),
  ),
})
const geckoAnswer = z.array(
  z.object({
    id: z.string(),
    current_price: z.number(),
    total_volume: z.number(),
    market_cap: z.number(),
    circulating_supply: z.number(),
    price_change_percentage_7d_in_currency: z.number().nullable(),
    last_updated: z.string(),
  }),
)

let pipeline: Pipeline
let tokens: Token[]
beforeAll(async () => {
  pipeline = await createPipeline({ registry: loadRegistry(), now: NOW, markets: 'differing' })
  tokens = prices.dataset.entities(pipeline.registry).filter((token) => isThereAt(token, NOW)) as Token[]
})
afterAll(() => pipeline?.close())
beforeEach(() => pipeline.upstream.faults.clear())

const request = async <T>(path: string, schema: z.ZodType<T>): Promise<T> => {
  const response = await fetch(pipeline.upstream.url + path, { headers: { 'x-cmc_pro_api_key': 'demo' } })
  return schema.parse(await response.json())
}

/** CoinMarketCap's values at the clock's time, by the token's key. */
async function fetchCoinMarketCapQuotes(): Promise<Map<number, z.infer<typeof quote>>> {
  const ids = tokens.flatMap(({ cmcId }) => cmcId ?? [])
  const { data } = await request(`/coinmarketcap/v3/cryptocurrency/quotes/latest?id=${ids.join(',')}`, cmcAnswer)
  return new Map(
    data.map(({ id, circulating_supply, quote: [{ last_updated, ...usd }] }) => [
      tokens.find(({ cmcId }) => cmcId === String(id))?.key ?? 0,
      { observed_at: last_updated, ...usd, circulating_supply },
    ]),
  )
}

/** The same from CoinGecko, which has no 60-day values. */
async function fetchCoinGeckoQuotes(): Promise<Map<number, z.infer<typeof quote>>> {
  const ids = tokens.map(({ coingeckoId }) => coingeckoId).join(',')
  const path = `/coingecko/api/v3/coins/markets?vs_currency=usd&per_page=250&price_change_percentage=7d&ids=${ids}`
  return new Map(
    (await request(path, geckoAnswer)).map((coin) => [
      tokens.find(({ coingeckoId }) => coingeckoId === coin.id)?.key ?? 0,
      {
        observed_at: coin.last_updated,
        price: coin.current_price,
        volume_24h: coin.total_volume,
        market_cap: coin.market_cap,
        circulating_supply: coin.circulating_supply,
        percent_change_7d: coin.price_change_percentage_7d_in_currency,
        percent_change_60d: null,
      },
    ]),
  )
}

/** The stored rows of a table, by the token's key. */
async function stored<T extends Row>(table: string, schema: z.ZodType<T>, where = 'true'): Promise<Map<number, T[]>> {
  const columns = 'token, observed_at, price, volume_24h, market_cap, circulating_supply'
  const more = table === 'token_quotes' ? ', percent_change_7d, percent_change_60d' : ''
  const rows = await pipeline.context.db.rows({
    name: 'stored',
    sql: `SELECT ${columns}${more} FROM ${table} FINAL WHERE ${where} ORDER BY token, observed_at`,
    schema: z.looseObject({ token: z.number() }),
  })
  const byToken = new Map<number, T[]>()
  for (const { token, ...one } of rows) byToken.set(token, [...(byToken.get(token) ?? []), schema.parse(one)])
  return byToken
}

const latest = async () =>
  new Map([...(await stored('token_quotes', quote))].map(([token, [newest]]) => [token, newest]))

const runSlot = (slot: number) =>
  runJob(prices, prices.connect(pipeline.context), pipeline.context, { kind: 'slot', slot })

describe('providers with different prices', () => {
  it('return another price per token, at another time, within a narrow range', async () => {
    const [cmc, gecko] = [await fetchCoinMarketCapQuotes(), await fetchCoinGeckoQuotes()]
    expect(cmc.size).toBeGreaterThan(80)
    for (const [token, observed] of cmc) {
      const second = gecko.get(token)
      const basisPoints = Math.abs((second?.price ?? Number.NaN) / observed.price - 1) * 1e4
      expect(basisPoints).toBeGreaterThan(1)
      expect(basisPoints).toBeLessThan(200)
      expect(second?.observed_at).not.toBe(observed.observed_at)
    }
    expect(await fetchCoinGeckoQuotes()).toEqual(gecko)
  })

  it('are used in order: each quote comes completely from the first provider that knows the token', async () => {
    await runSlot(NOW - (NOW % (5 * MINUTE)))
    const [cmc, gecko, quotes] = [await fetchCoinMarketCapQuotes(), await fetchCoinGeckoQuotes(), await latest()]
    expect(quotes.size).toBe(tokens.length)
    const byGecko = tokens.filter(({ cmcId }) => cmcId === null)
    expect(byGecko.map(({ symbol }) => symbol)).toEqual(['DINERO'])
    for (const { key, cmcId } of tokens) expect(quotes.get(key)).toEqual((cmcId === null ? gecko : cmc).get(key))
  })

  it('are not mixed by a fallback: its quote replaces the previous one completely', async () => {
    pipeline.clock.now += 5 * MINUTE
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 500 })
    await runSlot(pipeline.clock.now - (pipeline.clock.now % (5 * MINUTE)))
    const [gecko, quotes] = [await fetchCoinGeckoQuotes(), await latest()]
    for (const { key } of tokens) expect(quotes.get(key)).toEqual(gecko.get(key))
  })
})

describe('history of providers with different prices', () => {
  const [from, to] = [Date.parse('2024-05-04T00:00:00Z'), Date.parse('2024-05-05T00:00:00Z')]
  const within = `observed_at >= '2024-05-04' AND observed_at < '2024-05-05'`
  const chart = z.object({ prices: z.array(z.tuple([z.number(), z.number()])) })
  const past = z.object({
    data: z.record(
      z.string(),
      z.object({
        quotes: z.array(z.object({ timestamp: z.string(), quote: z.object({ USD: z.object({ price: z.number() }) }) })),
      }),
    ),
  })
  const run = (symbols: readonly string[]) => {
    const entities = tokens.filter(({ symbol }) => symbols.includes(symbol)).map(({ id }) => id)
    const payload = { kind: 'range', from, to, interval: '1h', entities }
    return runJob(prices, prices.connect(pipeline.context), pipeline.context, payload)
  }
  const tokenOf = (symbol: string) => getToken({ tokens }, symbol)

  it('has points of one provider, with the times of that provider', async () => {
    // UNI comes from the first provider, AAVE from the second while the first is unavailable.
    await run(['UNI'])
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 500 })
    await run(['AAVE'])
    pipeline.upstream.faults.clear()
    const points = await stored('token_prices', row, within)
    const [uni, aave] = [tokenOf('UNI'), tokenOf('AAVE')]
    const query = `id=${uni?.cmcId}&interval=1h&count=25&time_start=${from / 1000 - 3600}&time_end=${to / 1000 - 1}`
    const { data } = await request(`/coinmarketcap/v3/cryptocurrency/quotes/historical?${query}`, past)
    const cmc = data[uni?.cmcId ?? '']?.quotes.map((one) => [one.timestamp, one.quote.USD.price])
    const range = `vs_currency=usd&from=${from / 1000}&to=${to / 1000}`
    const gecko = await request(`/coingecko/api/v3/coins/${aave?.coingeckoId}/market_chart/range?${range}`, chart)
    const toPoints = (token?: Token) =>
      points.get(token?.key ?? 0)?.map(({ observed_at, price }) => [observed_at, price])
    expect(toPoints(uni)).toHaveLength(24)
    expect(toPoints(uni)).toEqual(cmc)
    expect(toPoints(aave)).toHaveLength(24)
    expect(toPoints(aave)).toEqual(gecko.prices.map(([at, price]) => [new Date(at).toISOString(), price]))
  })
})

describe('treasuries of providers with different prices', () => {
  const coinPrices = z.object({ coins: z.record(z.string(), z.object({ price: z.number() })) })
  const stored = z.object({ dao: z.number(), symbol: z.string(), price: z.number() })

  it("value each holding with one provider: the treasury's, or the coin prices if it has none", async () => {
    await runJob(treasury, treasury.connect(pipeline.context), pipeline.context, {
      kind: 'slot',
      slot: toBucketStart(NOW, '1d'),
    })
    const world = createSimulatedWorld(pipeline.registry, 1)
    const rows = await pipeline.context.db.rows({
      name: 'holdings',
      sql: `SELECT dao, t.1 AS symbol, assumeNotNull(t.3) / t.2 AS price FROM dao_treasuries FINAL ARRAY JOIN tokens AS t
            WHERE source = 'goldrush' AND t.2 > 0 AND t.3 > 0`,
      schema: stored,
    })
    const counts = { own: 0, coins: 0 }
    for (const { dao, symbol, price } of rows) {
      const wallets = pipeline.registry.daos.find(({ key }) => key === dao)?.treasuries ?? []
      const held = wallets.flatMap(({ chain, address }) =>
        (world.treasury(chain, address, NOW) ?? []).map((holding) => ({ ...holding, chain })),
      )
      const [one, ...rest] = held.filter((holding) => holding.symbol === symbol)
      // Holdings of a symbol in several wallets are summed.
      if (one === undefined || one.price === null || rest.length > 0) continue
      const basisPoints = (price / one.price - 1) * 1e4
      const isOwn = basisPoints > -52 && basisPoints < -44
      counts[isOwn ? 'own' : 'coins'] += 1
      if (isOwn) continue
      const coin = `${one.chain}:${one.contract}`
      const { coins } = await request(`/defillama-coins/prices/current/${coin}`, coinPrices)
      expect(price / (coins[coin]?.price ?? Number.NaN)).toBeCloseTo(1, 9)
    }
    expect(counts.own).toBeGreaterThan(20)
    expect(counts.coins).toBeGreaterThan(0)
  })
})
