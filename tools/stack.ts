import { type Config, loadConfig, provideSettings } from '../shared/config/config.ts'
import { isFoundFolder, removeRunning, writeRunning } from '../shared/config/running-stack.ts'
import { toReason } from '../shared/errors.ts'
import { findFreePort } from '../shared/free-port.ts'
import { DAY_MS } from '../shared/intervals.ts'
import { onStopSignal, runProgram } from '../shared/process.ts'
import { loadRegistry } from '../shared/registry/registry.ts'
import { createDatabase } from '../shared/store/store.ts'
import { createLog } from '../shared/telemetry/log.ts'
import { probeProviders } from '../workers/probe/probe.ts'
import { toShortReport } from '../workers/probe/report.ts'
import { collectDemoHistory, stopDemo, toDemoSettings } from './demo.ts'
import { lockFolder } from './lock.ts'
import { prepareStores } from './stores.ts'
import { createSupervisor, findDiskFault, type Part } from './supervisor.ts'

const HELP = `tsx tools/stack.ts demo|live

Runs all processes of the system on this machine and stops them together; restarts a process that exits unexpectedly.
Uses the stores of REDIS_URL and CLICKHOUSE_URL; starts a store without a setting as a private child over the data folder.

  demo  simulated providers, a separate database, history back-filled at the start (npm start)
  live  the real providers, settings from .env (npm run live)`

/** Longer than the deadlines of all processes together, because they are stopped one after the other. */
const STOP_DEADLINE_MS = 90_000

const stopping = new AbortController()

/** The data folder, once locked. */
let dataFolder: string | undefined

const supervisor = createSupervisor({
  say: (line) => console.error(line),
  findFault: () => (dataFolder === undefined ? undefined : findDiskFault(dataFolder)),
  onLost: (reason) => {
    console.error(`${reason}\nEverything is stopped.`)
    process.exitCode = 1
    process.kill(process.pid, 'SIGTERM')
  },
})

/** Unlocks the data folder. */
let unlock = () => {}

/** Lets commands find this system. */
function announceRunning({ mode, dataDir, clickhouse, redis }: Config): void {
  // A cluster's prefix has braces, which the setting has not.
  const settings = { CLICKHOUSE_DATABASE: clickhouse.database, QUEUE_PREFIX: redis.prefix.replace(/^\{|\}$/g, '') }
  writeRunning(dataDir, { pid: process.pid, mode, settings })
  const free = unlock
  unlock = () => {
    removeRunning(dataDir)
    free()
  }
}

async function stopAll(): Promise<void> {
  stopping.abort(new Error('the system is stopping'))
  await stopDemo()
  await supervisor.stop()
  unlock()
}

/** The stand-in for the providers. A restart uses the same port, because other processes have its address in their settings. */
async function toUpstream(): Promise<{ part: Part; url: string }> {
  const port = String(await findFreePort())
  const part = { name: 'upstream stand-in', file: 'test/upstream/main.ts', args: ['--port', port] }
  return { part, url: `http://127.0.0.1:${port}` }
}

function printAddresses(config: Config): void {
  const base = config.api.publicUrl
  const start = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10)
  console.log(`${base}/  everything on one page

dao-data is up (${config.mode === 'demo' ? 'DEMO: all numbers are simulated by the local stand-in' : 'live providers'}). Try:
  ${base}/data/tokens
  ${base}/data/tokens/historic-financial?name=Uniswap&interval=1h&start=${start}
  ${base}/data/index/historic?period=30
  ${base}/data/status
  ${base}/reference
${toReach(config)}
Ctrl-C stops everything.
`)
}

/** Sends one small request to each provider, so that a wrong key is reported now and not by missing data tomorrow. */
async function printProviders(config: Config): Promise<void> {
  const db = createDatabase(config.clickhouse, 'read')
  const registry = loadRegistry()
  const [log, now] = [createLog('providers', 'silent'), Date.now()]
  const { signal } = stopping
  try {
    const probes = await probeProviders({ config, registry, db, log, now, signal, isShort: true, timeoutMs: 30_000 })
    console.log(toShortReport(probes))
  } catch (error) {
    // A failed check of the providers must not end the system.
    if (!signal.aborted) console.error(`the providers could not be checked: ${toReason(error)}`)
  } finally {
    await db.close()
  }
}

/** Explains how commands find the stores: through the data folder, or through the operator's settings. */
function toReach({ dataDir }: Config): string {
  const commandsHint = 'The other commands (docs/commands.md) find these stores'
  return isFoundFolder(dataDir)
    ? `${commandsHint} by themselves.`
    : `${commandsHint} with\n  export DATA_DIR='${dataDir}'`
}

/** Runs the system. If a process cannot start, stops the others and reports the reason. */
async function run(): Promise<void> {
  try {
    await main()
  } catch (error) {
    // While stopping, a process that exits before it was ready is not an error.
    if (stopping.signal.aborted) return
    await stopAll()
    throw error
  }
}

async function main(): Promise<void> {
  const [mode, ...more] = process.argv.slice(2)
  if ((mode !== 'demo' && mode !== 'live') || more.length > 0) {
    console.log(HELP)
    process.exitCode = mode === '--help' || more[0] === '--help' ? 0 : 2
    return
  }
  onStopSignal(stopAll, STOP_DEADLINE_MS)
  const upstream = mode === 'demo' ? await toUpstream() : undefined
  if (upstream !== undefined) provideSettings(toDemoSettings(upstream.url))
  // There is only one API here, so no other process takes over its clients.
  provideSettings({ API_DRAIN_SECONDS: '0' })
  const { dataDir } = loadConfig()
  unlock = lockFolder(dataDir)
  dataFolder = dataDir
  const standIns = upstream === undefined ? [] : [supervisor.start(upstream.part)]
  const [config] = await Promise.all([prepareStores(supervisor, mode), ...standIns])
  announceRunning(config)
  const parts: readonly Part[] = [
    { name: 'worker', file: 'workers/programs/worker.ts' },
    { name: 'scheduler', file: 'workers/programs/scheduler.ts' },
  ]
  await Promise.all([
    ...parts.map(supervisor.start),
    // The page is ready before the processes that fill it.
    supervisor.start({ name: 'API', file: 'api/main.ts' }).then(() => printAddresses(config)),
  ])
  if (upstream === undefined) return printProviders(config)
  await collectDemoHistory(config, upstream.url, stopping.signal)
}

runProgram(run)
