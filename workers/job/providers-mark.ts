import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import { toId } from '../../shared/ids.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { openState } from './state.ts'

const NAME = 'providers'

/** Hashes the provider settings (providersHash) without revealing them. An added or changed key gives another hash. */
const toMark = (config: Config): string => toId(JSON.stringify(config.providers)).slice(0, 12)

/**
 * Records the provider settings of a job's workers. After a change, data that the providers could not serve before is
 * due again.
 */
export async function recordProviders(db: Database, job: string, config: Config): Promise<void> {
  const state = openState(db, job, Date.now)
  if ((await state.get(NAME)) === toMark(config)) return
  state.set(NAME, toMark(config))
  await state.store()
}

const changed = z.object({ at: z.int() })

/**
 * Returns when a worker of the job last started with settings other than the previous worker's, in Unix milliseconds; 0
 * if never. If workers permanently have different settings, each change makes the notes due only once.
 */
export async function readProvidersChange(db: Database, job: string): Promise<number> {
  const [row] = await db.rows({
    name: 'providers-change',
    sql: 'SELECT toUnixTimestamp64Milli(written_at) AS at FROM job_state FINAL WHERE job = {job: String} AND name = {name: String}',
    params: { job, name: NAME },
    schema: changed,
  })
  return row?.at ?? 0
}
