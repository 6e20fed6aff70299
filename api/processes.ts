import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { z } from 'zod'
import type { Config } from '../shared/config/config.ts'
import { DataError } from '../shared/errors.ts'
import { type OpsServer, startOpsServer, toDatabaseCheck } from '../shared/ops/ops-server.ts'
import { createDatabase } from '../shared/store/store.ts'
import type { Logger } from '../shared/telemetry/log.ts'
import { createSharedMetrics } from '../shared/telemetry/metrics.ts'

/** Pauses before a process is restarted. The number of pauses is the maximum of consecutive restarts. */
const PAUSES_MS: readonly number[] = [100, 500, 2_000, 5_000, 10_000]
/** After serving for this time a process counts as recovered, and its earlier exits no longer count. */
const ALIVE_MS = 30_000

/** With one, an answer of several seconds would block all others. */
const MIN_ANSWERS = 2

/** The message of a process that has started to serve. */
const started = z.object({ serves: z.string() })

/** A slot for a process; restarts replace the worker. */
interface Place {
  worker: Worker
  startedAt: number
  deaths: number
  isReady: boolean
  restartTimer: NodeJS.Timeout | undefined
}

interface Options {
  readonly log: Logger
  /** Called when a process repeatedly exits directly after its start: only an operator can help then. */
  readonly onLost: (reason: string) => void
}

/** The configuration of one of several processes: budgets for all processes together are divided. */
export function toShare(config: Config): Config {
  const { processes, cacheBytes, spoolBytes, maxAnswers, maxDownloads } = config.api
  const share = (total: number) => Math.floor(total / processes)
  const api = {
    ...config.api,
    streams: { ...config.api.streams, all: Math.max(1, share(config.api.streams.all)) },
    cacheBytes: share(cacheBytes),
    spoolBytes: share(spoolBytes),
    maxDownloads: Math.max(1, share(maxDownloads)),
    maxAnswers: Math.max(MIN_ANSWERS, share(maxAnswers)),
  }
  return { ...config, api, ops: { ...config.ops, apiPort: 0 } }
}

/** Reports the address of this process to its parent. */
export function reportStarted(url: string): void {
  process.send?.({ serves: url } satisfies z.infer<typeof started>)
}

/**
 * Runs the API in several processes behind one port, and restarts those that exit. The parent serves only the
 * operations port, with the metrics of all processes. Resolves when all serve.
 */
export async function startProcesses(
  config: Config,
  { log, onLost }: Options,
): Promise<{ stop(): Promise<void>; facts: object }> {
  // The workers accept connections themselves. If the parent distributed them, connections passed to a killed process
  // would never end, and the number of new connections per second would halve.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  const db = createDatabase(config.clickhouse, 'read')
  let isStopping = false
  const places = new Set<Place>()
  const launch = (place: Omit<Place, 'worker'> & { worker?: Worker }): Place => {
    const running = Object.assign(place, { worker: cluster.fork(), startedAt: performance.now(), isReady: false })
    running.worker.on('error', (error) => log.warn({ err: error }, 'message to an API process could not be sent'))
    running.worker.once('exit', (code, signal) => ended(running, signal ?? `code ${code}`))
    running.worker.on('message', (message) => {
      if (started.safeParse(message).success) running.isReady = true
    })
    return running
  }
  const ended = (place: Place, how: string) => {
    place.isReady = false
    if (isStopping) return
    place.deaths = performance.now() - place.startedAt < ALIVE_MS ? place.deaths + 1 : 1
    const pause = PAUSES_MS[place.deaths - 1]
    if (pause === undefined)
      return onLost(`a process of the API ended with ${how} for the ${place.deaths}th time in a row`)
    log.warn({ how, pauseMs: pause }, 'an API process exited and is restarted')
    place.restartTimer = setTimeout(() => launch(place), pause)
  }
  for (let count = 0; count < config.api.processes; count += 1) {
    places.add(launch({ startedAt: 0, deaths: 0, isReady: false, restartTimer: undefined }))
  }
  const [url] = await Promise.all([...places].map(({ worker }) => untilServes(worker)))
  const ops = await startOps(config, {
    clickhouse: toDatabaseCheck(db),
    service: async () => {
      if (isStopping || ![...places].some(({ isReady }) => isReady)) throw new Error('no process serves')
    },
  })
  log.info({ url, processes: places.size, opsPort: ops?.port }, 'API started')
  const stop = async () => {
    isStopping = true
    for (const { restartTimer } of places) clearTimeout(restartTimer)
    await Promise.all([...places].map(({ worker }) => endWorker(worker)))
    await Promise.all([ops?.close(), db.close()])
  }
  return { stop, facts: { url, opsPort: ops?.port, pids: [...places].map(({ worker }) => worker.process.pid) } }
}

/** Resolves with the address of a process, also when a restarted process serves instead. */
function untilServes(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.on('message', (message) => {
      const parsed = started.safeParse(message)
      if (parsed.success) resolve(parsed.data.serves)
    })
    worker.once('exit', () => reject(new DataError('config', 'a process of the API ended before it served')))
  })
}

/** Stops a process gracefully and waits for its exit. */
async function endWorker(worker: Worker): Promise<void> {
  if (worker.isDead()) return
  const exited = once(worker, 'exit')
  worker.process.kill('SIGTERM')
  await exited
}

function startOps(
  config: Config,
  checks: Parameters<typeof startOpsServer>[0]['checks'],
): Promise<OpsServer | undefined> {
  const { host, hosts, apiPort: port } = config.ops
  return startOpsServer({ registry: createSharedMetrics(), checks, host, hosts, port, setting: 'API_OPS_PORT' })
}
