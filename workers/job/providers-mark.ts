import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import { toId } from '../../shared/ids.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { openState } from './state.ts'

const NAME = 'providers'

/** Tells settings of the providers apart without saying them: a key that was added or changed gives another text. */
const toMark = (config: Config): string => toId(JSON.stringify(config.providers)).slice(0, 12)

/** Notes with which settings a job's workers ask its providers: what others could not give is then due again. */
export async function recordProviders(db: Database, job: string, config: Config): Promise<void> {
  const state = openState(db, job, Date.now)
  if ((await state.get(NAME)) === toMark(config)) return
  state.set(NAME, toMark(config))
  await state.store()
}

const changed = z.object({ at: z.int() })

/**
 * When a worker of the job was started last with other settings than the one before, in Unix milliseconds; 0 before there
 * was any. Where workers differ for good, each change makes what is noted due only once.
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
