import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { collectPastDays } from '../../tools/demo-history.ts'
import { keepDaos } from '../support/few-daos.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { createServedPipeline } from '../support/served-pipeline.ts'

const DAY = 86_400_000
const TODAY = Date.parse('2024-05-06T00:00:00Z')
const TABLES = ['twitter_counts', 'discord_members', 'telegram_members', 'twitter_sentiment']

let pipeline: Pipeline
beforeAll(async () => {
  pipeline = await createPipeline({ registry: loadRegistry(), now: TODAY + 3_600_000 })
})
afterAll(() => pipeline?.close())

const never = new AbortController().signal
const collect = (communities: number, holders = 0, trades = 0, { context, upstream, clock } = pipeline) =>
  collectPastDays(context, {
    upstream: upstream.url,
    days: { communities, holders, trades },
    now: clock.now,
    signal: never,
  })
const stored = (table: string) =>
  pipeline.database.db.rows({
    name: 'stored',
    sql: `SELECT toString(toDate(observed_at)) AS day, count() AS inserted, uniqExact(dao) AS daos FROM ${table}
GROUP BY day ORDER BY day`,
    schema: z.object({ day: z.string(), inserted: z.number(), daos: z.number() }),
  })

it('demo history collects each missing day once, with the values of that day', async () => {
  expect(await collect(2)).toEqual({ collected: 8, failed: 0 })
  expect(await collect(4)).toEqual({ collected: 8, failed: 0 })
  expect(await collect(4)).toEqual({ collected: 0, failed: 0 })
  for (const table of TABLES) {
    const days = await stored(table)
    expect(days.map(({ day }) => day)).toEqual(['2024-05-02', '2024-05-03', '2024-05-04', '2024-05-05'])
    expect(days.every(({ inserted, daos }) => inserted === daos && daos > 10)).toBe(true)
  }
  const series = await pipeline.database.db.rows({
    name: 'followers',
    sql: 'SELECT uniqExact(followers) AS different, count() AS points FROM twitter_counts GROUP BY dao',
    schema: z.object({ different: z.number(), points: z.number() }),
  })
  // Requests past times, not the present repeatedly.
  expect(series.some(({ different, points }) => different === points)).toBe(true)
})

it('demo history has holders and trades of more than a month, in which the figures of a token change', async () => {
  const served = await createServedPipeline({ registry: keepDaos(new Set(['uniswap', 'ens'])), now: TODAY + 3_600_000 })
  try {
    expect(await collect(0, 35, 35, served)).toEqual({ collected: 70, failed: 0 })
    expect(await collect(0, 35, 35, served)).toEqual({ collected: 0, failed: 0 })
    expect(await collect(0, 36, 36, served)).toMatchObject({ failed: 0, collected: expect.toBeOneOf([2, 3, 4]) })

    const get = async (path: string) => (await fetch(`${served.url}/data/tokens/${path}`)).json()
    const holders = holdersAnswer.parse(await get('holders/historic?name=Uniswap&start=2024-03-01&end=2024-05-06'))
    const byDay = holders.map(({ recordedAt }) => recordedAt.slice(0, 10)).toSorted()
    expect([byDay.length, byDay[0], byDay.at(-1)]).toEqual([36, '2024-03-31', '2024-05-05'])
    expect(new Set(holders.map(({ top10Share }) => top10Share)).size).toBeGreaterThan(30)

    for (const token of ['Uniswap', 'Ethereum Name Service']) {
      const [found] = dexAnswer.parse(await get(`dex-data?name=${encodeURIComponent(token)}&limit=1`))
      for (const flow of [found?.dexData.inflow, found?.dexData.outflow]) {
        const { amountUsd24h, amountUsd7d, amountUsd30d, amountUsdMax } = flow ?? {}
        const rising = [0, amountUsd24h, amountUsd7d, amountUsd30d, amountUsdMax]
        expect(rising, token).toEqual([...new Set(rising)].toSorted((a, b) => Number(a) - Number(b)))
      }
    }
    const days = await served.database.db.rows({
      name: 'traded-days',
      sql: 'SELECT uniqExact(toDate(traded_at)) AS days, uniqExact(token) AS tokens FROM dex_trades',
      schema: z.object({ days: z.number(), tokens: z.number() }),
    })
    expect(days).toEqual([{ days: 36, tokens: 2 }])
  } finally {
    await served.close()
  }
})

const holdersAnswer = z.array(z.object({ recordedAt: z.string(), top10Share: z.number() }))
const amounts = z.object({
  ...{ amountUsd24h: z.number(), amountUsd7d: z.number(), amountUsd30d: z.number(), amountUsdMax: z.number() },
})
const dexAnswer = z.array(z.object({ dexData: z.object({ inflow: amounts, outflow: amounts }) }))

it.for(['x', 'ethplorer', 'moralis'] as const)(
  'demo history requests no past data from a real provider: %s',
  async (name) => {
    const { config } = pipeline.context
    const real = { ...config.providers[name], baseUrl: 'https://api.provider.example' }
    const context = { ...pipeline.context, config: { ...config, providers: { ...config.providers, [name]: real } } }
    const days = { communities: 9, holders: 9, trades: 9 }
    const options = { upstream: pipeline.upstream.url, days, now: pipeline.clock.now + DAY, signal: never }
    expect(await collectPastDays(context, options)).toEqual({ collected: 0, failed: 0 })
  },
)

it('demo history reads no past trades from a real node', async () => {
  const { config } = pipeline.context
  const rpc = { ...config.providers.rpc, urls: { ethereum: 'https://node.example' } }
  const context = { ...pipeline.context, config: { ...config, providers: { ...config.providers, rpc } } }
  const days = { communities: 9, holders: 9, trades: 9 }
  const options = { upstream: pipeline.upstream.url, days, now: pipeline.clock.now + DAY, signal: never }
  expect(await collectPastDays(context, options)).toEqual({ collected: 0, failed: 0 })
})
