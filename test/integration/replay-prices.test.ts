import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Token } from '../../shared/registry/entities.ts'
import { releaseSuspect } from '../../workers/commands/suspect-prices.ts'
import type { Job } from '../../workers/job/define-job.ts'
import prices from '../../workers/jobs/prices.ts'
import { findSuspects } from '../../workers/prices/state.ts'
import { replay } from '../../workers/run/runner.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { emptyLedger, readLedger, runFor } from '../support/answered.ts'
import { loadFewDaos } from '../support/few-daos.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const SLOT_MS = 300_000
const START = Date.parse('2024-05-06T07:05:00Z')

type Price = number | null | 'failing'
/** The prices of a token from CoinMarketCap, CoinGecko and DefiLlama; null if a provider has none. */
type Says = readonly [coinmarketcap: Price, coingecko: Price, defillama: Price]

const says: Says[] = []
let requests = 0
let pipeline: Pipeline
let server: Awaited<ReturnType<typeof startProviderServer>>
let tokens: readonly Token[]

/** The id of a token in requests to CoinGecko, which has its own ids, and to DefiLlama, which has contracts. */
const idOf = ({ coingeckoId, contractAddress }: Token, place: number) =>
  place === 1 ? String(coingeckoId) : contractAddress

beforeAll(async () => {
  server = await startProviderServer((_, response, url) => {
    requests += 1
    const at = new Date(pipeline.clock.now - 1_000)
    const place = url.pathname.startsWith('/cmc/') ? 0 : url.pathname.startsWith('/coins/') ? 1 : 2
    if (says.some((prices) => prices[place] === 'failing')) return sendJson(response, { error: 'broken' }, 500)
    const known = tokens.flatMap((token, index) => {
      const price = says[index]?.[place] ?? null
      const isRequested = place === 0 || decodeURIComponent(url.href).includes(idOf(token, place))
      return price === null || !isRequested ? [] : [{ token, price }]
    })
    if (place === 0) {
      const toQuote = (price: Price) => ({ USD: { price, volume_24h: 5, last_updated: at.toISOString() } })
      return sendJson(response, { data: known.map(({ token, price }) => ({ id: token.cmcId, quote: toQuote(price) })) })
    }
    if (place === 1) {
      const last_updated = at.toISOString()
      return sendJson(
        response,
        known.map(({ token, price }) => ({ id: token.coingeckoId, current_price: price, last_updated })),
      )
    }
    const names = (decodeURIComponent(url.pathname).split('/').at(-1) ?? '').split(',')
    const coins = known.flatMap(({ token, price }) =>
      names
        .filter((name) => name.includes(idOf(token, place)))
        .map((name) => [name, { price, timestamp: Math.floor(at.getTime() / 1000), confidence: 0.99 }]),
    )
    sendJson(response, { coins: Object.fromEntries(coins) })
  })
  const settings = {
    COINMARKETCAP_BASE_URL: `${server.baseUrl}/cmc`,
    COINGECKO_BASE_URL: server.baseUrl,
    DEFILLAMA_COINS_BASE_URL: `${server.baseUrl}/llama`,
  }
  const registry = loadFewDaos()
  tokens = registry.tokens
    .filter(({ live, livePrice }) => live && livePrice)
    .filter((one) => one.cmcId !== null && one.coingeckoId !== null && one.contractAddress !== '')
    .slice(0, 2)
  pipeline = await createPipeline({ now: START, settings, registry: { ...registry, tokens } })
})
afterAll(async () => {
  await pipeline?.close()
  await server?.close()
})

const TABLES = [
  'token_prices',
  'token_quotes',
  'token_price_rollups',
  'price_sources',
  'price_checks',
  'suspect_prices',
]
/** Removes everything that is stored of prices. */
async function forgetAll() {
  await emptyLedger(pipeline)
  for (const table of [...TABLES, 'raw_runs', 'corrections'])
    await pipeline.database.db.command({ name: 'forget', sql: `TRUNCATE TABLE ${table}` })
}
beforeEach(async () => {
  await forgetAll()
  pipeline.clock.now += 2 * 3_600_000 - ((pipeline.clock.now - START) % 3_600_000)
})

/** Collects the next slot of both tokens. */
async function collectNext(first: Says, second: Says = [7, 7, 7], job: Job = prices) {
  says.splice(0, 2, first, second)
  pipeline.clock.now += SLOT_MS
  await runFor(pipeline, job, { kind: 'slot', slot: pipeline.clock.now }, { ids: tokens.map(({ id }) => id) })
}

const range = () => ({ from: pipeline.clock.now - 86_400_000, to: pipeline.clock.now + SLOT_MS })
const decode = () => replay(prices, pipeline.context, { range: range() })
const correct = (to = range().to, db = pipeline.context.db) => {
  const { redis, recomputation } = pipeline.context
  const apply = { redis, recomputation, now: () => pipeline.clock.now }
  return replay(prices, { ...pipeline.context, db }, { range: { ...range(), to }, apply })
}

/** The job with a decoder that changes the rows of CoinMarketCap. */
const withFault = (change: (row: Record<string, unknown>) => object | undefined): Job => ({
  ...prices,
  connect: (context) =>
    prices.connect(context).map((collector) => ({
      ...collector,
      collect: async (run) => {
        const rows = await collector.collect(run)
        return collector.provider === 'coinmarketcap' ? rows.flatMap((row) => change({ ...row }) ?? []) : rows
      },
    })),
})

/** The job with a decoder that takes earlier times for the prices of CoinMarketCap. */
const withDelay = (ms: number) =>
  withFault((row) => ({ ...row, observed_at: new Date(Date.parse(String(row.observed_at)) - ms).toISOString() }))

const read = (sql: string) =>
  pipeline.database.db.rows({ name: 'stored', sql, schema: z.record(z.string(), z.unknown()) })
/** All that is stored of prices, without the times of writing. */
const readAll = () =>
  Promise.all([
    read('SELECT * FROM token_prices FINAL ORDER BY token, observed_at'),
    read('SELECT token, interval_seconds, bucket_at, price, volume_24h FROM token_price_rollups FINAL ORDER BY ALL'),
    read('SELECT token, observed_at, provider, agreement FROM price_sources FINAL ORDER BY token, observed_at'),
    read('SELECT token, observed_at, price, volume_24h FROM token_quotes FINAL ORDER BY token'),
    read(`SELECT token, exclusions FROM price_checks FINAL ORDER BY token, slot DESC LIMIT 1 BY token`),
    read(`SELECT token, slot, provider, price FROM suspect_prices FINAL WHERE state != 'released' ORDER BY ALL`),
  ])
const firstPrices = async () => {
  const rows = await read(`SELECT price FROM token_prices FINAL WHERE token = ${tokens[0]?.key} ORDER BY observed_at`)
  return rows.map(({ price }) => price)
}

describe('replay of prices', () => {
  it('decides the same again: excluded, failing, late, withheld, released and removed prices', async () => {
    await collectNext([2, 2, 2])
    await collectNext([20, 2.01, 2])
    for (const price of [2.001, 2.002, 2.003]) await collectNext([price, price + 0.001, price], [21, null, null])
    await collectNext([2.5, 2, null], [21, null, null])
    await collectNext([2.51, 2.5, null], [21, null, null])
    await collectNext(['failing', 2.52, 2.52])
    await collectNext([2.52, 2.52, 2.52], [7.1, 7.1, null])
    await collectNext([2.53, 2.53, 2.53], [7.1, 7.1, null])
    // The audit of the hour finds a difference, and the next slot confirms it.
    while (pipeline.clock.now % 3_600_000 !== 0) await collectNext([2.73, 2.53, 2.53])
    await collectNext([2.73, 2.54, 2.53])
    const states = await read('SELECT DISTINCT toString(state) AS state FROM suspect_prices FINAL ORDER BY state')
    expect(states.map(({ state }) => state)).toEqual(['released', 'suspect', 'taken_out'])
    const [sent, before] = [requests, await readAll()]
    const { rows, differences } = await decode()
    expect(differences).toEqual([])
    expect(rows).toBeGreaterThan(15)
    expect((await correct()).differences).toEqual([])
    expect(await readAll()).toEqual(before)
    // The last slot has removed a price of the slot before.
    expect((await correct(pipeline.clock.now)).differences).toEqual([])
    expect(await readAll()).toEqual(before)
    expect(requests).toBe(sent)
  })

  it.each([
    ['between two runs', 2 * SLOT_MS],
    ['in the minute of a run', 30_000],
  ])('keeps a withheld price that the operator has released %s', async (_, delay) => {
    const [token] = tokens
    if (token === undefined) throw new Error('there is no token')
    const findOwn = () => findSuspects(pipeline.database.db, { tokens: [token.key], ...range() })
    await collectNext([2, null, null])
    await collectNext([4, null, null])
    const [suspect] = await findOwn()
    if (suspect === undefined) throw new Error('no price is suspect')
    const { config, context, clock } = pipeline
    clock.now += delay
    const stores = { db: context.db, redis: context.redis, prefix: config.redis.prefix, now: () => clock.now }
    await releaseSuspect(stores, config, token, suspect)
    expect((await correct()).differences).toEqual([])
    expect(await firstPrices()).toEqual([2, 4])
    expect(await findOwn()).toMatchObject([{ price: 4, state: 'released' }])
  })

  it('removes the coverage of a removed price', async () => {
    const [token] = tokens
    if (token === undefined) throw new Error('there is no token')
    const countStored = async () => {
      const rows = await readLedger(pipeline, prices, [token])
      return rows.flatMap(({ state, buckets }) => (state === 'stored' ? [buckets] : []))
    }
    await collectNext([2, null, null])
    // The slot between both is missed, and the faulty decoder stores a price of that time.
    pipeline.clock.now += SLOT_MS
    await collectNext([2.01, null, null], [7, null, null], withDelay(SLOT_MS))
    expect(await countStored()).toEqual([2])
    const { differences } = await correct()
    expect(differences.map(({ kind }) => kind).toSorted()).toEqual(['added', 'added', 'removed', 'removed'])
    expect(await firstPrices()).toEqual([2, 2.01])
    expect(await countStored()).toEqual([2])
  })

  it('repairs prices for which a faulty decoder made the rule take another provider', async () => {
    const faulty = withFault((row) =>
      Number(row.token) === tokens[0]?.key ? { ...row, price: Number(row.price) * 2 } : row,
    )
    await collectNext([2, 2.01, 2])
    // The second token is requested from the other providers, too, together with the first one.
    await collectNext([2.001, 2.011, 2.001], [9, 9.01, 9], faulty)
    await collectNext([2.002, 2.012, 2.002], [9, 9.01, 9], faulty)
    await collectNext([2.003, 2.013, 2.003], [9, 9.01, 9])
    expect(await firstPrices()).toEqual([2, 2.011, 2.012, 2.013])
    const sent = requests
    const { differences } = await correct()
    expect(differences.map(({ kind, entity }) => [kind, entity])).toEqual(
      Array.from({ length: 3 }, () => ['changed', tokens[0]?.key]),
    )
    expect(await firstPrices()).toEqual([2, 2.001, 2.002, 2.003])
    expect((await decode()).differences).toEqual([])
    expect(requests).toBe(sent)
    const [, rollups, sources, , checks, suspects] = await readAll()
    expect(rollups?.map(({ price }) => price)).not.toContain(2.011)
    const own = sources?.filter(({ token }) => Number(token) === tokens[0]?.key)
    expect(own?.map(({ provider }) => provider)).toEqual(Array(4).fill('coinmarketcap'))
    expect(checks?.find(({ token }) => Number(token) === tokens[0]?.key)?.exclusions ?? []).toEqual([])
    expect(suspects).toEqual([])
    const corrections = await read('SELECT entity FROM corrections FINAL')
    expect(corrections).toHaveLength(3)
  })

  it('repairs a wrong price that the rule accepted, and values that only the faulty decoder had or lost', async () => {
    await collectNext([2, 2, 2])
    await collectNext(
      [2.01, 2, 2],
      [7, 7, 7],
      withFault((row) => ({ ...row, price: Number(row.price) * 1.03 })),
    )
    await collectNext(
      [2.01, 2, 2],
      [7, 7, 7],
      withFault((row) => ({ ...row, volume_24h: null })),
    )
    await collectNext(
      [2.02, 2, 2],
      [7, 7, 7],
      withFault((row) => ({ ...row, total_supply: 1e6, market_cap: 5e6 })),
    )
    const { differences } = await correct()
    expect(differences.map(({ members }) => members.join(', '))).toEqual([
      ...Array(2).fill('price'),
      ...Array(2).fill('volume_24h'),
      ...Array(2).fill('market_cap, total_supply'),
    ])
    expect((await decode()).differences).toEqual([])
    const rows = await read('SELECT price, volume_24h, market_cap FROM token_prices FINAL ORDER BY token, observed_at')
    expect(new Set(rows.map(({ volume_24h, market_cap }) => `${volume_24h} ${market_cap}`))).toEqual(
      new Set(['5 null']),
    )
    expect(rows.map(({ price }) => price).toSorted()).toEqual([2, 2.01, 2.01, 2.02, 7, 7, 7, 7])
  })

  it('adds prices that a faulty decoder has dropped, and removes prices with wrong times', async () => {
    await collectNext([2, 2, 2])
    await collectNext(
      [2.01, null, null],
      [7, 7, 7],
      withFault((row) => (row.token === tokens[0]?.key ? undefined : row)),
    )
    await collectNext([2.02, 2, 2], [7, 7, 7], withDelay(1_000))
    const { differences } = await correct()
    expect(differences.map(({ kind }) => kind).toSorted()).toEqual(['added', 'added', 'added', 'removed', 'removed'])
    expect(await firstPrices()).toEqual([2, 2.01, 2.02])
    expect((await decode()).differences).toEqual([])
  })

  it('removes many prices with few statements', async () => {
    // A replay corrects a day at a time.
    const [slots, begin] = [15, (Math.floor(pipeline.clock.now / 86_400_000) + 1) * 86_400_000]
    const collectAll = async (job: Job) => {
      pipeline.clock.now = begin
      for (let slot = 0; slot < slots; slot += 1) {
        const price = 2 + slot / 100
        await collectNext([price, price, price], [7, 7, 7], job)
      }
    }
    await collectAll(prices)
    const truth = await readAll()
    await forgetAll()
    await collectAll(withDelay(1_000))
    const { db } = pipeline.context
    const names: string[] = []
    const { differences } = await correct(range().to, {
      ...db,
      command: async (statement) => {
        names.push(statement.name)
        await db.command(statement)
      },
    })
    expect(differences.filter(({ kind }) => kind === 'removed')).toHaveLength(slots * tokens.length)
    expect(names.filter((name) => name === 'take-out-price')).toHaveLength(5)
    expect(await readAll()).toEqual(truth)
  })
})
