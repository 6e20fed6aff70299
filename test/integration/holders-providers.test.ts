import { afterEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Provider } from '../../workers/job/define-job.ts'
import holders from '../../workers/jobs/holders.ts'
import { ethplorer } from '../../workers/providers/ethplorer/holders.ts'
import { moralis } from '../../workers/providers/moralis/holders.ts'
import { createObservedClients, sendJson, startProviderServer } from '../provider-server.ts'
import { toTestToken } from '../samples.ts'
import { noDatabase } from '../support/no-database.ts'
import { toRun } from '../support/run.ts'
import { silent } from '../support/silent.ts'
import { createUpstream } from '../upstream/server.ts'
import { toStandInSettings } from '../upstream/settings.ts'

type Handler = Parameters<typeof startProviderServer>[0]

const { signal } = new AbortController()
const slot = Date.UTC(2024, 4, 6, 7)
const alfa = toTestToken(1, {})
const registry = loadRegistry()
const closers: (() => Promise<void>)[] = []

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

async function connect<Source>(
  provider: Pick<Provider<Source, never>, 'connect'>,
  handler: Handler,
  settings: Record<string, string> = { MORALIS_API_KEY: 'secret' },
) {
  const server = await startProviderServer(handler)
  closers.push(server.close)
  const config = parseConfig({
    MORALIS_BASE_URL: server.baseUrl,
    MORALIS_REQUESTS_PER_MINUTE: '60000',
    ETHPLORER_BASE_URL: server.baseUrl,
    ETHPLORER_BNB_BASE_URL: `${server.baseUrl}/bnb`,
    ETHPLORER_REQUESTS_PER_MINUTE: '60000',
    ETHPLORER_REQUESTS_PER_HOUR: '60000',
    ...settings,
  })
  const { http, calls } = createObservedClients()
  return { server, calls, config, http, source: provider.connect({ config, http, db: noDatabase, log: silent }) }
}

const address = (n: number) => `0x${String(n).padStart(40, 'a')}`

describe('moralis', () => {
  const owner = (n: number, more: object = {}) => ({
    owner_address: address(n),
    balance: String(10n ** 24n - BigInt(n)),
    balance_formatted: String(1_000_000 - n),
    usd_value: String(2 * (1_000_000 - n)),
    percentage_relative_to_total_supply: 0.5,
    ...more,
  })
  const owners = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => owner(from + n))
  const page = (result: object[], cursor: string | null = null) => ({ cursor, page: 1, page_size: 100, result })
  /** Returns the owners from `toPage` and 500 as the number of holders. */
  const answering =
    (toPage: (cursor: string | null) => unknown): Handler =>
    (_, response, url) => {
      const isOwners = url.pathname.endsWith('/owners')
      sendJson(response, isOwners ? toPage(url.searchParams.get('cursor')) : { totalHolders: 500 })
    }

  it('sends two requests per token: owners and number of holders', async () => {
    const { server, source } = await connect(
      moralis,
      answering(() => page(owners(0, 100), 'more')),
    )
    const row = await source.fetchHolders(alfa, slot, signal)
    expect(row).toMatchObject({ token: 1, total_holders: 500, top100_share: 50 })
    expect(row?.holders).toHaveLength(100)
    expect(server.requests.map(({ url }) => url.pathname + url.search)).toEqual([
      `/erc20/${alfa.contractAddress}/owners?chain=eth&limit=100&order=DESC`,
      `/erc20/${alfa.contractAddress}/holders?chain=eth`,
    ])
    expect(server.requests[0]?.headers['x-api-key']).toBe('secret')
  })

  it('follows the cursor of shorter pages up to a hundred owners', async () => {
    const pages: Record<string, object> = {
      '': page(owners(0, 60), 'second'),
      second: page(owners(60, 120), 'third'),
    }
    const { server, source } = await connect(
      moralis,
      answering((cursor) => pages[cursor ?? '']),
    )
    const row = await source.fetchHolders(alfa, slot, signal)
    expect(row?.holders).toHaveLength(100)
    expect(row?.holders).toMatchObject({ 99: { address: address(99), amount: 1_000_000 - 99 } })
    expect(server.requests).toHaveLength(3)
  })

  it('stops at the last page, and after a limit of endless pages', async () => {
    const few = await connect(
      moralis,
      answering((cursor) => page(cursor ? owners(2, 3) : owners(0, 2), cursor ? '' : 'x')),
    )
    expect((await few.source.fetchHolders(alfa, slot, signal))?.holders).toHaveLength(3)
    const endless = await connect(
      moralis,
      answering(() => page([], 'again')),
    )
    expect(await endless.source.fetchHolders(alfa, slot, signal)).toBeUndefined()
    expect(endless.server.requests.length).toBeLessThanOrEqual(10)
  })

  it('keeps an unknown value as null', async () => {
    const { source } = await connect(
      moralis,
      answering(() => page([owner(0), owner(1, { usd_value: null })])),
    )
    const row = await source.fetchHolders(alfa, slot, signal)
    expect(row?.holders).toMatchObject([{ amount_usd: 2_000_000 }, { amount_usd: null }])
  })

  it('returns nothing for an empty list and reports an unknown token', async () => {
    const empty = await connect(
      moralis,
      answering(() => page([])),
    )
    expect(await empty.source.fetchHolders(alfa, slot, signal)).toBeUndefined()
    const unknown = await connect(moralis, (_, response) => sendJson(response, { message: 'No token found' }, 404))
    await expect(unknown.source.fetchHolders(alfa, slot, signal)).rejects.toMatchObject({ code: 'provider_unknown' })
  })

  it('reports a rejected request as rejected, not as an unknown token', async () => {
    const { source } = await connect(moralis, (_, response) =>
      sendJson(response, { message: ['chain must be a valid enum value'] }, 400),
    )
    await expect(source.fetchHolders(alfa, slot, signal)).rejects.toMatchObject({ code: 'provider_rejected' })
  })

  it('lasts a day on a free plan: tokens take turns within its units', async () => {
    const upstream = await createUpstream({ registry, now: () => slot, plan: 'free' })
    closers.push(upstream.close)
    const { config, http, source } = await connect(moralis, () => undefined, {
      ...toStandInSettings(upstream.url),
      MORALIS_UNITS_PER_DAY: '40000',
    })
    expect(source.tokensPerSlot).toBe(10)
    const [first] = holders.connect({ config, http, db: noDatabase, log: silent })
    const entities = registry.tokens.filter(({ chain, live }) => chain === 'ethereum' && live)
    const seen = new Set<unknown>()
    for (let hour = 0; hour < 24; hour += 1) {
      const { run, refused } = toRun({ entities, slot: slot + hour * 3_600_000 })
      for (const row of (await first?.collect(run)) ?? []) seen.add(Reflect.get(row, 'token'))
      expect(refused.size).toBe(0)
    }
    expect(seen.size).toBe(entities.length)
    expect(upstream.requests.count('moralis')).toBeLessThanOrEqual(480)
  })

  it("stops at its own budget and at the provider's until midnight", async () => {
    const upstream = await createUpstream({ registry, now: () => slot, plan: 'free' })
    closers.push(upstream.close)
    const requestAll = async (unitsPerDay: string) => {
      const settings = { ...toStandInSettings(upstream.url), MORALIS_UNITS_PER_DAY: unitsPerDay }
      const { source } = await connect(moralis, () => undefined, settings)
      const [uni] = registry.tokens.filter(({ symbol }) => symbol === 'UNI')
      for (let requestCount = 0; requestCount < 450; requestCount += 1)
        await source.fetchHolders(uni ?? alfa, slot, signal)
    }
    await expect(requestAll('1000')).rejects.toMatchObject({
      code: 'provider_exhausted',
      message: expect.stringContaining('20 requests of a day'),
    })
    expect(upstream.requests.count('moralis')).toBe(20)
    await expect(requestAll('80000')).rejects.toMatchObject({
      code: 'provider_exhausted',
      message: expect.stringContaining('free-plan-daily'),
    })
    expect(upstream.requests.count('moralis')).toBe(801)
  })

  it("waits for the next day if the day's units are exhausted", async () => {
    const message = 'Validation service blocked: Your plan: free-plan-daily total included usage has been consumed'
    const { source } = await connect(moralis, (_, response) => sendJson(response, { message }, 401))
    const failure = await source.fetchHolders(alfa, slot, signal).catch((reason: unknown) => reason)
    expect(failure).toMatchObject({ code: 'provider_exhausted' })
    const { retryAfterMs } = failure as { retryAfterMs: number }
    expect((Date.now() + retryAfterMs) % 86_400_000).toSatisfy((ms: number) => ms < 60_000 || ms > 86_340_000)
  })

  it('is rejected without a key before a request is sent', async () => {
    const { server, source } = await connect(
      moralis,
      answering(() => page([])),
      {},
    )
    await expect(source.fetchHolders(alfa, slot, signal)).rejects.toMatchObject({
      code: 'provider_unconfigured',
      message: expect.stringContaining('MORALIS_API_KEY'),
    })
    expect(server.requests).toHaveLength(0)
  })

  it.each([
    [401, 'provider_rejected', 1],
    [403, 'provider_rejected', 1],
    [429, 'provider_unavailable', 4],
    [500, 'provider_unavailable', 4],
  ])('reports status %i as %s after %i attempts, without the key', async (status, code, tries) => {
    const { server, source } = await connect(moralis, (_, response) =>
      sendJson(response, { message: 'not with secret' }, status),
    )
    const error = await source.fetchHolders(alfa, slot, signal).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code })
    expect(String(error)).not.toContain('secret')
    expect(String(error).includes('MORALIS_API_KEY')).toBe(status < 429)
    expect(server.requests).toHaveLength(tries)
  })

  it('reports a response without a list as malformed', async () => {
    const { source } = await connect(moralis, (_, response) => sendJson(response, { result: 'soon' }))
    await expect(source.fetchHolders(alfa, slot, signal)).rejects.toMatchObject({ code: 'provider_malformed' })
  })
})

describe('ethplorer', () => {
  const list = { holders: [{ address: address(1), balance: 3.5e26, rawBalance: `35${'0'.repeat(25)}`, share: 35 }] }
  const info = { decimals: '18', holdersCount: 1_023_500, price: { rate: 2, currency: 'USD' } }
  const answering =
    (top: unknown, about: unknown = info): Handler =>
    (_, response, url) =>
      sendJson(response, url.pathname.includes('/getTopTokenHolders/') ? top : about)
  const error = (code: number, message = 'no') => ({ error: { code, message } })

  it('uses the free key by default, and the sister host for BNB Chain', async () => {
    const { server, source } = await connect(ethplorer, answering(list))
    expect(await source.fetchHolders(alfa, slot, signal)).toMatchObject({
      token: 1,
      total_holders: 1_023_500,
      top100_share: 35,
      holders: [{ address: address(1), amount: 350_000_000, amount_usd: 700_000_000, share: 35 }],
    })
    await source.fetchHolders({ ...alfa, chain: 'bnb' }, slot, signal)
    expect(server.requests.map(({ url }) => url.pathname + url.search)).toEqual([
      `/getTopTokenHolders/${alfa.contractAddress}?apiKey=freekey&limit=100`,
      `/getTokenInfo/${alfa.contractAddress}?apiKey=freekey`,
      `/bnb/getTopTokenHolders/${alfa.contractAddress}?apiKey=freekey&limit=100`,
      `/bnb/getTokenInfo/${alfa.contractAddress}?apiKey=freekey`,
    ])
  })

  it('returns null values if it has no price', async () => {
    const { source } = await connect(ethplorer, answering(list, { ...info, price: false }))
    expect((await source.fetchHolders(alfa, slot, signal))?.holders).toMatchObject([{ amount_usd: null }])
  })

  it('returns nothing for an empty list, with one request', async () => {
    const { server, source } = await connect(ethplorer, answering({ holders: [] }))
    expect(await source.fetchHolders(alfa, slot, signal)).toBeUndefined()
    expect(server.requests).toHaveLength(1)
  })

  it.each([104, 150])('reports error %i as an unknown token, with any status', async (code) => {
    for (const status of [200, 400, 404]) {
      const { source } = await connect(ethplorer, (_, response) => sendJson(response, error(code), status))
      await expect(source.fetchHolders(alfa, slot, signal)).rejects.toMatchObject({ code: 'provider_unknown' })
    }
  })

  it.each([
    [200, 429, 'provider_unavailable', 1],
    [429, 429, 'provider_unavailable', 4],
    [200, 1, 'provider_rejected', 1],
    [401, 1, 'provider_rejected', 1],
    [503, 1, 'provider_unavailable', 4],
  ])('reports status %i with error %i as %s after %i attempts', async (status, code, expected, tries) => {
    const { server, source } = await connect(ethplorer, (_, response) => sendJson(response, error(code), status))
    const failure = await source.fetchHolders(alfa, slot, signal).catch((reason: unknown) => reason)
    expect(failure).toMatchObject({ code: expected })
    expect(String(failure).includes('ETHPLORER_API_KEY')).toBe(expected === 'provider_rejected')
    expect(server.requests).toHaveLength(tries)
  })

  it("uses the status of a gateway's HTML page", async () => {
    const { source } = await connect(ethplorer, (_, response) => {
      response.writeHead(403, { 'content-type': 'text/html' }).end('<html>no</html>')
    })
    await expect(source.fetchHolders(alfa, slot, signal)).rejects.toMatchObject({ code: 'provider_rejected' })
  })
})

describe('holders job', () => {
  it('uses each provider for its chains', async () => {
    const { config, http } = await connect(moralis, (_, response) => sendJson(response, {}))
    const collectors = holders.connect({ config, http, db: noDatabase, log: silent })
    const covering = (chain: string) =>
      collectors.filter(({ covers }) => covers({ ...alfa, chain } as typeof alfa)).map(({ provider }) => provider)
    expect(covering('ethereum')).toEqual(['moralis', 'ethplorer'])
    expect(covering('bnb')).toEqual(['moralis', 'ethplorer'])
    expect(covering('base')).toEqual(['moralis'])
    expect(covering('solana')).toEqual([])
  })

  it('requests no more tokens than the free key permits in an hour', async () => {
    const { config, http, server } = await connect(
      moralis,
      (_, response, url) => sendJson(response, url.pathname.includes('Info') ? { holdersCount: 1 } : { holders: [] }),
      { ETHPLORER_REQUESTS_PER_HOUR: '16' },
    )
    const entities = Array.from({ length: 92 }, (_, key) => toTestToken(key, {}))
    const { run, refused, putOff } = toRun({ entities, slot })
    const [, second] = holders.connect({ config, http, db: noDatabase, log: silent })
    expect(await second?.collect(run)).toEqual([])
    expect(new Set([...refused.values()].map(({ code }) => code))).toEqual(new Set(['provider_unavailable']))
    expect(server.requests).toHaveLength(8)
    expect(putOff).toHaveLength(84)
  })
})
