import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { openDefiLlamaCoins } from '../../workers/providers/defillama/client.ts'
import { openPrices, toCoin } from '../../workers/providers/defillama/prices.ts'
import { fetchPrices } from '../../workers/providers/evm/dex/quote-prices.ts'
import { createObservedClients } from '../provider-server.ts'
import { createUpstream, type Upstream } from '../upstream/server.ts'
import { toStandInSettings } from '../upstream/settings.ts'

const NOW = Date.UTC(2026, 10, 20, 12, 3, 20)
const HOUR = 3_600_000
const { signal } = new AbortController()
const registry = loadRegistry()
const uni = registry.tokens.find(({ symbol }) => symbol === 'UNI')
const coin = toCoin('ethereum', uni?.contractAddress ?? '')
/** The same simulated world, but UNI has prices from its pools only. */
const tokens = registry.tokens.map((token) => (token === uni ? { ...token, coingeckoId: null } : token))

let listed: Upstream
let pooled: Upstream
beforeAll(async () => {
  listed = await createUpstream({ registry, now: () => NOW })
  pooled = await createUpstream({ registry: { tokens, daos: registry.daos }, now: () => NOW })
})
beforeEach(() => listed.faults.clear())
afterAll(async () => {
  await Promise.all([listed.close(), pooled.close()])
})

const open = ({ url }: Upstream) => ({
  config: parseConfig(toStandInSettings(url)),
  http: createObservedClients().http,
  now: () => NOW,
})

describe('DefiLlama price chart', () => {
  const from = (NOW - 6 * HOUR) / 1000
  const to = (NOW - HOUR) / 1000
  const read = (upstream: Upstream) => fetchPrices(openDefiLlamaCoins(open(upstream)), coin, from, to, signal)

  it('returns a price for every time, although the provider stores them at irregular times', async () => {
    const priceAt = await read(listed)
    const times = Array.from({ length: (to - from) / 60 }, (_, minute) => from + minute * 60)
    expect(times.filter((time) => priceAt(time) === undefined)).toEqual([])
    expect(new Set(times.map(priceAt)).size).toBeGreaterThan(40)
  })

  it('returns no price of a coin with low confidence', async () => {
    expect((await read(pooled))(to)).toBeUndefined()
  })
})

describe('DefiLlama coin prices', () => {
  const times = [3, 2, 1].map((days) => Math.floor(NOW / HOUR) * HOUR - days * 24 * HOUR)

  it('returns current and past prices', async () => {
    const prices = openPrices(open(listed))
    expect((await prices.now([coin], signal)).prices.get(coin)).toBeGreaterThan(0)
    expect([...((await prices.past([coin], times, signal)).prices.get(coin)?.keys() ?? [])]).toEqual(times)
  })

  it('leaves out coins with low confidence', async () => {
    const prices = openPrices(open(pooled))
    const nothing = { prices: new Map(), faults: new Map() }
    expect(await prices.now([coin], signal)).toEqual(nothing)
    expect(await prices.past([coin], times, signal)).toEqual(nothing)
  })
})

describe('DefiLlama host that rejects searchWidth', () => {
  const refuse = () => listed.faults.set('defillama-coins', { kind: 'parameter', name: 'searchWidth' })
  const times = [NOW - 48 * HOUR, NOW - 24 * HOUR]

  it('receives one retry without it, and all later requests without it', async () => {
    refuse()
    const { http, ...context } = open(listed)
    const observed = createObservedClients()
    const prices = openPrices({ ...context, http: observed.http })
    expect([...((await prices.past([coin], times, signal)).prices.get(coin)?.keys() ?? [])]).toEqual(times)
    await prices.past([coin], times, signal)
    const queries = observed.calls.filter(({ path }) => path === '/batchHistorical').map(({ status }) => status)
    expect(queries).toEqual([400, 200, 200])
  })

  it('receives a second chart request without it', async () => {
    refuse()
    const { http, ...context } = open(listed)
    const observed = createObservedClients()
    const [from, to] = [(NOW - 6 * HOUR) / 1000, (NOW - HOUR) / 1000]
    await fetchPrices(openDefiLlamaCoins({ ...context, http: observed.http }), coin, from, to, signal)
    const statuses = observed.calls.filter(({ path }) => path.startsWith('/chart/')).map(({ status }) => status)
    expect(statuses.slice(0, 2)).toEqual([400, 200])
  })

  it('reports its reason if it rejects anything else', async () => {
    listed.faults.set('defillama-coins', { kind: 'status', status: 400, html: false })
    const prices = openPrices(open(listed))
    await expect(prices.past([coin], times, signal)).rejects.toMatchObject({ code: 'provider_rejected' })
  })
})
