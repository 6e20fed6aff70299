import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { z } from 'zod'
import type { Config } from '../shared/config/config.ts'
import { DataError } from '../shared/errors.ts'
import { type OpsServer, startOpsServer, toDatabaseCheck } from '../shared/ops/ops-server.ts'
import { createDatabase } from '../shared/store/clickhouse.ts'
import type { Logger } from '../shared/telemetry/log.ts'
import { createSharedMetrics } from '../shared/telemetry/metrics.ts'

/** Pauses before a process is started again. One that has ended this often in a row is given up. */
const PAUSES_MS: readonly number[] = [100, 500, 2_000, 5_000, 10_000]
/** After serving this long a process counts as recovered, and its earlier ends no longer count. */
const ALIVE_MS = 30_000

/** With one, an answer of several seconds would hold up all others. */
const LEAST_ANSWERS_AT_ONCE = 2

/** What a process says of itself once it serves. */
const started = z.object({ serves: z.string() })

/** One of the places in which a process serves, whichever it is at the moment. */
interface Place {
  worker: Worker
  startedAt: number
  deaths: number
  isReady: boolean
  again: NodeJS.Timeout | undefined
}

interface Options {
  readonly log: Logger
  /** Called when a process ends as soon as it is started, time and again: nothing helps then but an operator. */
  readonly onLost: (reason: string) => void
}

/** The share of one of several processes: what is for all of them together is divided. */
export function toShare(config: Config): Config {
  const { processes, cacheBytes, spoolBytes, answersAtOnce, downloadsAtOnce } = config.api
  const share = (whole: number) => Math.floor(whole / processes)
  const api = {
    ...config.api,
    streams: { ...config.api.streams, all: Math.max(1, share(config.api.streams.all)) },
    cacheBytes: share(cacheBytes),
    spoolBytes: share(spoolBytes),
    downloadsAtOnce: Math.max(1, share(downloadsAtOnce)),
    answersAtOnce: Math.max(LEAST_ANSWERS_AT_ONCE, share(answersAtOnce)),
  }
  return { ...config, api, ops: { ...config.ops, apiPort: 0 } }
}

/** Tells the process that started this one where it serves. */
export function tellStarted(url: string): void {
  process.send?.({ serves: url } satisfies z.infer<typeof started>)
}

/**
 * Runs the API in several processes behind one port, and starts again those that end. The process itself serves nothing
 * but the operations port, with the metrics of all of them. Resolves when all serve.
 */
export async function startProcesses(
  config: Config,
  { log, onLost }: Options,
): Promise<{ stop(): Promise<void>; facts: object }> {
  // Each takes connections by itself. Those that this process handed over to one that has just been killed would never
  // end, and handing over halves the number of new connections a second.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  const db = createDatabase(config.clickhouse, 'read')
  let isStopping = false
  const places = new Set<Place>()
  const launch = (place: Omit<Place, 'worker'> & { worker?: Worker }): Place => {
    const running = Object.assign(place, { worker: cluster.fork(), startedAt: performance.now(), isReady: false })
    running.worker.on('error', (error) => log.warn({ err: error }, 'a process of the API could not be told'))
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
    log.warn({ how, pauseMs: pause }, 'a process of the API ended: it is started again')
    place.again = setTimeout(() => launch(place), pause)
  }
  for (let count = 0; count < config.api.processes; count += 1) {
    places.add(launch({ startedAt: 0, deaths: 0, isReady: false, again: undefined }))
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
    for (const { again } of places) clearTimeout(again)
    await Promise.all([...places].map(({ worker }) => endWorker(worker)))
    await Promise.all([ops?.close(), db.close()])
  }
  return { stop, facts: { url, opsPort: ops?.port, pids: [...places].map(({ worker }) => worker.process.pid) } }
}

/** Where a process serves. It resolves too when another one serves in its place. */
function untilServes(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.on('message', (message) => {
      const told = started.safeParse(message)
      if (told.success) resolve(told.data.serves)
    })
    worker.once('exit', () => reject(new DataError('config', 'a process of the API ended before it served')))
  })
}

/** Asks a process to end, which it does when what it is doing is done, and waits for that. */
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
