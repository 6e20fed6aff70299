import type { Config } from '../../shared/config/config.ts'
import { toId } from '../../shared/ids.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { openState } from './state.ts'

/** Tells settings of the providers apart without saying them: a key that was added or changed gives another text. */
export const toProvidersMark = (config: Config): string => toId(JSON.stringify(config.providers)).slice(0, 12)

const NAME = 'providers'

/** Notes with which settings a job's workers ask its providers: what others could not give is then due again. */
export async function recordProvidersMark(db: Database, job: string, config: Config, now: () => number): Promise<void> {
  const state = openState(db, job, now)
  const mark = toProvidersMark(config)
  if ((await state.get(NAME)) === mark) return
  state.set(NAME, mark)
  await state.store()
}

/** The mark of the worker that was started last; undefined before there was any. */
export const readProvidersMark = (db: Database, job: string): Promise<string | undefined> =>
  openState(db, job, Date.now).get(NAME)
