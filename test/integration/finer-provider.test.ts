import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toBuckets } from '../../shared/buckets.ts'
import { recordExpected } from '../../shared/ledger/expected.ts'
import { readCoverage } from '../../shared/ledger/tables.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import { recordProviders } from '../../workers/job/state.ts'
import prices from '../../workers/jobs/prices.ts'
import { type RunnerContext, runJob } from '../../workers/run/runner.ts'
import { enqueueMissing } from '../../workers/schedule/scan-for-gaps.ts'
import { getToken } from '../support/entities.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'

const NOW = Date.parse('2024-05-06T07:05:09Z')
const RANGE = { from: Date.parse('2024-05-03T00:00:00Z'), to: Date.parse('2024-05-04T00:00:00Z') }

let pipeline: Pipeline
let token: Token
beforeAll(async () => {
  pipeline = await createPipeline({ now: NOW })
  token = getToken(pipeline.registry, 'UNI')
})
afterAll(() => pipeline?.close())

/** Runs a scheduler's gap scan, and a worker with these settings. */
async function collectMissing(context: RunnerContext): Promise<number> {
  const { db, redis, config, now } = context
  const registry = { ...pipeline.registry, tokens: [token] }
  const queue = pipeline.queue('prices', 'history')
  await recordProviders(db, prices.name, config)
  const scheduler = { db, redis, prefix: config.redis.prefix, registry, log: silent, now }
  const jobs = await enqueueMissing(prices, queue, scheduler)
  for (const job of await queue.getJobs(['prioritized'])) {
    await runJob(prices, prices.connect(context), { ...context, registry }, job.data)
    await job.remove()
  }
  return jobs
}

async function steps(): Promise<number[]> {
  const within = toBuckets(RANGE, '5m')
  if (within === undefined) throw new Error('no buckets')
  const reports = await readCoverage(pipeline.context.db, prices.dataset, [token.key], within)
  return [...new Set(reports.map(({ seconds }) => seconds))].sort((a, b) => a - b)
}

describe('range with only an hourly provider', () => {
  it('is stored with hourly steps, and is not requested again', async () => {
    const { context } = pipeline
    const { coinmarketcap } = context.config.providers
    const providers = { ...context.config.providers, coinmarketcap: { ...coinmarketcap, apiKey: undefined } }
    const keyless = { ...context, config: { ...context.config, providers } }
    await recordExpected(context.db, prices.dataset, [{ entity: ALL_ENTITIES, ...RANGE, interval: '5m' }])
    expect(await collectMissing(keyless)).toBeGreaterThan(0)
    expect(await steps()).toEqual([3600])
    expect(await collectMissing(keyless)).toBe(0)
  })

  it('is filled when the key of a finer provider is added', async () => {
    expect(await collectMissing(pipeline.context)).toBeGreaterThan(0)
    expect(await steps()).toEqual([300, 3600])
    expect(await collectMissing(pipeline.context)).toBe(0)
  })
})
