import { join } from 'node:path'
import type { Config } from '../../shared/config/config.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { startChild, untilReady } from '../../tools/children.ts'
import { toStoreSettings } from './store-settings.ts'

const FILES = { worker: 'workers/programs/worker.ts', scheduler: 'workers/programs/scheduler.ts' } as const

/** A worker or scheduler in a separate process, over the stores of a test's configuration. */
export async function startProcess(kind: keyof typeof FILES, config: Config, settings: Record<string, string> = {}) {
  const port = String(await findFreePort())
  const child = startChild(kind, join(import.meta.dirname, '../..', FILES[kind]), {
    ...toStoreSettings(config),
    LOG_LEVEL: 'silent',
    OPS_HOST: '127.0.0.1',
    WORKER_OPS_PORT: port,
    SCHEDULER_OPS_PORT: port,
    ...settings,
  })
  const { opsPort } = await untilReady(child)
  const get = (path: string) => fetch(`http://127.0.0.1:${opsPort}${path}`)
  return { ...child, get, metrics: async () => (await get('/metrics')).text() }
}
