import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { toInsertCheck } from '../../shared/ops/ops-server.ts'
import prices from '../../workers/jobs/prices.ts'
import { startOwnClickHouse } from '../support/own-clickhouse.ts'
import { createFullDisk, createReadOnlyDisk } from './disk.ts'
import { createWatchedPipeline } from './watched-pipeline.ts'

const MINUTE = 60_000
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const SLOT = Date.parse('2024-05-06T07:00:00Z')
const PROMPTLY = 5_000

describe.each([
  [
    'full',
    createFullDisk,
    /^ClickHouse, insert into (token_quotes_in|job_state): .*(NOT_ENOUGH_SPACE|No space left on device)/,
  ],
  ['read-only', createReadOnlyDisk, /^ClickHouse, insert into (token_quotes_in|job_state): .*Read-only file system/],
])('monitoring of a disk that is %s', (kind, createDisk, reason) => {
  it('reports the fault before the next tick', async ({ skip }) => {
    const disk = createDisk()
    if (disk === undefined) return skip()
    closing.push(() => disk.remove())
    const clickhouse = await startOwnClickHouse({ dataDir: `${disk.dir}/clickhouse` })
    closing.push(() => clickhouse.kill())
    const { settings } = clickhouse
    const pipeline = await createWatchedPipeline(prices, { now: SLOT + PROMPTLY, settings, leavesDatabase: true })
    closing.push(() => pipeline.close())
    const runner = pipeline.serve()
    await once(runner, 'completed')
    expect(await pipeline.status()).toMatchObject({ state: 'fresh' })
    pipeline.takeWarnings()
    const canInsert = toInsertCheck(pipeline.database.db)
    await canInsert()

    disk.fail()
    pipeline.clock.now += 5 * MINUTE
    const failed = once(runner, 'failed')
    await pipeline.scheduler.scan()
    await failed
    if (kind === 'full') await expect(canInsert()).rejects.toThrow(/^ClickHouse's disk is full \(\d+ bytes left\)/)
    expect(await pipeline.metric('worker_storage_failures_total', { dataset: 'prices' })).toBeGreaterThan(0)
    expect(await pipeline.metric('worker_jobs_total', { dataset: 'prices', outcome: 'retried' })).toBeGreaterThan(0)
    const warnings = pipeline.takeWarnings()
    expect(warnings).toContainEqual(
      expect.objectContaining({
        dataset: 'prices',
        msg: 'will be tried again',
        reason: expect.stringMatching(reason),
      }),
    )
    pipeline.clock.now = SLOT + 9 * MINUTE
    await pipeline.watch()
    expect(await pipeline.status()).toMatchObject({ state: 'late' })
    expect(await pipeline.metric('dataset_state', { dataset: 'prices', state: 'late' })).toBe(1)
    expect(pipeline.takeWarnings()).toContainEqual(
      expect.objectContaining({ dataset: 'prices', msg: 'data is late: its newest slot is enqueued but not stored' }),
    )

    if (disk.mend !== undefined) {
      disk.mend()
      await canInsert()
      // The slot is late by now: its job enqueues a history job, and ends before that job does.
      const scan = async () => {
        // The status is cached for some seconds.
        pipeline.clock.now += 10_000
        await pipeline.watch()
        return (await pipeline.status())?.state
      }
      await expect.poll(scan, { interval: 1_000 }).toBe('fresh')
    }
  })
})
