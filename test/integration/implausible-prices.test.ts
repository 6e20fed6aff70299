import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import type { Token } from '../../shared/registry/entities.ts'
import prices from '../../workers/jobs/prices.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { emptyLedger, readLedger, runFor } from '../support/answered.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const SLOT_MS = 300_000
const START = Date.parse('2024-05-06T07:05:00Z')

/** The price from each provider; null if it has none. */
const says: { coinmarketcap: number | null; coingecko: number | null } = { coinmarketcap: null, coingecko: null }

let pipeline: Pipeline
let server: Awaited<ReturnType<typeof startProviderServer>>
let token: Token
beforeAll(async () => {
  server = await startProviderServer((_, response, url) => {
    const at = new Date(pipeline.clock.now - 1_000).toISOString()
    const { coinmarketcap, coingecko } = says
    if (url.pathname.startsWith('/cmc/')) {
      const quote = { USD: { price: coinmarketcap, last_updated: at } }
      return sendJson(response, { data: coinmarketcap === null ? [] : [{ id: token.cmcId, quote }] })
    }
    const coin = { id: token.coingeckoId, current_price: coingecko, last_updated: at }
    sendJson(response, coingecko === null ? [] : [coin])
  })
  const settings = { COINMARKETCAP_BASE_URL: `${server.baseUrl}/cmc`, COINGECKO_BASE_URL: server.baseUrl }
  pipeline = await createPipeline({ now: START, settings })
  const found = pipeline.registry.tokens.find(({ live, livePrice, cmcId, coingeckoId }) => {
    return live && livePrice && cmcId !== null && coingeckoId !== null
  })
  if (found === undefined) throw new Error('there is no token with both ids')
  token = found
})
afterAll(async () => {
  await pipeline?.close()
  await server?.close()
})
beforeEach(async () => {
  await emptyLedger(pipeline)
  for (const table of ['token_prices', 'token_quotes'])
    await pipeline.database.db.command({ name: 'forget', sql: `TRUNCATE TABLE ${table}` })
})

/** Collects the next slot with these prices. */
function collectNext(coinmarketcap: number | null, coingecko: number | null) {
  Object.assign(says, { coinmarketcap, coingecko })
  pipeline.clock.now += SLOT_MS
  return recollect()
}
const recollect = () => runFor(pipeline, prices, { kind: 'slot', slot: pipeline.clock.now }, { ids: [token.id] })

async function readPrices(): Promise<number[]> {
  const sql = 'SELECT price FROM token_prices FINAL ORDER BY observed_at'
  const rows = await pipeline.database.db.rows({ name: 'stored', sql, schema: z.object({ price: z.number() }) })
  return rows.map(({ price }) => price)
}
const readReasons = async () => (await readLedger(pipeline, prices, [token])).filter(({ state }) => state === 'failed')

it('price check rejects a hundredfold price of one provider and uses the next provider', async () => {
  await collectNext(2, null)
  expect(await collectNext(200, 2.1)).toMatchObject({ rows: 1, uncovered: 0 })
  expect(await readPrices()).toEqual([2, 2.1])
})

it.each([
  [200, '100x'],
  [0.02, '1/100x'],
])(
  'price check rejects %d after 2 from the only provider, with both prices in the reason, and retries',
  async (price, times) => {
    await collectNext(2, null)
    expect(await collectNext(price, null)).toMatchObject({ code: 'provider_malformed', again: [token.id] })
    expect(await readPrices()).toEqual([2])
    const [note] = await readReasons()
    expect(note?.reason).toMatch(
      new RegExp(`^coinmarketcap: a price of ${price} is ${times} the last price, 2 at 2024-`),
    )
    says.coinmarketcap = 2.2
    expect(await recollect()).toMatchObject({ rows: 1, uncovered: 0 })
    expect(await readPrices()).toEqual([2, 2.2])
  },
)

it('price check accepts a large change if two providers agree within a fifth', async () => {
  await collectNext(2, null)
  expect(await collectNext(300, 250)).toMatchObject({ rows: 1, uncovered: 0 })
  expect(await readPrices()).toEqual([2, 250])
})

it('price check rejects a large change if two providers disagree', async () => {
  await collectNext(2, null)
  expect(await collectNext(300, 900)).toMatchObject({ code: 'provider_malformed' })
  expect(await readPrices()).toEqual([2])
  const [note] = await readReasons()
  expect(note?.reason).toMatch(/^coinmarketcap: a price of 300 .+; coingecko: a price of 900 /)
})

it('price check accepts a price that stays the same for an hour', async () => {
  await collectNext(2, null)
  for (let slot = 1; slot <= 12; slot += 1) {
    expect(await collectNext(400, null)).toMatchObject({ code: 'provider_malformed' })
  }
  expect(await collectNext(400, null)).toMatchObject({ rows: 1, uncovered: 0 })
  expect(await readPrices()).toEqual([2, 400])
  expect(await collectNext(401, null)).toMatchObject({ rows: 1 })
})

it('price check accepts 99 times the last price, and any first price', async () => {
  expect(await collectNext(2, null)).toMatchObject({ rows: 1 })
  expect(await collectNext(198, null)).toMatchObject({ rows: 1 })
  expect(await readPrices()).toEqual([2, 198])
})
