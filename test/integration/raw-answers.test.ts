import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readBodies, readRuns } from '../../shared/store/store.ts'
import holders from '../../workers/jobs/holders.ts'
import prices from '../../workers/jobs/prices.ts'
import twitter from '../../workers/jobs/twitter.ts'
import { runJob } from '../../workers/run/runner.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const HOUR = 3_600_000
const MORNING = Date.parse('2024-05-06T07:00:00Z')
const ALWAYS = { from: 0, to: Date.UTC(2100, 0, 1) }

let pipeline: ServedPipeline
beforeAll(async () => {
  pipeline = await createServedPipeline({ now: MORNING + 60_000, settings: { RAW_ANSWERS_DAYS: '0' } })
})
afterAll(() => pipeline?.close())
beforeEach(() => pipeline.upstream.faults.clear())

const db = () => pipeline.database.db
const counts = z.object({ rows: z.int(), hashes: z.int(), least: z.string() })
const countBodies = async () => {
  const sql =
    'SELECT count() AS rows, uniqExact(hash) AS hashes, toString(min(kept_until)) AS least FROM raw_answers FINAL'
  return (await db().rows({ name: 'bodies', sql, schema: counts }))[0]
}

describe('raw answers of a run', () => {
  it('are stored once per body, with a link from the run', async () => {
    await pipeline.collect(holders)
    const [run] = await readRuns(db(), 'holders', ALWAYS)
    const sent = pipeline.upstream.requests.count('moralis')
    expect(run).toMatchObject({
      job: 'holders',
      from: MORNING,
      to: MORNING + HOUR,
      decoder: expect.stringMatching(/^[0-9a-f]{12}$/),
    })
    expect(run?.answers).toHaveLength(sent)
    const bodies = await readBodies(db(), run?.answers.map(({ hash }) => hash) ?? [])
    for (const { hash, bytes } of run?.answers ?? []) expect(bodies.get(hash)).toMatchObject({ bytes, omitted: '' })
    const [first] = run?.answers ?? []
    expect(JSON.parse(bodies.get(first?.hash ?? '')?.body ?? '')).toBeTypeOf('object')
    const stored = await countBodies()
    expect(stored).toMatchObject({ rows: stored?.hashes, least: expect.stringMatching(/^2100/) })
  })

  it('name the entity of each request', async () => {
    const [run] = await readRuns(db(), 'holders', ALWAYS)
    const uni = pipeline.tokenOf('UNI')
    const own = run?.answers.filter(({ entities }) => entities.includes(uni.key)) ?? []
    expect(own.map(({ path }) => path)).toEqual([
      expect.stringContaining(`${uni.contractAddress}/`),
      expect.stringContaining(`${uni.contractAddress}/`),
    ])
  })

  it('are stored again without a second body if a slot is collected again', async () => {
    const before = await countBodies()
    await pipeline.collect(holders)
    expect(await readRuns(db(), 'holders', ALWAYS)).toHaveLength(2)
    expect(await countBodies()).toEqual(before)
  })

  it('have the answers of failed requests, with the reason', async () => {
    pipeline.clock.now += HOUR
    pipeline.upstream.faults.set('moralis', { kind: 'status', status: 401 })
    await pipeline.collect(holders).catch(toPendingReport)
    const run = (await readRuns(db(), 'holders', ALWAYS)).at(-1)
    expect(run?.answers.filter(({ provider }) => provider === 'moralis').map(({ status }) => status)).toContain(401)
    expect(run?.outcome.rows.map(({ provider }) => provider)).toEqual(['ethplorer'])
    expect(run?.outcome.failures.map(({ provider }) => provider)).toEqual(['moralis'])
  })

  it('have the state that the run read', async () => {
    await pipeline.collect(twitter)
    const [run] = await readRuns(db(), 'twitter', ALWAYS)
    expect(run?.state).toHaveProperty('account ids', null)
  })

  it('are omitted over the size limit, with hash, size and reason', async () => {
    const config = { ...pipeline.config, rawAnswers: { ...pipeline.config.rawAnswers, maxBytes: 10 } }
    const context = { ...pipeline.context, config }
    pipeline.clock.now += 24 * HOUR
    const slot = Math.floor(pipeline.clock.now / (24 * HOUR)) * 24 * HOUR
    await runJob(twitter, twitter.connect(context), context, { kind: 'slot', slot })
    const run = (await readRuns(db(), 'twitter', ALWAYS)).at(-1)
    const [answer] = run?.answers ?? []
    const bodies = await readBodies(db(), [answer?.hash ?? ''])
    expect(bodies.get(answer?.hash ?? '')).toEqual({
      hash: answer?.hash,
      body: '',
      bytes: answer?.bytes,
      omitted: 'over the limit of 10 bytes (RAW_ANSWERS_MAX_MB)',
    })
  })

  it('are not stored for data that can be fetched again, if its retention is 0', async () => {
    await pipeline.collect(prices)
    expect(await readRuns(db(), 'prices', ALWAYS)).toEqual([])
  })
})
