import { pathToFileURL } from 'node:url'
import { DataError, toReason } from './errors.ts'

/** Whether a module is the program itself and not an import of another one. */
export function isMain(moduleUrl: string): boolean {
  return process.argv[1] !== undefined && moduleUrl === pathToFileURL(process.argv[1]).href
}

const SAME_SIGNAL_MS = 1_000

/** How often a part that npm started looks whether npm is still there. */
const PARENT_POLL_MS = 500

/** How long a stopping process may finish what it has begun. */
const STOP_DEADLINE_MS = 25_000

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
  process.on('SIGTERM', handle)
  process.on('SIGINT', handle)
  onStarterGone = handle
  watchStarter()
}

/** Until `onStopSignal` says better, a process whose starter is gone ends at once. */
let onStarterGone = (): void => process.exit(1)

/** Taken when the program is loaded: later whoever started it may be gone already. */
const starter = process.ppid
let isWatching = false

/**
 * Notices that whoever started this process is gone: a parent by its channel, npm, which has none and when killed takes
 * nothing with it, by the id of the parent. A process that somebody started without npm may outlive its shell on purpose.
 */
function watchStarter(): void {
  if (isWatching) return
  isWatching = true
  process.on('disconnect', () => onStarterGone())
  // Who listens to the channel would wait for its end: a command ends when its work is done.
  process.channel?.unref()
  // It had a channel, and has none any more: the event came before anybody listened.
  if (process.connected === false) setImmediate(() => onStarterGone())
  if (process.connected !== undefined || process.env.npm_lifecycle_event === undefined) return
  const poll = setInterval(() => {
    if (process.ppid === starter) return
    clearInterval(poll)
    onStarterGone()
  }, PARENT_POLL_MS)
  poll.unref()
}

/**
 * Tells a parent that follows this process's standard output that it is ready, as one line of JSON. After `onStopSignal`:
 * a parent may ask it to stop at once.
 */
export function announceReady(facts: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify({ ready: true, ...facts })}\n`)
}

/**
 * Runs a program that takes no words on its command line, which are settings instead: `--help` prints what it is, and
 * anything else is refused with it.
 */
export function runPart(help: string, main: () => Promise<void>): void {
  const [word] = process.argv.slice(2)
  if (word === undefined) runProgram(main)
  else {
    console.log(`${help}\nIt takes its settings from the environment and .env: see README.md, Settings.`)
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

/** Whether `parseArgs` refused what stands on the command line. */
const isMistyped = (error: unknown) =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS_')

/** Runs a program; a DataError and a mistyped option are the operator's to read and are printed without a stack. */
export function runProgram(main: () => Promise<void>): void {
  watchStarter()
  outliveReaders()
  main().catch((error: unknown) => {
    console.error(error instanceof DataError || isMistyped(error) ? toReason(error) : error)
    process.exit(1)
  })
}
