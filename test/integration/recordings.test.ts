import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { daoLinkRow } from '../../shared/datasets/daos.ts'
import { protocolTvlRow } from '../../shared/datasets/protocol-tvl.ts'
import { tokenPriceRow } from '../../shared/datasets/token-prices.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { LINK_FIELDS } from '../../shared/registry/found-links.ts'
import type { Provider, Range } from '../../workers/job/define-job.ts'
import { coingeckoLinks } from '../../workers/providers/coingecko/links.ts'
import { coingecko } from '../../workers/providers/coingecko/prices.ts'
import { coinmarketcap } from '../../workers/providers/coinmarketcap/prices.ts'
import type { PriceSource } from '../../workers/providers/contracts/prices.ts'
import { defillama } from '../../workers/providers/defillama/tvl.ts'
import { createObservedClients, sendJson, startProviderServer } from '../provider-server.ts'
import { toTestDao, toTestToken } from '../samples.ts'
import { noDatabase } from '../support/no-database.ts'
import { toRun } from '../support/run.ts'
import { silent } from '../support/silent.ts'

const dir = process.env.UPSTREAM_DATA_DIR ?? resolve(import.meta.dirname, '../../../shared/data')
const isAbsent = !existsSync(join(dir, 'INDEX.md'))
if (isAbsent) console.log(`recordings are not tested: there are none in ${dir}`)

const { signal } = new AbortController()
const DAY = 86_400_000
const closers: (() => Promise<void>)[] = []

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

/** The provider with one recorded response body. */
async function replay<Source>(
  provider: Pick<Provider<Source, never>, 'name' | 'connect'>,
  body: unknown,
  status = 200,
): Promise<Source> {
  const server = await startProviderServer((_, response) => sendJson(response, body, status))
  closers.push(server.close)
  const name = provider.name.toUpperCase()
  const base = { [`${name}_BASE_URL`]: server.baseUrl, [`${name}_REQUESTS_PER_MINUTE`]: '60000' }
  return provider.connect({
    config: parseConfig(base),
    http: createObservedClients().http,
    db: noDatabase,
    log: silent,
  })
}

const readText = (path: string) => readFileSync(join(dir, path), 'utf8')
const readGzip = (path: string) => gunzipSync(readFileSync(join(dir, path))).toString()

interface Listing {
  data: Record<string, { id: number; max_supply: number | null; quote: { USD: Record<string, unknown> } }>
}

describe.skipIf(isAbsent)('CoinMarketCap client with recorded responses', () => {
  const read = (file: string) => {
    const answer = JSON.parse(readText(`fixtures-coinmarketcap/${file}`)) as Listing
    return { answer, coins: Object.values(answer.data) }
  }
  const toTokens = (coins: { id: number }[]) => coins.map(({ id }) => toTestToken(id, { cmcId: String(id) }))

  it('returns a row with the exact values of each of 100 coins', async () => {
    const { answer, coins } = read('listings_latest_2022-12-16.json')
    const source = await replay(coinmarketcap, answer)
    const rows = await source.fetchLatest(toTokens(coins), toRun().run)
    expect(rows).toHaveLength(100)
    for (const [index, row] of rows.entries()) {
      const coin = coins[index]
      const { market_cap_dominance: _, last_updated, ...usd } = coin?.quote.USD ?? {}
      expect(tokenPriceRow.safeParse(row).error).toBeUndefined()
      expect(row).toMatchObject({ token: coin?.id, max_supply: coin?.max_supply, observed_at: last_updated, ...usd })
    }
    expect(rows.filter((row) => row.max_supply === null).length).toBeGreaterThan(10)
    expect(rows.filter((row) => row.tvl === null).length).toBeGreaterThan(10)
    expect(rows.filter((row) => row.tvl !== null).length).toBeGreaterThan(0)
  })

  it('returns null for members that the format of 2019 lacks', async () => {
    const { answer, coins } = read('quotes_latest_v1_by_id_2019-02-04.json')
    const rows = await (await replay(coinmarketcap, answer)).fetchLatest(toTokens(coins), toRun().run)
    expect(rows).toHaveLength(10)
    const unknown = { percent_change_30d: null, percent_change_60d: null, percent_change_90d: null, tvl: null }
    for (const row of rows) {
      expect(row).toMatchObject({ ...unknown, volume_change_24h: null, fully_diluted_market_cap: null })
      expect(tokenPriceRow.safeParse(row).error).toBeUndefined()
    }
  })
})

interface Recording {
  request: { uri: string }
  response: { status: { code: number }; body: { prices: [number, number][]; market_caps: [number, number][] } }
}

describe.skipIf(isAbsent)('CoinGecko client with recorded responses', () => {
  const bitcoin = toTestToken(1, { coingeckoId: 'bitcoin' })
  const read = (file: string, code: number) => {
    const all = JSON.parse(readText(`fixtures-coingecko/coingecko_ruby/${file}.json`)) as Recording[]
    const found = all.find(({ response }) => response.status.code === code)
    if (!found) throw new Error(`${file} has no answer with status ${code}`)
    return found.response.body
  }
  const rangeOf = (prices: readonly [number, number][], interval: Range['interval']): Range => {
    const times = prices.map(([ms]) => ms)
    return { from: Math.min(...times), to: Math.max(...times) + 1, interval }
  }
  /** One response for the complete range, so that each observation appears once. */
  const fetchAll = async (source: PriceSource, token: Token, range: Range) => {
    const rows = await source.fetchHistory([token], range, toRun().run)
    for (const row of rows) expect(tokenPriceRow.safeParse(row).error).toBeUndefined()
    return rows
  }

  it.each([
    ['minutely', '1h', 25],
    ['hourly', '1d', 31],
    ['daily', '1d', 90],
    ['daily', '7d', 13],
  ] as const)('thins the %s chart to %s', async (step, interval, count) => {
    const body = read(`${step}_historical_prices_for_one_coin`, 200)
    const rows = await fetchAll(await replay(coingecko, body), bitcoin, rangeOf(body.prices, interval))
    expect(rows).toHaveLength(count)
    const sent = new Map(body.prices)
    for (const row of rows) expect(row.price).toBe(sent.get(Date.parse(String(row.observed_at))))
    expect(rows.every((row) => row.market_cap !== null && row.volume_24h !== null)).toBe(true)
  })

  it('reads the market data of a coin', async () => {
    const rows = await (await replay(coingecko, read('market_data_for_a_coin', 200))).fetchLatest(
      [bitcoin],
      toRun().run,
    )
    expect(rows).toHaveLength(1)
    expect(tokenPriceRow.safeParse(rows[0]).error).toBeUndefined()
  })

  it('reports 422 as rejected and 500 as unavailable', async () => {
    const refused = await replay(coingecko, read('market_data_for_a_coin', 422), 422)
    await expect(refused.fetchLatest([bitcoin], toRun().run)).rejects.toMatchObject({
      code: 'provider_rejected',
      message: expect.stringContaining('Missing parameter vs_currency'),
    })
    const broken = await replay(coingecko, read('ohlc_data_for_one_coin_in_the_last_7_days', 500), 500)
    await expect(broken.fetchLatest([bitcoin], toRun().run)).rejects.toMatchObject({ code: 'provider_unavailable' })
  })

  it('reads a year of ten tokens by day', async () => {
    const folder = 'coingecko-market_chart-2022-defi_etf'
    const files = readdirSync(join(dir, folder)).filter((file) => file.endsWith('.json') && file !== 'assets.json')
    for (const file of files) {
      const body = JSON.parse(readText(`${folder}/${file}`)) as Recording['response']['body']
      const range: Range = { from: Date.UTC(2022, 1, 1), to: Date.UTC(2022, 11, 1), interval: '1d' }
      const rows = await fetchAll(await replay(coingecko, body), bitcoin, range)
      expect(rows).toHaveLength((range.to - range.from) / DAY)
      expect(rows.every((row) => row.market_cap !== null)).toBe(true)
    }
    expect(files).toHaveLength(10)
  })
})

describe.skipIf(isAbsent)('DefiLlama client with recorded responses', () => {
  const folder = 'defillama-protocols-tvl-bma-d'
  interface Protocol {
    name: string
    slug: string
    tvl?: number
  }

  it('finds values among thousands of protocols by slug', async () => {
    // The recording has no slugs: they are derived from the names.
    const protocols = (JSON.parse(readGzip(`${folder}/lite-protocols2_2025-12-19.json.gz`)) as Protocol[]).map(
      (protocol) => ({ ...protocol, slug: protocol.name.toLowerCase().replaceAll(' ', '-') }),
    )
    const source = await replay(defillama, protocols)
    const daos = [toTestDao(1, 'aave-v3'), toTestDao(2, 'lido'), toTestDao(3, 'no-such-protocol')]
    const rows = await source.fetchTvl(daos, Date.UTC(2025, 11, 19), signal)
    const sent = (slug: string) => protocols.find((protocol) => protocol.slug === slug)?.tvl
    expect(rows.map((row) => [row.dao, row.tvl_usd])).toEqual([
      [1, sent('aave-v3')],
      [2, sent('lido')],
    ])
    for (const row of rows) expect(protocolTvlRow.safeParse(row).error).toBeUndefined()
  })

  it('reads every day of 38 histories', async () => {
    const files = readdirSync(join(dir, folder, 'protocol_tvl'))
    expect(files).toHaveLength(38)
    for (const file of files) {
      const body = JSON.parse(readGzip(`${folder}/protocol_tvl/${file}`)) as { tvl: { date: number }[] }
      const days = new Set(body.tvl.map(({ date }) => Math.floor((date * 1000) / DAY)))
      const range: Range = { from: 0, to: Date.UTC(2026, 0, 1), interval: '1d' }
      const rows = await (await replay(defillama, body)).fetchTvlHistory([toTestDao(1, 'drift')], range, toRun().run)
      expect(rows).toHaveLength(days.size)
      expect(rows.every((row) => protocolTvlRow.safeParse(row).success)).toBe(true)
    }
  })
})

describe.skipIf(isAbsent)('CoinGecko link client with recorded responses', () => {
  it('returns the existing links, and none for empty members', async () => {
    const file = 'fixtures-coingecko/coingecko_ruby/market_data_for_a_coin_from_a_contract_address.json'
    const [{ response }] = JSON.parse(readText(file)) as [{ response: { body: unknown } }]
    const source = await replay(coingeckoLinks, response.body)
    const dao = { ...toTestDao(1, null), missing: LINK_FIELDS, cmcId: null, coingeckoId: 'tether' }
    const rows = await source.fetchLinks([dao], toRun({ slot: Date.parse('2021-05-15T00:00:00Z') }).run)
    expect(Object.fromEntries(rows.map(({ field, value }) => [field, value]))).toEqual({
      website: 'https://tether.to/',
      twitter: 'https://twitter.com/Tether_to',
      image: expect.stringMatching(/^https:\/\/assets\.coingecko\.com\/coins\/images\/325\/large\//),
    })
    for (const row of rows) expect(daoLinkRow.safeParse(row).success).toBe(true)
  })
})
