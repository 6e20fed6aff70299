import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../../shared/free-port.ts'
import { startChild, untilReady } from '../../tools/children.ts'
import { startRedis } from '../../tools/redis-server.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import type { BenchDatabase } from './engine.ts'

/** The API as a separate process. */
export interface ApiProcess {
  readonly url: string
  readonly pid: number
  readonly opsPort: number
}

/** Runs `work` with an API over the database and a private Redis. */
export async function withApi<T>(
  { config }: BenchDatabase,
  settings: Readonly<Record<string, string>>,
  work: (api: ApiProcess) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-redis-'))
  const redis = await startRedis(folder)
  const opsPort = await findFreePort()
  const child = startChild('API', join(import.meta.dirname, '../../api/main.ts'), {
    ...toStoreSettings(config),
    REDIS_URL: redis.url,
    LOG_LEVEL: 'warn',
    API_PORT: '0',
    API_OPS_PORT: String(opsPort),
    ...settings,
  })
  try {
    return await work({ url: String((await untilReady(child)).url), pid: Number(child.process.pid), opsPort })
  } finally {
    await child.stop()
    await redis.stop()
    await rm(folder, { recursive: true, force: true })
  }
}
