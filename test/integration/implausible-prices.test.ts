import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Token } from '../../shared/registry/entities.ts'
import { readFailing } from '../../shared/store/store.ts'
import { releaseSuspect } from '../../workers/commands/suspect-prices.ts'
import prices from '../../workers/jobs/prices.ts'
import { findSuspects } from '../../workers/prices/state.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { emptyLedger, readLedger, runFor } from '../support/answered.ts'
import { loadFewDaos } from '../support/few-daos.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const SLOT_MS = 300_000
const START = Date.parse('2024-05-06T07:05:00Z')

type Price = number | null | 'failing'

/** The price from each provider; null if it has none. */
interface Says {
  coinmarketcap: Price
  coingecko: Price
  defillama: Price
}

const NOTHING: Says = { coinmarketcap: null, coingecko: null, defillama: null }
const says = { ...NOTHING }
const asked: string[] = []

let pipeline: Pipeline
let server: Awaited<ReturnType<typeof startProviderServer>>
let token: Token
beforeAll(async () => {
  server = await startProviderServer((_, response, url) => {
    const at = new Date(pipeline.clock.now - 1_000)
    const provider = url.pathname.startsWith('/cmc/')
      ? 'coinmarketcap'
      : url.pathname.startsWith('/coins/')
        ? 'coingecko'
        : 'defillama'
    const price = says[provider]
    asked.push(provider)
    if (price === 'failing') return sendJson(response, { error: 'broken' }, 500)
    if (provider === 'coinmarketcap') {
      const quote = { USD: { price, volume_24h: 5, last_updated: at.toISOString() } }
      return sendJson(response, { data: price === null ? [] : [{ id: token.cmcId, quote }] })
    }
    if (provider === 'coingecko') {
      const coin = { id: token.coingeckoId, current_price: price, last_updated: at.toISOString() }
      return sendJson(response, price === null ? [] : [coin])
    }
    const coin = { price, timestamp: Math.floor(at.getTime() / 1000), confidence: 0.99 }
    const name = decodeURIComponent(url.pathname).split('/').at(-1) ?? ''
    sendJson(response, { coins: price === null ? {} : { [name]: coin } })
  })
  const settings = {
    COINMARKETCAP_BASE_URL: `${server.baseUrl}/cmc`,
    COINGECKO_BASE_URL: server.baseUrl,
    DEFILLAMA_COINS_BASE_URL: `${server.baseUrl}/llama`,
  }
  const registry = loadFewDaos()
  const found = registry.tokens.find(({ live, livePrice, cmcId, coingeckoId }) => {
    return live && livePrice && cmcId !== null && coingeckoId !== null
  })
  if (found === undefined) throw new Error('there is no token with both ids')
  token = found
  // The failing providers of a slot are known if all of its tokens were requested.
  pipeline = await createPipeline({ now: START, settings, registry: { ...registry, tokens: [token] } })
})
afterAll(async () => {
  await pipeline?.close()
  await server?.close()
})
beforeEach(async () => {
  await emptyLedger(pipeline)
  const tables = [
    'token_prices',
    'token_quotes',
    'token_price_rollups',
    'price_sources',
    'price_checks',
    'suspect_prices',
    'history_changes',
  ]
  for (const table of tables) await pipeline.database.db.command({ name: 'forget', sql: `TRUNCATE TABLE ${table}` })
  // Every test begins five minutes after a full hour, so that the next audit is 55 minutes away.
  pipeline.clock.now += 3_600_000 - ((pipeline.clock.now - START) % 3_600_000)
  Object.assign(says, NOTHING)
})

/** Collects the next slot with these prices. */
function collectNext(coinmarketcap: Price, coingecko: Price = null, defillama: Price = null) {
  Object.assign(says, { coinmarketcap, coingecko, defillama })
  pipeline.clock.now += SLOT_MS
  return recollect()
}
function recollect() {
  asked.length = 0
  return runFor(pipeline, prices, { kind: 'slot', slot: pipeline.clock.now }, { ids: [token.id] })
}

const read = <T extends z.ZodType>(sql: string, schema: T) => pipeline.database.db.rows({ name: 'stored', sql, schema })

async function readPrices(): Promise<number[]> {
  const rows = await read('SELECT price FROM token_prices FINAL ORDER BY observed_at', z.object({ price: z.number() }))
  return rows.map(({ price }) => price)
}
const source = z.object({ provider: z.string(), agreement: z.string(), checked_with: z.array(z.string()) })
const readSources = () =>
  read('SELECT provider, agreement, checked_with FROM price_sources FINAL ORDER BY observed_at', source)
const readReasons = async () => (await readLedger(pipeline, prices, [token])).filter(({ state }) => state === 'failed')
const readSuspects = () =>
  read(
    'SELECT provider, price, is_withheld, state FROM suspect_prices FINAL ORDER BY slot, provider',
    z.object({ provider: z.string(), price: z.number(), is_withheld: z.boolean(), state: z.string() }),
  )

describe('price of one wrong provider', () => {
  it.each([2, 10, 0.1, 75, 1e6])(
    'times %d is not stored: the slot has the price of the second provider',
    async (factor) => {
      await collectNext(2, 2, 2)
      expect(await collectNext(2 * factor, 2.01, 2.02)).toMatchObject({ rows: 1, uncovered: 0 })
      expect(asked).toEqual(['coinmarketcap', 'coingecko', 'defillama'])
      expect(await readPrices()).toEqual([2, 2.01])
      expect((await readSources())[1]).toEqual({
        provider: 'coingecko',
        agreement: 'median',
        checked_with: ['defillama-coins'],
      })
      const failing = (await readFailing(pipeline.database.db)).get('prices')
      expect(failing?.coinmarketcap?.reason).toBe(
        `coinmarketcap: its prices are not used for ${token.name}: other providers differ from them`,
      )
      const buckets = (await readLedger(pipeline, prices, [token])).map((one) => [one.state, one.provider, one.buckets])
      expect(buckets.toSorted()).toEqual([
        ['stored', 'coingecko', 1],
        ['stored', 'coinmarketcap', 1],
      ])
    },
  )

  it('is not used until the provider agrees in three slots', async () => {
    await collectNext(2, 2, 2)
    await collectNext(20, 2, 2)
    for (const price of [2.001, 2.002, 2.003, 2.004]) await collectNext(price, price + 0.01, price)
    expect((await readSources()).map(({ provider }) => provider)).toEqual([
      'coinmarketcap',
      ...Array(4).fill('coingecko'),
      'coinmarketcap',
    ])
    expect((await readFailing(pipeline.database.db)).get('prices')).toEqual({})
  })

  it('is the same decision if the slot is collected again', async () => {
    await collectNext(2, 2, 2)
    await collectNext(20, 2.01, 2)
    const before = [await readPrices(), await readSources(), await readSuspects()]
    expect(await recollect()).toMatchObject({ rows: 1 })
    expect([await readPrices(), await readSources(), await readSuspects()]).toEqual(before)
  })
})

describe('price of the only provider', () => {
  it.each([4, 0.2, 2e6])('%d after 2 is withheld, with both prices in the reason', async (price) => {
    await collectNext(2, 2)
    expect(await collectNext(price)).toMatchObject({ rows: 0, uncovered: 1, code: undefined })
    expect(await readPrices()).toEqual([2])
    const [note] = await readReasons()
    expect(note?.reason).toBe(`price not confirmed: coinmarketcap ${price}, last 2`)
    expect(await readSuspects()).toEqual([{ provider: 'coinmarketcap', price, is_withheld: true, state: 'suspect' }])
  })

  it('is stored after half an hour, with its observations, if the move was below 75 %', async () => {
    await collectNext(2, 2)
    for (let slot = 0; slot < 6; slot += 1) expect(await collectNext(3)).toMatchObject({ rows: 0 })
    expect(await collectNext(3)).toMatchObject({ rows: 7, uncovered: 0 })
    expect(await readPrices()).toEqual([2, ...Array(7).fill(3)])
    expect((await readSources()).slice(1).every(({ agreement }) => agreement === 'persisted')).toBe(true)
    expect((await readSuspects()).every(({ state }) => state === 'released')).toBe(true)
  })

  it('is requested again in the slot if another provider failed', async () => {
    await collectNext(2, 2, 2)
    expect(await collectNext(4, 'failing', null)).toMatchObject({ code: 'provider_unavailable', again: [token.id] })
    says.coingecko = 4.02
    says.defillama = 4.01
    expect(await recollect()).toMatchObject({ rows: 1, uncovered: 0 })
    expect(await readPrices()).toEqual([2, 4])
    expect((await readSuspects()).map(({ state }) => state)).toEqual(['released'])
  })
})

describe('price in doubt', () => {
  it('is stored as the first price of a token if no other provider has the token', async () => {
    await collectNext(2)
    expect(asked).toEqual(['coinmarketcap', 'coingecko', 'defillama'])
    expect(await readSources()).toEqual([{ provider: 'coinmarketcap', agreement: 'single', checked_with: [] }])
  })

  it('is compared with the second provider if the token has no stored price', async () => {
    await collectNext(2, 2.02)
    expect(asked).toEqual(['coinmarketcap', 'coingecko'])
    expect(await readSources()).toEqual([
      { provider: 'coinmarketcap', agreement: 'confirmed', checked_with: ['coingecko'] },
    ])
  })

  it('is stored if two providers agree on a move', async () => {
    await collectNext(2, 2)
    expect(await collectNext(2.6, 2.62)).toMatchObject({ rows: 1 })
    expect(await readPrices()).toEqual([2, 2.6])
  })

  it('is withheld if two providers agree on ten times the last price, and the third does not', async () => {
    await collectNext(2, 2, 2)
    expect(await collectNext(20, 20.1, 2)).toMatchObject({ rows: 0, uncovered: 1 })
    expect((await readReasons())[0]?.reason).toBe(
      'price not confirmed: coinmarketcap 20, coingecko 20.1, defillama-coins 2, last 2',
    )
  })

  it('is released at its own time if the second provider was late', async () => {
    await collectNext(2, 2)
    expect(await collectNext(2.5, 2)).toMatchObject({ rows: 1 })
    const at = new Date(pipeline.clock.now - 1_000).toISOString()
    expect(await collectNext(2.51, 2.5)).toMatchObject({ rows: 2 })
    expect(await readPrices()).toEqual([2, 2.5, 2.51])
    const rows = await read(
      `SELECT provider, agreement FROM price_sources FINAL WHERE observed_at = '${at.replace('Z', '')}'`,
      z.object({ provider: z.string(), agreement: z.string() }),
    )
    expect(rows).toEqual([{ provider: 'coinmarketcap', agreement: 'confirmed' }])
  })

  it('of history is not stored if it was withheld in its slot', async () => {
    await collectNext(2, 2)
    await collectNext(20)
    const slot = pipeline.clock.now
    pipeline.clock.now += 12 * SLOT_MS
    const range = { kind: 'range', from: slot - SLOT_MS, to: slot, interval: '5m' } as const
    says.coinmarketcap = null
    const collected = await runFor(pipeline, prices, range, { ids: [token.id] })
    expect(collected.rows).toBe(0)
    expect(await readPrices()).toEqual([2])
  })
})

describe('withheld price', () => {
  const TABLES = ['token_prices', 'token_quotes', 'token_price_rollups', 'price_sources', 'history_changes']
  /** Everything that percent changes, candles, sums, the Index and alerts read of prices. */
  const readStored = () =>
    Promise.all(
      TABLES.map((table) => read(`SELECT * FROM ${table} FINAL ORDER BY ALL`, z.record(z.string(), z.unknown()))),
    )

  it('changes nothing that is stored, so that nothing computed from prices moves', async () => {
    await collectNext(2, 2)
    const before = await readStored()
    await collectNext(20)
    expect(await readStored()).toEqual(before)
  })

  it('is stored at its own time by the command of the operator, with its coverage and change', async () => {
    await collectNext(2, 2)
    await collectNext(20)
    const range = { from: pipeline.clock.now - SLOT_MS, to: pipeline.clock.now + SLOT_MS }
    const [suspect] = await findSuspects(pipeline.database.db, { tokens: [token.key], ...range })
    if (suspect === undefined) throw new Error('no price is suspect')
    const { config, context, clock } = pipeline
    // The change of a past price is recorded after its slot.
    clock.now += 2 * SLOT_MS
    const stores = { db: context.db, redis: context.redis, prefix: config.redis.prefix, now: () => clock.now }
    await releaseSuspect(stores, config, token, suspect)
    await releaseSuspect(stores, config, token, suspect)
    expect(await readPrices()).toEqual([2, 20])
    expect((await readSources())[1]).toMatchObject({ provider: 'coinmarketcap', agreement: 'released' })
    expect(await readSuspects()).toMatchObject([{ price: 20, state: 'released' }])
    const stored = (await readLedger(pipeline, prices, [token])).filter(({ state }) => state === 'stored')
    expect(stored.map(({ buckets }) => buckets)).toEqual([2])
    expect(await read('SELECT job FROM history_changes FINAL', z.object({ job: z.string() }))).toHaveLength(1)
  })
})

describe('audit at the full hour', () => {
  it('removes a stored price that two providers contradict, and records the changed range', async () => {
    await collectNext(2, 2, 2)
    for (let slot = 0; slot < 9; slot += 1) await collectNext(2 + slot / 1000, 2, 2)
    // The audit of the hour finds a difference, and the next slot confirms it.
    await collectNext(2.16, 2, 2)
    expect(asked).toEqual(['coinmarketcap', 'coingecko'])
    const wrongAt = pipeline.clock.now - 1_000
    await collectNext(2.16, 2.001, 2)
    expect(asked).toEqual(['coinmarketcap', 'coingecko', 'defillama'])
    expect(await readPrices()).not.toContain(2.16)
    expect((await readPrices()).at(-1)).toBe(2.001)
    const suspects = await readSuspects()
    expect(suspects.filter(({ state }) => state === 'taken_out')).toMatchObject([{ price: 2.16 }])
    const changes = await read(
      `SELECT toUnixTimestamp64Milli(begins_at) AS begin, toUnixTimestamp64Milli(ends_at) AS end FROM history_changes FINAL WHERE dataset = 'prices'`,
      z.object({ begin: z.number(), end: z.number() }),
    )
    expect(changes.some(({ begin, end }) => begin <= wrongAt && wrongAt < end)).toBe(true)
    const rollups = await read(
      'SELECT interval_seconds AS seconds, price FROM token_price_rollups FINAL ORDER BY seconds, bucket_at',
      z.object({ seconds: z.number(), price: z.number() }),
    )
    expect(rollups.map(({ price }) => price)).not.toContain(2.16)
    expect(new Set(rollups.map(({ seconds }) => seconds)).size).toBe(5)
  })
})
