import { afterEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { type ChangeEvent, createChangeFeed, type Database } from '../../shared/store/store.ts'
import type { Job } from '../../workers/job/define-job.ts'
import dexTrades from '../../workers/jobs/dex-trades.ts'
import holders from '../../workers/jobs/holders.ts'
import prices from '../../workers/jobs/prices.ts'
import { MORALIS_CHAINS } from '../../workers/providers/moralis/client.ts'
import { orderByMarketCap } from '../../workers/providers/stored/market-caps.ts'
import { createRunner, runJob } from '../../workers/run/runner.ts'
import { enqueueDue, planSlot } from '../../workers/schedule/due-slots.ts'
import { countCases, SEED } from '../support/cases.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'
import { silent } from '../support/silent.ts'

const HOUR = 3_600_000
const NOW = Date.parse('2024-05-06T07:05:09Z')

/** The same job with a smaller limit of tokens per slot job. */
const cut = (job: Job): Job => ({ ...job, slotEntities: 10 })
const BATCHES = 16

const opened: ServedPipeline[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((pipeline) => pipeline.close()))
})

/** Two equal services: one runs a slot as one job, the other divides it into several. */
async function openBoth(settings: Readonly<Record<string, string>> = {}) {
  const open = async () => {
    const pipeline = await createServedPipeline({
      registry: loadRegistry(),
      now: NOW,
      nodes: ['ethereum', 'arbitrum'],
      settings: { DEX_FIRST_RUN_HOURS: '3', ...settings },
    })
    opened.push(pipeline)
    // Market caps, which define the largest tokens.
    await pipeline.collect(prices)
    pipeline.upstream.requests.clear()
    return pipeline
  }
  return { full: await open(), split: await open() }
}

/** Enqueues the current slot and collects it with two workers. @returns the number of jobs. */
async function collectSlot(pipeline: ServedPipeline, job: Job): Promise<number> {
  const { context, registry } = pipeline
  const { db, redis, now, config } = context
  const queues = pipeline.queues(job.name)
  await enqueueDue({ job, queues }, { db, redis, registry, log: silent, now, prefix: config.redis.prefix })
  const jobs = await queues.live.getWaitingCount()
  const runners = [createRunner(job, context), createRunner(job, context)]
  let done = 0
  await new Promise<void>((resolve, reject) => {
    for (const runner of runners) {
      runner.on('completed', () => {
        done += 1
        if (done === jobs) resolve()
      })
      runner.on('failed', (_, error) => reject(error))
    }
  })
  await Promise.all(runners.map((runner) => runner.close()))
  return jobs
}

const toSlotJobs = (pipeline: ServedPipeline, job: Job) =>
  planSlot(job, job.entities(pipeline.registry).length, toBucketStart(pipeline.clock.now, job.cadence))

const TABLES: Readonly<Record<string, string>> = {
  token_holders: '* FROM token_holders FINAL',
  token_holders_latest: '* FROM token_holders_latest FINAL',
  dex_trades: '* FROM dex_trades FINAL',
  dex_trade_days: '* EXCEPT computed_at FROM dex_trade_days FINAL',
  dex_trade_parties: '* FROM dex_trade_parties FINAL',
  dex_data: '* EXCEPT computed_at FROM dex_data FINAL',
  coverage: `dataset, entity, year, state, provider, interval_seconds, arraySort(bitmapToArray(groupBitmapMergeState(buckets))) AS buckets
    FROM coverage GROUP BY ALL`,
  coverage_notes: '* EXCEPT written_at FROM coverage_notes FINAL',
  job_state:
    "job, name, value FROM job_state FINAL WHERE match(name, '^(cursors|unfinished|pools|moralis)[.]') AND NOT match(name, 'allowance|answers')",
}
const toPaths = (dataset: string) => [
  '/data/tokens/holders?limit=500',
  '/data/tokens/dex-data?limit=500',
  `/data/status/coverage?dataset=${dataset}`,
]

const row = z.record(z.string(), z.unknown())

/** Stored rows and served responses, by table or path. */
async function readAll(
  { database, url, changeFeed }: ServedPipeline,
  { dataset }: Job,
): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for (const [table, sql] of Object.entries(TABLES)) {
    const rows = await database.db.rows({ name: 'all', sql: `SELECT ${sql} ORDER BY ALL`, schema: row })
    found[table] = rows.map((one) => JSON.stringify(one))
  }
  changeFeed.commit(dataset.name)
  for (const path of toPaths(dataset.name)) {
    const response = await fetch(url + path)
    expect(response.status, path).toBe(200)
    found[path] = await response.text()
  }
  return found
}

/** Requests to the provider, with their counts. */
const toQuery = ({ upstream }: ServedPipeline, name?: string) =>
  upstream.requests
    .all()
    .filter(({ provider }) => name === undefined || provider === name)
    .map(({ provider, path, count }) => `${provider} ${path} ${count}`)
    .sort()

/** Records the change events of a dataset from now on. */
async function followCommits({ context }: ServedPipeline, { dataset }: Job) {
  const { db, config } = context
  const feed = createChangeFeed(createRedis(config.redis.url, silent, 'subscriber'), {
    ...{ db, log: silent },
    prefix: config.redis.prefix,
  })
  await vi.waitFor(() => expect(feed.source).toBe('redis'), { timeout: 60_000, interval: 20 })
  const received: ChangeEvent[] = []
  feed.follow((change) => {
    if (change?.dataset === dataset.name && change.entities !== undefined) received.push(change)
  })
  return {
    /** The merged content of a slot's change events. */
    sum: () => ({
      from: Math.min(...received.map(({ from }) => from ?? Number.NaN)),
      to: Math.max(...received.map(({ to }) => to ?? Number.NaN)),
      entities: received.reduce((sum, { entities }) => sum + (entities ?? 0), 0),
    }),
    close: () => feed.close(),
  }
}

/** Paths of the tokens' swaps in the requests to Moralis, the largest token first. */
async function readLargest({ database, registry, clock }: ServedPipeline): Promise<string[]> {
  const live = dexTrades.entities(registry).filter((token) => isThereAt(token, clock.now))
  const tokens = live.flatMap(({ key }) => registry.tokenByKey.get(key) ?? [])
  const ordered = await orderByMarketCap(database.db, tokens, clock.now)
  return ordered
    .filter(({ chain }) => chain in MORALIS_CHAINS)
    .map(({ contractAddress }) => `/api/v2.2/erc20/${contractAddress}/swaps`)
}

/** A database that fails, like a killed process, after this many further writes. */
function dyingAt(db: Database, writes: number): Database {
  let remaining = writes
  const die = () => {
    remaining -= 1
    if (remaining < 0) throw new DataError('storage', DEAD)
  }
  return {
    ...db,
    insert: async (insertion) => {
      die()
      await db.insert(insertion)
    },
    command: async (statement) => {
      die()
      await db.command(statement)
    },
  }
}

const DEAD = 'the process is dead'

const isDead = (run: Promise<unknown>): Promise<boolean> =>
  run.then(
    () => false,
    (error: unknown) => {
      if (error instanceof DataError && error.message === DEAD) return true
      throw error
    },
  )

/** The hourly share of 80,000 units a day for trades: 1,600 calls, times 0.3, over 24 slots. */
const CALLS = 20

const JOBS = [holders, dexTrades]

describe('slot that is divided into several jobs', () => {
  it.each(JOBS)('stores the rows, coverage, change events and responses of a single job for $name', async (job) => {
    const { full, split } = await openBoth()
    const received = [await followCommits(full, job), await followCommits(split, job)] as const
    for (let slot = 0; slot < 3; slot += 1) {
      expect([await collectSlot(full, job), await collectSlot(split, cut(job))]).toEqual([1, BATCHES])
      const expected = await readAll(full, job)
      expect(expected[job.dataset.table]).not.toHaveLength(0)
      expect(await readAll(split, job)).toEqual(expected)
      expect(toQuery(split, 'moralis')).toEqual(toQuery(full, 'moralis'))
      await vi.waitFor(() => expect(received[1].sum()).toEqual(received[0].sum()), { timeout: 10_000, interval: 20 })
      for (const pipeline of [full, split]) pipeline.clock.now += HOUR
    }
    for (const each of received) each.close()
  })

  it('rotates through the tokens of holders like a single job if the plan is too small for all', async () => {
    const { full, split } = await openBoth({ MORALIS_UNITS_PER_DAY: '40000' })
    for (let slot = 0; slot < 4; slot += 1) {
      await collectSlot(full, holders)
      await collectSlot(split, cut(holders))
      expect(await readAll(split, holders)).toEqual(await readAll(full, holders))
      expect(toQuery(split)).toEqual(toQuery(full))
      expect(split.upstream.requests.count('moralis', '/owners')).toBeLessThanOrEqual((slot + 1) * 10)
      for (const pipeline of [full, split]) pipeline.clock.now += HOUR
    }
    expect(split.upstream.requests.count('moralis', '/owners')).toBeGreaterThanOrEqual(4 * 9)
  })

  it('requests trades of the same largest tokens as a single job, with no more calls', async () => {
    const { full, split } = await openBoth({ RPC_URLS: '', MORALIS_UNITS_PER_DAY: '80000' })
    await collectSlot(full, dexTrades)
    await collectSlot(split, cut(dexTrades))
    const requests = split.upstream.requests.all().filter(({ provider }) => provider === 'moralis')
    const largest = await readLargest(split)
    expect(requests.length).toBeGreaterThan(CALLS / 2)
    expect(requests.filter(({ path }) => !largest.slice(0, CALLS).includes(path))).toEqual([])
    expect(split.upstream.requests.count('moralis')).toBe(CALLS)
    expect(full.upstream.requests.count('moralis')).toBe(CALLS)
  })

  it.each(JOBS)('completes $name if its jobs die at any write and run twice concurrently', async (job) => {
    const { full, split } = await openBoth()
    await collectSlot(full, job)
    const small = cut(job)
    // Few cases: every third write, from another one each day.
    const step = countCases(1) === 1 ? 3 : 1
    let deaths = 0
    await Promise.all(
      toSlotJobs(split, small).map(async ({ payload }) => {
        const run = (db: Database) => runJob(small, small.connect(split.context), { ...split.context, db }, payload)
        let writes = SEED % step
        for (; await isDead(run(dyingAt(split.context.db, writes))); writes += step) deaths += 1
        await Promise.all([run(split.context.db), run(split.context.db)])
      }),
    )
    expect(deaths).toBeGreaterThan(BATCHES / 4)
    expect(await readAll(split, job)).toEqual(await readAll(full, job))
  })
})
