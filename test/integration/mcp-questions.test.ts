import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DAY_MS, toBucketStart } from '../../shared/intervals.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import prices from '../../workers/jobs/prices.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { getToken } from '../support/entities.ts'
import { type Assistant, connectTo, storePastHolders } from '../support/mcp.ts'
import type { Pipeline } from '../support/pipeline.ts'
import { createSite, SITE_NOW } from '../support/site.ts'

const TODAY = toBucketStart(SITE_NOW, '1d')
const COMPARED = ['Uniswap', 'Aave']

let site: Pipeline
let db: Database
let api: TestApi
let assistant: Assistant

beforeAll(async () => {
  site = await createSite()
  const { context, registry, config } = site
  const entities = registry.tokens.filter(({ name }) => COMPARED.includes(name)).map(({ id }) => id)
  const month = { kind: 'range', from: TODAY - 30 * DAY_MS, to: TODAY, interval: '1d', entities } as const
  await runJob(prices, prices.connect(context), context, month)
  await storePastHolders(site, 'UNI', TODAY)
  db = createDatabase(config.clickhouse, 'read')
  api = await startApi({ config, db, registry, changeFeed: createHandFeed(), now: () => SITE_NOW })
  assistant = await connectTo(api.url)
}, 300_000)
afterAll(async () => {
  await assistant?.close()
  await api?.close()
  await db?.close()
  await site?.close()
})

const query = <Shape extends z.ZodObject>(sql: string, schema: Shape) => db.rows({ name: 'question', sql, schema })

/** Numbers have eight significant digits. */
const SEVEN_DIGITS = 1e-7

/** Compares two columns of numbers to their significant digits. */
function expectSame(messages: readonly unknown[], stored: readonly number[]): void {
  expect(messages).toHaveLength(stored.length)
  for (const [index, value] of stored.entries())
    expect(Math.abs(Number(messages[index]) - value)).toBeLessThanOrEqual(Math.abs(value) * SEVEN_DIGITS)
}

const named = z.object({ name: z.string(), value: z.number() })

describe('assistant with tool calls only', () => {
  it('finds the five DAOs with the largest treasuries without their own token', async () => {
    const TOPIC = 'daos/treasury'
    const FIELDS = ['_id', 'name', 'treasuryData.valueUsd']
    const best: { name: unknown; value: number }[] = []
    let cursor: string | undefined
    // The total bounds the value without the own token: no DAO below the fifth can exceed it.
    for (let isOver = false; !isOver; ) {
      const input = { topic: TOPIC, fields: FIELDS, sort: '-treasuryData.valueUsd', limit: 20 }
      const { data } = await assistant.publish('query', { ...input, ...(cursor === undefined ? {} : { cursor }) })
      const page = data.rows as [string, string, number][]
      const parts = await assistant.rows('query', {
        ...{ topic: 'daos/treasury/historic', of: page.map(([id]) => id), limit: 1 },
        fields: ['stablecoinUsd', 'otherUsd'],
      })
      const values = parts.map(({ of, stablecoinUsd, otherUsd: restUsd }) => ({
        name: page.find(([id]) => id === of)?.[1],
        value: Number(stablecoinUsd) + Number(restUsd),
      }))
      best.push(...values)
      best.sort((a, b) => b.value - a.value)
      cursor = data.next as string | undefined
      isOver = cursor === undefined || (page.at(-1)?.[2] ?? 0) < (best[4]?.value ?? 0)
    }
    const stored = await query(
      `SELECT d.name AS name, arraySum(h -> if(h.kind = 'own', 0, ifNull(h.value_usd, 0)), t.holdings) AS value
FROM dao_treasuries AS t FINAL INNER JOIN (SELECT key, name FROM daos FINAL WHERE live) AS d ON d.key = t.dao
WHERE observed_at = (SELECT max(observed_at) FROM dao_treasuries) ORDER BY value DESC LIMIT 5`,
      named,
    )
    expect(stored).toHaveLength(5)
    expect(best.slice(0, 5).map(({ name }) => name)).toEqual(stored.map(({ name }) => name))
    expectSame(
      best.slice(0, 5).map(({ value }) => value),
      stored.map(({ value }) => value),
    )
  })

  it('finds the tokens with the largest change in a day', async () => {
    const member = 'financialData.percentChange24h'
    const answer = await assistant.rows('query', {
      ...{ topic: 'tokens', sort: `-${member}`, fields: ['name', member], limit: 5 },
      filter: [`${member}!=null`],
    })
    const stored = await query(
      `SELECT t.name AS name, assumeNotNull(q.percent_change_24h) AS value FROM (SELECT * FROM token_quotes FINAL) AS q
INNER JOIN (SELECT key, name FROM tokens FINAL WHERE live) AS t ON t.key = q.token
WHERE q.percent_change_24h IS NOT NULL ORDER BY value DESC, name LIMIT 5`,
      named,
    )
    expect(answer.map(({ name }) => name)).toEqual(stored.map(({ name }) => name))
    expectSame(
      answer.map((row) => row[member]),
      stored.map(({ value }) => value),
    )
  })

  it('finds the weight of each token in the Index', async () => {
    const answer = await assistant.rows('query', { topic: 'index/weights', fields: ['symbol', 'weight', 'valueUsd'] })
    const sum = answer.reduce((total, { weight }) => total + Number(weight), 0)
    expect(sum).toBeCloseTo(1, 6)
    const [point] = await query(
      'SELECT value_usd AS value FROM index_points FINAL WHERE NOT is_retracted ORDER BY created_at DESC LIMIT 1',
      z.object({ value: z.coerce.number() }),
    )
    expectSame([answer.reduce((total, { valueUsd }) => total + Number(valueUsd), 0)], [point?.value ?? 0])
  })

  it("finds the change of a token's holders", async () => {
    const { data } = await assistant.publish('series', {
      ...{ topic: 'tokens/holders/historic', of: 'Uniswap', members: ['totalHolders'], last: '7d' },
    })
    const stored = await query(
      `SELECT toString(toDate(observed_at)) AS name, toFloat64(argMin(total_holders, observed_at)) AS value
FROM token_holders FINAL WHERE token = (SELECT key FROM tokens FINAL WHERE symbol = 'UNI' AND live) GROUP BY name ORDER BY name`,
      named,
    )
    expect(stored.length).toBeGreaterThan(2)
    const change = (stored.at(-1)?.value ?? 0) - (stored[0]?.value ?? 0)
    expect(data.statistics).toMatchObject({ totalHolders: { change } })
    expect((data.rows as unknown[][]).map(([, holders]) => holders)).toEqual(stored.map(({ value }) => value))
  })

  it('finds the DEX volume of a token', async () => {
    const { data } = await assistant.publish('series', {
      ...{ topic: 'tokens/historic-dex-ohlcv', of: 'Uniswap', members: ['volumeUsd', 'trades'] },
      ...{ last: '7d', interval: '1d' },
    })
    const stored = await query(
      `SELECT toString(toDate(traded_at)) AS name, sum(ifNull(amount_usd, 0)) AS value FROM dex_trades FINAL
WHERE token = (SELECT key FROM tokens FINAL WHERE symbol = 'UNI' AND live) GROUP BY name ORDER BY name`,
      named,
    )
    const rows = data.rows as [string, number, number][]
    expect(rows.map(([day]) => day)).toEqual(stored.map(({ name }) => name))
    expectSame(
      rows.map(([, volume]) => volume),
      stored.map(({ value }) => value),
    )
  })

  it('finds the number of voters of a DAO, and the most active ones', async () => {
    const [summary] = await assistant.rows('query', { topic: 'daos/governance/summary', of: ['Uniswap'], limit: 1 })
    const voters = await assistant.rows('query', { topic: 'daos/governance/voters', of: ['Uniswap'], limit: 3 })
    const stored = await query(
      `SELECT voter AS name, toFloat64(count()) AS value FROM dao_votes FINAL
WHERE dao = (SELECT key FROM daos FINAL WHERE name = 'Uniswap' AND live) AND NOT startsWith(space, 'eip155:') GROUP BY voter ORDER BY value DESC, name`,
      named,
    )
    expect(summary?.['votes.uniqueAddressesCount']).toBe(stored.length)
    expect(summary?.['votes.count']).toBe(stored.reduce((sum, { value }) => sum + value, 0))
    expect(voters.map(({ voter, votes }) => ({ name: voter, value: votes }))).toEqual(stored.slice(0, 3))
  })

  it('finds stale datasets', async () => {
    const answer = await assistant.rows('status', {})
    const [newest] = await query(
      'SELECT toUnixTimestamp64Milli(max(observed_at)) AS at FROM token_quotes',
      z.object({ at: z.number() }),
    )
    const ofPrices = answer.find(({ dataset }) => dataset === 'prices')
    expect(ofPrices).toMatchObject({ state: 'fresh', lastUpdated: new Date(newest?.at ?? 0).toISOString() })
    const later = await startApi({ ...served(), now: () => SITE_NOW + DAY_MS })
    const tomorrow = await connectTo(later.url)
    const { text } = await tomorrow.publish('status')
    const { data } = await tomorrow.publish('query', { topic: 'tokens', limit: 1 })
    await tomorrow.close()
    await later.close()
    expect(text).toMatch(/Not fresh: prices stale/)
    expect(data).toMatchObject({ stale: true })
  })

  it('finds missing data and its reason', async () => {
    const { id } = getToken(site.registry, 'UNI')
    const { data } = await assistant.publish('series', {
      ...{ topic: 'tokens/historic-financial', of: id, members: ['quote.USD.price'], interval: '1h' },
      ...{ start: '2026-05-02', end: '2026-05-04' },
    })
    const [stored] = await query(
      `SELECT uniqExact(toStartOfHour(observed_at)) AS hours FROM token_prices FINAL
WHERE token = (SELECT key FROM tokens FINAL WHERE symbol = 'UNI' AND live)
  AND observed_at >= toDateTime64('2026-05-02', 3, 'UTC') AND observed_at < toDateTime64('2026-05-04', 3, 'UTC')`,
      z.object({ hours: z.number() }),
    )
    expect(data.missing).toBe(48 - (stored?.hours ?? 0))
    expect(data.missing).toBeGreaterThan(40)
    const why = await assistant.publish('status', { dataset: 'prices', id, start: '2026-03-01', end: '2026-03-03' })
    expect(why.data.missing).toMatchObject([
      { entity: id, state: 'unserved', reason: expect.stringContaining('back-fill') },
    ])
    const today = await assistant.publish('status', { dataset: 'prices', id, start: '2026-05-05' })
    const ranges = (await (
      await fetch(`${api.url}/data/status/coverage?dataset=prices&id=${id}&start=2026-05-05`)
    ).json()) as {
      reason: string | null
      state: string
    }[]
    const coming = ranges.filter(({ reason }) => reason === 'not due yet')
    expect(coming).toHaveLength(1)
    expect(today.data.missing).toEqual(ranges.filter((range) => range.state !== 'covered' && !coming.includes(range)))
  })

  it('compares two tokens over a month', async () => {
    for (const of of COMPARED) {
      const { data } = await assistant.publish('series', {
        ...{ topic: 'tokens/historic-financial', of, members: ['quote.USD.price'] },
        ...{ start: '2026-04-06', end: '2026-05-06', interval: '1d' },
      })
      // Statistics come from the finest points, whatever the interval of the rows.
      const stored = await query(
        `SELECT toString(observed_at) AS name, price AS value FROM token_prices FINAL
WHERE token = (SELECT key FROM tokens FINAL WHERE name = '${of}' AND live)
  AND observed_at >= toDateTime64('2026-04-06', 3, 'UTC') AND observed_at < toDateTime64('2026-05-06', 3, 'UTC')
ORDER BY observed_at`,
        named,
      )
      expect(stored.length).toBeGreaterThanOrEqual(30)
      const [first = 0, last = 0] = [stored[0]?.value, stored.at(-1)?.value]
      expect(data.statistics).toMatchObject({
        'quote.USD.price': {
          first: { value: expect.closeTo(first, 4) },
          changePercent: expect.closeTo((100 * (last - first)) / first, 5),
        },
      })
    }
  })

  it('finds the category with the largest daily growth', async () => {
    const [best] = await assistant.rows('query', {
      ...{ topic: 'aggregated/categories', sort: '-change24h', filter: ['change24h!=null'], limit: 1 },
    })
    const categories = await assistant.rows('query', { topic: 'categories', filter: [`_id=${best?.category}`] })
    const stored = await query(
      `SELECT category AS name, 100 * (sum(q.market_cap) / sum(q.market_cap / (1 + q.percent_change_24h / 100)) - 1) AS value
FROM (SELECT * FROM token_quotes FINAL) AS q INNER JOIN (SELECT * FROM tokens FINAL WHERE live) AS t ON t.key = q.token
INNER JOIN (SELECT * FROM daos FINAL) AS d ON d.key = t.dao_key ARRAY JOIN d.category_ids AS category
WHERE q.market_cap IS NOT NULL AND q.percent_change_24h IS NOT NULL GROUP BY name ORDER BY value DESC LIMIT 1`,
      named,
    )
    expect(categories.map(({ _id }) => _id)).toEqual(stored.map(({ name }) => name))
    expect(categories.map(({ name }) => name)).toEqual([expect.stringMatching(/\w/)])
    expect(best?.change24h).toEqual(expect.closeTo(stored[0]?.value ?? 0, 5))
  })
})

const served = () => ({ config: site.config, db, registry: site.registry, changeFeed: createHandFeed() })
