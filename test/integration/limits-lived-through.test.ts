import { setMaxListeners } from 'node:events'
import type { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { parseConfig } from '../../shared/config/config.ts'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createHttpClients, type QueueClassClients } from '../../workers/http/client.ts'
import holders from '../../workers/jobs/holders.ts'
import { openCoinGecko } from '../../workers/providers/coingecko/client.ts'
import { coingecko } from '../../workers/providers/coingecko/prices.ts'
import { openCoinMarketCap } from '../../workers/providers/coinmarketcap/client.ts'
import { coinmarketcap } from '../../workers/providers/coinmarketcap/prices.ts'
import { openMoralis } from '../../workers/providers/moralis/client.ts'
import { moralis } from '../../workers/providers/moralis/holders.ts'
import { createTestConfig } from '../support/database.ts'
import { createMovedTime, type MovedTime } from '../support/moved-time.ts'
import { noDatabase } from '../support/no-database.ts'
import { toRun } from '../support/run.ts'
import { silent } from '../support/silent.ts'
import { REAL_LIMITS } from '../upstream/rate-limit.ts'
import { createUpstream, type Upstream } from '../upstream/server.ts'
import { toStandInSettings } from '../upstream/settings.ts'

const START = Date.parse('2024-05-06T00:00:00Z')
const MINUTE = 60_000
const never = new AbortController().signal
setMaxListeners(0, never)
const registry = loadRegistry()

/** Only the URLs of the stand-in's settings: rates and plans are the shipped ones. */
const toHosts = (url: string) =>
  Object.fromEntries(Object.entries(toStandInSettings(url)).filter(([name]) => !/_PER_|UNITS|API_KEY/.test(name)))

let upstream: Upstream
let time: MovedTime
let connections: Redis[]
beforeEach(async () => {
  connections = []
  upstream = await createUpstream({ registry, now: () => Date.now(), limits: REAL_LIMITS })
})
afterEach(async () => {
  time.end()
  for (const redis of connections) redis.disconnect()
  await upstream.close()
})

/** A worker with the shipped limits, and the statuses of its responses. */
function startWorker(
  settings: Readonly<Record<string, string>>,
  sharedBy?: { readonly redis: Redis; readonly prefix: string },
) {
  const config = parseConfig({ ...toHosts(upstream.url), ...settings })
  const statuses: number[] = []
  const record = ({ status }: { status: number }) => {
    time.record()
    statuses.push(status)
  }
  const { historyShare } = config.worker
  const http = createHttpClients({ log: silent, historyShare, record, ...(sharedBy && { sharedBy }) })
  const context = (clients: QueueClassClients | QueueClassClients['history']) => ({
    config,
    http: clients,
    db: noDatabase,
    log: silent,
    now: () => Date.now(),
  })
  return { config, http, statuses, live: context(http), history: context(http.history) }
}

const countRefused = (statuses: readonly number[]) => statuses.filter((status) => status >= 400).length

describe('limits per minute', () => {
  const ids = registry.tokens.flatMap(({ coingeckoId }) => coingeckoId ?? []).slice(0, 40)

  it('are never exceeded by a worker with the shipped settings', async () => {
    time = createMovedTime(START)
    const worker = startWorker({})
    const client = openCoinGecko(worker.live)
    await time.live(Promise.all(ids.map((id) => client.json({ path: `/coins/${id}`, signal: never }))))
    expect(worker.statuses).toEqual(ids.map(() => 200))
    expect(Date.now() - START).toBeGreaterThan((ids.length / 5 - 1) * MINUTE)
    // At least half as fast as the provider permits.
    expect(Date.now() - START).toBeLessThan((ids.length / 5) * 2 * MINUTE)
  })

  it('are never exceeded by workers that share them', async () => {
    const config = createTestConfig()
    connections = [createRedis(config.redis.url, silent), createRedis(config.redis.url, silent)]
    await Promise.all(connections.map((redis) => redis.ping()))
    time = createMovedTime(START)
    // Idle connections may break at any time.
    upstream.faults.set('coinmarketcap', { kind: 'reset' }, { times: 1 })
    const workers = connections.map((redis) => {
      time.applyTo(redis)
      return startWorker({ COINMARKETCAP_API_KEY: 'demo' }, { redis, prefix: config.redis.prefix })
    })
    const asking = workers.flatMap((worker) => {
      const { fetch } = openCoinMarketCap(worker.live)
      const path = '/v2/cryptocurrency/info'
      return Array.from({ length: 45 }, () => fetch(path, { id: '7083' }, z.unknown(), never))
    })
    await time.live(Promise.all(asking))
    expect(workers.map(({ statuses }) => statuses.length)).toEqual([45, 45])
    expect(workers.map(({ statuses }) => countRefused(statuses))).toEqual([0, 0])
    expect(Date.now() - START).toBeGreaterThan(2 * MINUTE)
  })

  it("stop requests after a few rejections if the provider's limit is lower than configured", async () => {
    time = createMovedTime(START)
    const worker = startWorker({ COINGECKO_REQUESTS_PER_MINUTE: '600' })
    const source = coingecko.connect(worker.live)
    const testRun = toRun<Token>({ slot: START })
    const tokens = registry.tokens.filter(({ coingeckoId }) => coingeckoId !== null).slice(0, 40)
    const range = { from: START - DAY_MS, to: START, interval: '1h' } as const
    await time.live(source.fetchHistory(tokens, range, testRun.run))
    // Five succeed. Then three fail in a row, with four attempts each.
    expect(worker.statuses.filter((status) => status === 200)).toHaveLength(5)
    expect(countRefused(worker.statuses)).toBe(3 * 4)
    expect(testRun.refused.size).toBe(35)
    expect(new Set([...testRun.refused.values()].map(({ code }) => code))).toEqual(new Set(['provider_unavailable']))
  })
})

describe('limits per day', () => {
  it('reserve calls for every hour regardless of history, and reset at midnight', async () => {
    time = createMovedTime(START)
    const worker = startWorker({ MORALIS_API_KEY: 'demo' })
    const [own, past] = [moralis.connect(worker.live), openMoralis(worker.history)]
    const tokens = registry.tokens.filter(({ chain }) => chain === 'ethereum').slice(0, own.tokensPerSlot)
    const repair = async () => {
      const path = `/erc20/${tokens[0]?.contractAddress}/holders`
      for (;;) await past.json({ path, query: { chain: 'eth' }, signal: never })
    }
    const perDay: number[] = []
    for (let hour = 0; hour < 48; hour += 1) {
      await time.moveTo(START + hour * HOUR_MS)
      // History sends the first requests, up to its share.
      const reason = await time.live(repair().catch((error: unknown) => error))
      expect(reason).toMatchObject({ code: 'provider_exhausted' })
      const found = await time.live(Promise.all(tokens.map((token) => own.fetchHolders(token, Date.now(), never))))
      expect(found.filter((row) => row === undefined)).toEqual([])
      if (hour % 24 === 23) perDay.push(worker.statuses.splice(0).length)
    }
    expect(tokens).toHaveLength(10)
    expect(perDay[0]).toBeGreaterThan(24 * 20)
    expect(perDay[0]).toBeLessThanOrEqual(800)
    expect(perDay[1]).toBe(perDay[0])
  })

  it('stop requests until midnight if another program exhausted them', async () => {
    await upstream.close()
    upstream = await createUpstream({ registry, now: () => Date.now(), limits: { moralis: { perDay: 6 } } })
    time = createMovedTime(START + HOUR_MS)
    const worker = startWorker({ MORALIS_API_KEY: 'demo' })
    const [collector] = holders.connect(worker.live)
    const entities = holders.entities(registry).filter((token) => collector?.covers(token))
    const testRun = toRun({ entities, slot: START + HOUR_MS })
    await time.live(collector?.collect(testRun.run) ?? expect.unreachable())
    expect(worker.statuses.filter((status) => status === 200)).toHaveLength(6)
    // A rejection for each concurrent request.
    expect(countRefused(worker.statuses)).toBeLessThanOrEqual(4)
    const reasons = [...testRun.refused.values()]
    expect(new Set(reasons.map(({ code }) => code))).toEqual(new Set(['provider_exhausted']))
    expect(reasons.every(({ retryAfterMs = 0 }) => retryAfterMs > 22.9 * HOUR_MS && retryAfterMs <= 23 * HOUR_MS)).toBe(
      true,
    )
  })
})

describe('day of a monthly plan', () => {
  it('has prices in every slot, regardless of history', async () => {
    time = createMovedTime(START)
    const worker = startWorker({ COINMARKETCAP_API_KEY: 'demo' })
    const [own, past] = [coinmarketcap.connect(worker.live), coinmarketcap.connect(worker.history)]
    const tokens = registry.tokens.filter(({ cmcId }) => cmcId !== null).slice(0, 100)
    const range = { from: START - 2 * DAY_MS, to: START, interval: '5m' } as const
    let slots = 0
    for (let slot = START; slot < START + DAY_MS; slot += 5 * MINUTE) {
      await time.moveTo(slot)
      const expected = past.fetchHistory(tokens, range, toRun<Token>({ slot }).run).catch((error: unknown) => error)
      const testRun = toRun<Token>({ slot })
      const [rows] = await time.live(Promise.all([own.fetchLatest(tokens, testRun.run), expected]))
      if (rows.length > 90 && testRun.refused.size === 0) slots += 1
    }
    expect(slots).toBe(288)
    expect(countRefused(worker.statuses)).toBe(0)
    expect(worker.statuses.length).toBeGreaterThan(288)
    expect(worker.statuses.length).toBeLessThanOrEqual(322)
  })
})
