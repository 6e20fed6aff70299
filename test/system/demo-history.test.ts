import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { collectPastDays } from '../../tools/demo-history.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const DAY = 86_400_000
const TODAY = Date.parse('2024-05-06T00:00:00Z')
const TABLES = ['twitter_counts', 'discord_members', 'telegram_members', 'twitter_sentiment']

let pipeline: Pipeline
beforeAll(async () => {
  pipeline = await createPipeline({ registry: loadRegistry(), now: TODAY + 3_600_000 })
})
afterAll(() => pipeline?.close())

const never = new AbortController().signal
const collect = (days: number) =>
  collectPastDays(pipeline.context, { upstream: pipeline.upstream.url, days, now: pipeline.clock.now, signal: never })
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

it('demo history requests no past data from a real provider', async () => {
  const { config } = pipeline.context
  const x = { ...config.providers.x, baseUrl: 'https://api.x.example' }
  const context = { ...pipeline.context, config: { ...config, providers: { ...config.providers, x } } }
  const options = { upstream: pipeline.upstream.url, days: 9, now: pipeline.clock.now + DAY, signal: never }
  expect(await collectPastDays(context, options)).toEqual({ collected: 0, failed: 0 })
})
