import type { Registry } from '../../shared/registry/registry.ts'
import { createDatabase } from '../../shared/store/clickhouse.ts'
import { createHandFeed, type HandFeed, startApi, type TestApi } from './api.ts'
import type { Pipeline } from './pipeline.ts'

export interface Served {
  readonly api: TestApi
  /** Its change events: a test sends them after it has stored rows. */
  readonly changeFeed: HandFeed
  /** Closes the API and the pipeline. */
  close(): Promise<void>
}

/** Starts an API over the database of a pipeline, with its clock. */
export async function servePipeline(pipeline: Pipeline, registry: Registry = pipeline.registry): Promise<Served> {
  const { clock, config } = pipeline
  const db = createDatabase(config.clickhouse, 'read')
  const changeFeed = createHandFeed()
  const api = await startApi({ config, db, registry, changeFeed, now: () => clock.now })
  const close = async () => {
    await api.close()
    await db.close()
    await pipeline.close()
  }
  return { api, changeFeed, close }
}
