import { z } from 'zod'
import { callRedis } from '../../shared/queue/queues.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Job } from '../job/define-job.ts'
import { openState } from '../job/state.ts'
import { rebuildDerived } from '../rebuild/rebuild-derived.ts'
import { announce, noteChange } from './changes.ts'
import type { JobContext } from './run-job.ts'

const correctedRow = z.object({ entity: z.number(), at: z.string() })

type Context = Pick<JobContext, 'config' | 'db' | 'log' | 'redis' | 'recomputation' | 'now'>

/**
 * Opens the corrections of a replay. A mark in the job's state, stored before the first correction, has the time from
 * which corrections may lack what depends on them. `finish` removes the mark. The next replay of the dataset therefore
 * completes one that was killed at any place, whatever differences it finds itself.
 */
export async function openCorrections(job: Job, context: Context) {
  const { dataset } = job
  const { db, log, now, recomputation } = context
  const state = openState(db, 'replay', now)
  const mark = (await state.get(dataset.name)) ?? ''
  let since = mark === '' ? undefined : Number(mark)
  const isResumed = since !== undefined
  return {
    /** Stores the record of corrections, before the corrections themselves. */
    async add(corrections: readonly object[]): Promise<void> {
      since ??= now()
      await state.save(dataset.name, String(since))
      const storedAt = new Date(Math.max(now(), since)).toISOString()
      await db.insert({ table: 'corrections', rows: corrections, every: { stored_at: storedAt } })
    },
    /**
     * Computes what depends on the corrected rows and publishes their change. Call it after the last correction. Derived
     * tables are computed again if `isReduced`, because a derived row is replaced only by one of more rows.
     */
    async finish(isReduced: boolean): Promise<void> {
      if (since === undefined) return
      // A killed replay may have stored rows without their derived ones, too.
      const derived = isResumed || isReduced ? await rebuildDerived(dataset, { db, database: db.name, log }) : []
      const corrected = await readCorrected(db, dataset.name, since)
      const rows = corrected.map(({ entity, at }) => ({
        ...(dataset.entity === undefined ? {} : { [dataset.entity]: entity }),
        [dataset.series.time]: at,
      }))
      await callRedis(`what is computed from ${dataset.name}`, () => recomputation.enqueue(dataset, rows))
      await noteChange(context, job, rows)
      await announce(dataset, context, derived.length > 0 ? [] : rows)
      await state.save(dataset.name, '')
    },
  }
}

/** The entities and times of the rows that were corrected since a time, in Unix milliseconds. */
const readCorrected = (db: Database, dataset: string, since: number) =>
  db.rows({
    name: 'replay-corrected',
    sql: `SELECT DISTINCT entity, observed_at AS at FROM corrections
WHERE dataset = {dataset: String} AND stored_at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')`,
    params: { dataset, since },
    schema: correctedRow,
  })
