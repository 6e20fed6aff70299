import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { pathToFileURL } from 'node:url'
import { isStartedByNpm } from './config/started-by.ts'
import { refuseSwallowed } from './config/swallowed-options.ts'
import { DataError, toReason } from './errors.ts'

/** Whether a module is the program itself and not an import of another one. */
export function isMain(moduleUrl: string): boolean {
  return process.argv[1] !== undefined && moduleUrl === pathToFileURL(process.argv[1]).href
}

const SAME_SIGNAL_MS = 1_000

/** How often a part that npm started looks whether npm is still there. */
const PARENT_POLL_MS = 500

/** How long a stopping process may finish what it has begun. */
export const STOP_DEADLINE_MS = 25_000

/** A process in which nothing has begun. */
const endAtOnce = () => process.exit(0)

/** Until `onStopSignal` has given it a way to stop, a stop signal ends the process at once: nothing has begun yet. */
export function endOnStopSignal(): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, endAtOnce)
}

/**
 * Calls `stop` on the first SIGTERM or SIGINT and exits when it is done or its deadline has passed; a second signal
 * exits at once. A process that a parent started over a channel, or npm, also stops when that is gone.
 */
export function onStopSignal(stop: () => Promise<void>, deadlineMs: number = STOP_DEADLINE_MS): void {
  let stoppingSince: number | undefined
  const handle = () => {
    // One Ctrl-C may arrive more than once: from the terminal, and from the npm that started this process.
    if (stoppingSince !== undefined && performance.now() - stoppingSince < SAME_SIGNAL_MS) return
    if (stoppingSince !== undefined) process.exit(130)
    stoppingSince = performance.now()
    setTimeout(() => process.exit(1), deadlineMs).unref()
    stop().then(
      () => process.exit(),
      (error: unknown) => {
        console.error(toReason(error))
        process.exit(1)
      },
    )
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, endAtOnce).on(signal, handle)
  onStarterGone = handle
  watchStarter()
}

/**
 * What happens when the starter is gone: the process ends at once, unless `onStopSignal` has given it a way to stop.
 */
let onStarterGone = (): void => process.exit(1)

/** Read when the program is loaded: later the starter may be gone, and the id another process's. */
const starter = process.ppid
let isWatching = false

/**
 * Notices that whoever started this process is gone. A parent with a channel is noticed by the channel's end. npm has
 * no channel, and when it is killed its children live on: it is noticed by the id of the parent, which changes. A
 * process that somebody started without npm may outlive its shell on purpose.
 */
function watchStarter(): void {
  if (isWatching) return
  isWatching = true
  process.on('disconnect', () => onStarterGone())
  // An open channel keeps a process alive. A command has to end when its work is done.
  process.channel?.unref()
  // The channel ended before anybody listened to it.
  if (process.connected === false) setImmediate(() => onStarterGone())
  if (process.connected !== undefined || !isStartedByNpm()) return
  const poll = setInterval(() => {
    if (process.ppid === starter) return
    clearInterval(poll)
    onStarterGone()
  }, PARENT_POLL_MS)
  poll.unref()
}

/**
 * Tells a parent that follows this process's standard output that it is ready, as one line of JSON. After
 * `onStopSignal`: a parent may ask it to stop at once.
 */
export function announceReady(facts: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify({ ready: true, ...facts })}\n`)
}

/**
 * Runs a program that takes nothing from its command line but `--help`, which prints what it is. Any other word is
 * refused with the same text: its settings come from the environment.
 */
export function runPart(help: string, main: () => Promise<void>): void {
  const [word] = process.argv.slice(2)
  if (word === undefined) runProgram(main)
  else {
    console.log(`${help}\nIt takes its settings from the environment and .env: see docs/settings.md.`)
    process.exitCode = word === '--help' ? 0 : 2
  }
}

/** Whoever reads the output, such as `head`, may leave; the program's own work goes on without being told of. */
function outliveReaders(): void {
  const ignoreBrokenPipe = (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  }
  process.stdout.on('error', ignoreBrokenPipe)
  process.stderr.on('error', ignoreBrokenPipe)
}

/**
 * How long each address of a host with several may take to accept a connection, before the next one is tried. Node's own 250 ms
 * fail for hosts farther away than that. This is enough for a satellite link, and for one lost packet, which is sent again after
 * a second; a request through a network that drops IPv6 packets is delayed by as much, once per connection.
 */
const CONNECT_ATTEMPT_MS = 2_000

/** Runs a program. A DataError is for the operator, and is printed without a stack. */
export function runProgram(main: () => Promise<void>): void {
  watchStarter()
  outliveReaders()
  setDefaultAutoSelectFamilyAttemptTimeout(CONNECT_ATTEMPT_MS)
  start(main).catch((error: unknown) => {
    console.error(error instanceof DataError ? toReason(error) : error)
    process.exit(1)
  })
}

/** Before any word is looked at: the value of an option that npm kept for itself is one of them. */
async function start(main: () => Promise<void>): Promise<void> {
  refuseSwallowed()
  await main()
}
