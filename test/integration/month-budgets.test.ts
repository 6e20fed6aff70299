import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import prices from '../../workers/jobs/prices.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const FIVE_MINUTES = 300_000
/** In the first slot of a day no call is left from the day before. */
const SLOT = Date.parse('2024-05-06T07:05:00Z')
/** So small that a slot in the middle of the day has no call. */
const NEXT_TO_NOTHING = '31'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function start(credits: string, calls: string) {
  const settings = { COINMARKETCAP_CREDITS_PER_MONTH: credits, COINGECKO_CALLS_PER_MONTH: calls }
  const pipeline = await createPipeline({ registry: loadRegistry(), now: SLOT + 9_000, settings, markets: 'differing' })
  closers.push(pipeline.close)
  return pipeline
}

const runSlot = (pipeline: Pipeline, slot: number) => {
  pipeline.clock.now = slot + 9_000
  pipeline.upstream.requests.clear()
  return runJob(prices, prices.connect(pipeline.context), pipeline.context, { kind: 'slot', slot })
}

const stored = z.object({ token: z.number(), market_cap: z.number().nullable(), is_own: z.number() })

/** The stored quotes, the largest first; the stand-in's CoinMarketCap has quotes at whole minutes. */
const readQuotes = ({ context }: Pipeline) =>
  context.db.rows({
    name: 'quotes',
    sql: `SELECT token, market_cap, toSecond(observed_at) = 0 AS is_own FROM token_quotes FINAL ORDER BY market_cap DESC`,
    schema: stored,
  })

describe('prices on free plans', () => {
  it('are complete with one call per provider: the largest from the first, the others from the next', async () => {
    const pipeline = await start('10000', '10000')
    await runSlot(pipeline, SLOT)
    const before = await readQuotes(pipeline)
    const report = await runSlot(pipeline, SLOT + FIVE_MINUTES)
    expect(report).toMatchObject({ uncovered: 0, providers: ['coinmarketcap', 'coingecko'] })
    expect(pipeline.upstream.requests.count('coinmarketcap')).toBe(1)
    expect(pipeline.upstream.requests.count('coingecko')).toBe(1)
    const large = before.slice(0, 90).map(({ token }) => token)
    const small = before.slice(-4).map(({ token }) => token)
    const after = new Map((await readQuotes(pipeline)).map(({ token, is_own }) => [token, is_own]))
    expect(after.size).toBe(before.length)
    expect(large.filter((token) => after.get(token) === 0)).toEqual([])
    expect(small.filter((token) => after.get(token) === 1)).toEqual([])
  })

  it('are missing without calls left, and the reason names the settings', async () => {
    const pipeline = await start(NEXT_TO_NOTHING, NEXT_TO_NOTHING)
    const report = await runSlot(pipeline, SLOT)
    expect(report.rows).toBe(0)
    expect(report.uncovered).toBeGreaterThan(90)
    expect(pipeline.upstream.requests.count('coinmarketcap')).toBe(0)
    const notes = await pipeline.context.db.rows({
      name: 'notes',
      sql: `SELECT DISTINCT toString(state) AS state, reason FROM coverage_notes FINAL WHERE dataset = 'prices'`,
      schema: z.object({ state: z.string(), reason: z.string() }),
    })
    expect(new Set(notes.map(({ state }) => state))).toEqual(new Set(['unserved']))
    const reasons = notes.map(({ reason }) => reason).join('\n')
    expect(reasons).toContain('coinmarketcap: COINMARKETCAP_CREDITS_PER_MONTH leaves no call for it')
    expect(reasons).toContain('coingecko: COINGECKO_CALLS_PER_MONTH leaves no call for it')
  })
})
