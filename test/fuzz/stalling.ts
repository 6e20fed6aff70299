import type { Config } from '../../shared/config/config.ts'
import { createDatabase } from '../../shared/store/clickhouse.ts'
import { type createApiDatabase, createHandFeed, startApi } from '../support/api.ts'
import { createRandom } from '../support/random.ts'
import { startStatementDoor } from '../support/statement-door.ts'
import { type FuzzResult, runFuzz } from './run.ts'

/** Sends random requests to an API without a cache, whose ClickHouse stalls or breaks off in one body of ten. */
export async function runStalling(
  config: Config,
  database: Awaited<ReturnType<typeof createApiDatabase>>,
  options: { readonly requests: number; readonly seed: number; readonly now: number },
): Promise<FuzzResult> {
  const door = await startStatementDoor(config.clickhouse.url)
  const db = createDatabase({ ...config.clickhouse, url: door.url, answerTimeoutMs: 1_000 }, 'read')
  const random = createRandom(options.seed)
  // Without a cache every request needs its statements.
  const uncached = { ...config, api: { ...config.api, cacheBytes: 0 } }
  const { registry } = database
  const api = await startApi({
    ...{ config: uncached, registry, changeFeed: createHandFeed(), now: () => options.now },
    db,
  })
  try {
    door.endBodies(() => (random.chance(0.1) ? random.pick(['stall', 'stall', 'reset']) : 'complete'))
    return await runFuzz({ url: api.url, ...options, concurrency: 16, mayAbort: true })
  } finally {
    await api.close()
    await Promise.all([db.close(), door.close()])
  }
}
