import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DAY_MS } from '../../shared/intervals.ts'
import { toRequest } from '../../workers/commands/replay.ts'
import type { Job } from '../../workers/job/define-job.ts'
import discord from '../../workers/jobs/discord.ts'
import governance from '../../workers/jobs/governance.ts'
import holders from '../../workers/jobs/holders.ts'
import { jobs } from '../../workers/jobs/list.ts'
import marketCap from '../../workers/jobs/market-cap.ts'
import telegram from '../../workers/jobs/telegram.ts'
import twitter from '../../workers/jobs/twitter.ts'
import { replay } from '../../workers/run/runner.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const HOUR = 3_600_000
const MORNING = Date.parse('2024-05-06T07:00:00Z')
const RANGE = { from: MORNING - DAY_MS, to: MORNING + 10 * DAY_MS }

let pipeline: ServedPipeline
beforeAll(async () => {
  pipeline = await createServedPipeline({ now: MORNING + 60_000 })
})
afterAll(() => pipeline?.close())
beforeEach(() => pipeline.upstream.faults.clear())

const read = (job: Job) =>
  pipeline.database.db.rows({
    name: 'rows',
    sql: `SELECT * FROM ${job.dataset.table} FINAL ORDER BY ALL`,
    schema: z.looseObject({}),
  })
const truncate = (table: string) => pipeline.database.db.command({ name: 'drop', sql: `TRUNCATE TABLE ${table}` })
const countRequests = () =>
  ['moralis', 'ethplorer', 'x', 'discord', 'telegram'].map((name) => pipeline.upstream.requests.count(name))
const apply = () => ({ ...pipeline.context, now: Date.now })
const decode = (job: Job) => replay(job, pipeline.context, { range: RANGE })
const correct = (job: Job) => replay(job, pipeline.context, { range: RANGE, apply: apply() })

/** The job with a decoder that changes its rows. */
const withFault = (job: Job, change: (row: object) => object | undefined): Job => ({
  ...job,
  connect: (context) =>
    job.connect(context).map((collector) => ({
      ...collector,
      collect: async (run) => (await collector.collect(run)).flatMap((row) => change(row) ?? []),
    })),
})

describe('replay of stored answers', () => {
  it('finds no difference after slots with failures, retries and several providers', async () => {
    for (let slot = 0; slot < 3; slot += 1) {
      if (slot === 1) pipeline.upstream.faults.set('moralis', { kind: 'status', status: 503 }, { times: 2 })
      if (slot === 2) pipeline.upstream.faults.set('moralis', { kind: 'status', status: 401 })
      await pipeline.collect(holders).catch(toPendingReport)
      pipeline.clock.now += HOUR
    }
    pipeline.upstream.faults.clear()
    for (const job of [twitter, discord, telegram]) await pipeline.collect(job).catch(toPendingReport)
    for (const job of [holders, twitter, discord, telegram]) {
      const before = countRequests()
      const { rows, differences } = await decode(job)
      expect(rows, job.name).toBeGreaterThan(0)
      expect(differences, job.name).toEqual([])
      expect(countRequests()).toEqual(before)
    }
  })

  it('restores lost tables without any request', async () => {
    for (const job of [holders, twitter]) {
      const [rows, requests] = [await read(job), countRequests()]
      await truncate(job.dataset.table)
      const first = await correct(job)
      expect(first.differences.length).toBe(rows.length)
      expect(new Set(first.differences.map(({ kind }) => kind))).toEqual(new Set(['added']))
      expect(await read(job)).toEqual(rows)
      expect((await decode(job)).differences).toEqual([])
      expect(countRequests()).toEqual(requests)
    }
  })

  it('corrects rows that a faulty decoder stored, and records the correction', async () => {
    const truth = await read(holders)
    pipeline.clock.now += HOUR
    const [lost, wrong] = [pipeline.tokenOf('UNI').key, pipeline.tokenOf('AAVE').key]
    const faulty = withFault(holders, (row) => {
      const token = Reflect.get(row, 'token')
      if (token === lost) return undefined
      return token === wrong ? { ...row, total_holders: 123_456_789 } : row
    })
    await pipeline.collect(faulty).catch(toPendingReport)
    const requests = countRequests()
    const { differences } = await correct(holders)
    expect(differences.map(({ kind, entity, members }) => [kind, entity, members])).toEqual(
      expect.arrayContaining([
        ['changed', wrong, ['total_holders']],
        ['added', lost, expect.arrayContaining(['holders', 'total_holders'])],
      ]),
    )
    expect(differences).toHaveLength(2)
    expect(countRequests()).toEqual(requests)
    expect((await decode(holders)).differences).toEqual([])
    const rows = await read(holders)
    expect(rows.length - truth.length).toBe(holders.entities(pipeline.registry).length)
    expect(JSON.stringify(rows)).not.toContain('123456789')
    const changes = await (await fetch(`${pipeline.url}/data/changes?dataset=holders`)).json()
    expect(changes).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ entity: pipeline.tokenOf('AAVE').id, job: 'holders-history' }),
      ]),
    )
  })

  it('removes rows that only a faulty decoder has', async () => {
    pipeline.clock.now += DAY_MS
    const truth = await read(discord)
    const faulty = withFault(discord, (row) => {
      const at = Date.parse(String(Reflect.get(row, 'observed_at')))
      return { ...row, observed_at: new Date(at - 1000).toISOString() }
    })
    await pipeline.collect(faulty).catch(toPendingReport)
    const wrong = (await read(discord)).length - truth.length
    const { differences } = await correct(discord)
    expect(wrong).toBeGreaterThan(0)
    expect(differences.filter(({ kind }) => kind === 'removed')).toHaveLength(wrong)
    expect(differences.filter(({ kind }) => kind === 'added')).toHaveLength(wrong)
    expect((await decode(discord)).differences).toEqual([])
    expect((await read(discord)).length).toBe(truth.length + wrong)
  })

  it('names the request whose answer is not stored', async () => {
    await truncate('raw_answers')
    await expect(decode(twitter)).rejects.toThrow(
      /^run of 2024-05-06T.*: x: GET .*\/2\/users.*: the body [0-9a-f]{64} is not stored any more$/,
    )
  })

  it('refuses computed datasets and datasets in several tables', async () => {
    await expect(decode(marketCap)).rejects.toThrow(
      'market-cap has no answers of providers: it is computed from prices. Replay its input.',
    )
    await expect(decode(governance)).rejects.toThrow('governance: its rows are stored in several tables')
  })
})

describe('command line of replay', () => {
  it('lists every mistake', () => {
    expect(() => toRequest(['unknown', 'more'], { from: '2024-02-01', to: '2024-01-01' })).toThrow(
      `unknown: no such dataset; there are ${jobs.map(({ name }) => name).join(', ')}\none dataset at a time, not more too\n--from is not before --to`,
    )
    expect(() => toRequest([], {})).toThrow('name a dataset\n--from is required')
  })
  it('has a dataset and a range', () => {
    expect(toRequest(['holders'], { from: '2024-01-01', to: '2024-01-02' })).toMatchObject({
      job: holders,
      range: { from: Date.parse('2024-01-01'), to: Date.parse('2024-01-02') },
    })
  })
})
