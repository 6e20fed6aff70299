import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { pathToFileURL } from 'node:url'
import { isStartedByNpm } from './config/started-by.ts'
import { refuseSwallowed } from './config/swallowed-options.ts'
import { DataError, toReason } from './errors.ts'

/** Whether a module is the program's entry point and not an import. */
export function isMain(moduleUrl: string): boolean {
  return process.argv[1] !== undefined && moduleUrl === pathToFileURL(process.argv[1]).href
}

const SAME_SIGNAL_MS = 1_000

/** Interval at which a process that npm started checks whether npm still runs. */
const PARENT_POLL_MS = 500

/** Time limit for a stopping process to finish running work. */
export const STOP_DEADLINE_MS = 25_000

const exitImmediately = () => process.exit(0)

/** A stop signal ends the process immediately until `onStopSignal` registers a handler: no work has started yet. */
export function endOnStopSignal(): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, exitImmediately)
}

/**
 * Calls `stop` on the first SIGTERM or SIGINT and exits when it resolves or its deadline has passed. A second signal
 * ends the process immediately. A process that a parent started over a channel, or that npm started, also stops when
 * the parent exits.
 */
export function onStopSignal(stop: () => Promise<void>, deadlineMs: number = STOP_DEADLINE_MS): void {
  let stoppingSince: number | undefined
  const handle = () => {
    // One Ctrl-C may arrive twice: from the terminal, and from the npm that started this process.
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
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, exitImmediately).on(signal, handle)
  onStarterGone = handle
  watchStarter()
}

/**
 * Called when the parent process exits. Ends the process immediately, unless `onStopSignal` has registered a handler.
 */
let onStarterGone = (): void => process.exit(1)

/** Read at load time: later the parent may have exited and its id may belong to another process. */
const starter = process.ppid
let isWatching = false

/**
 * Stops this process when its parent exits. A parent with a channel is detected by the end of the channel. npm has no
 * channel, and its children survive when it is killed; a changed parent id reveals its exit. Without npm, a process may
 * outlive its shell on purpose.
 */
function watchStarter(): void {
  if (isWatching) return
  isWatching = true
  process.on('disconnect', () => onStarterGone())
  // An open channel keeps a process alive, and a command has to end when its work is done.
  process.channel?.unref()
  // The channel ended before the listener was registered.
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
 * Reports readiness to a parent that reads this process's standard output, as one line of JSON. Call it after
 * `onStopSignal`, because the parent may send a stop signal immediately.
 */
export function announceReady(facts: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify({ ready: true, ...facts })}\n`)
}

/**
 * Runs a program whose only option is `--help`. Any other word prints the help text and fails, because all settings
 * come from the environment.
 */
export function runPart(help: string, main: () => Promise<void>): void {
  const [word] = process.argv.slice(2)
  if (word === undefined) runProgram(main)
  else {
    console.log(`${help}\nSettings come from the environment and .env: see docs/settings.md.`)
    process.exitCode = word === '--help' ? 0 : 2
  }
}

/** Ignores EPIPE: a reader of the output, such as `head`, may exit while the program still has work to do. */
function outliveReaders(): void {
  const ignoreBrokenPipe = (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  }
  process.stdout.on('error', ignoreBrokenPipe)
  process.stderr.on('error', ignoreBrokenPipe)
}

/**
 * Time limit for each address of a host with several addresses to accept a connection, before the next one is tried.
 * Node's default of 250 ms fails for distant hosts. Two seconds allow for a satellite link and for one lost packet,
 * which is resent after a second. On a network that drops IPv6 packets, each connection is delayed by this time once.
 */
const CONNECT_ATTEMPT_MS = 2_000

/** Runs a program. A DataError is printed without a stack, because it addresses the operator. */
export function runProgram(main: () => Promise<void>): void {
  watchStarter()
  outliveReaders()
  setDefaultAutoSelectFamilyAttemptTimeout(CONNECT_ATTEMPT_MS)
  start(main).catch((error: unknown) => {
    console.error(error instanceof DataError ? toReason(error) : error)
    process.exit(1)
  })
}

/**
 * Checks for swallowed options before the command line is parsed: the value of a swallowed option would be parsed as a
 * word.
 */
async function start(main: () => Promise<void>): Promise<void> {
  refuseSwallowed()
  await main()
}
