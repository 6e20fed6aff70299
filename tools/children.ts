import { type ChildProcess, spawn } from 'node:child_process'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { toChildEnvironment } from '../shared/config/config.ts'
import { DataError, toReason } from '../shared/errors.ts'

/** A program of the system that runs as a separate process. */
export interface Child {
  readonly name: string
  readonly process: ChildProcess
  /** The exit as text. A process that failed to start counts as ended. */
  readonly ended: Promise<string>
  /** The end of its standard error, with `keepsOutput`. */
  lastOutput(): string
  /** Sends SIGTERM and resolves after the exit. */
  stop(): Promise<void>
}

const MAX_OUTPUT = 2_000

const ROOT = join(import.meta.dirname, '..')
/** Programs that are compiled themselves run compiled ones. */
let compiledIn = import.meta.filename.endsWith('.js') ? ROOT : undefined

/**
 * Makes later calls run the programs compiled into this folder by `build`. Compiled programs start in half the time.
 */
export function runCompiledIn(folder: string): void {
  compiledIn = folder
}

/** Node's arguments for a TypeScript file: its compiled version if there is one, else tsx. */
export function toProgram(file: string): string[] {
  const inside = relative(ROOT, file)
  if (compiledIn === undefined || inside.startsWith('..')) return ['--import', 'tsx', file]
  return [join(compiledIn, inside).replace(/\.ts$/, '.js')]
}

/**
 * Starts a TypeScript program in a separate process group. So Ctrl-C reaches only the parent, which stops its children
 * in order. Through an open channel, the child detects the death of its parent and stops.
 */
export function startChild(
  name: string,
  file: string,
  env: NodeJS.ProcessEnv,
  args: readonly string[] = [],
  options: { keepsOutput?: boolean } = {},
): Child {
  const child = spawn(process.execPath, [...toProgram(file), ...args], {
    env: toChildEnvironment(env),
    stdio: ['ignore', 'pipe', options.keepsOutput ? 'pipe' : 'inherit', 'ipc'],
    detached: true,
  })
  let output = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    process.stderr.write(text)
    output = (output + text).slice(-MAX_OUTPUT)
  })
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`))
    // If the system cannot start a process, there is no exit event.
    child.once('error', (error) => resolve(toReason(error)))
  })
  return {
    name,
    process: child,
    ended,
    lastOutput: () => output,
    stop: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/**
 * Waits for the child's line `{"ready": true, ...}`, or `{"url": ...}` of programs that only announce an address.
 * @throws DataError `config` if it exits before that.
 */
export function untilReady(child: Pick<Child, 'name' | 'process'>): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const output = child.process.stdout
    if (output === null) throw new Error(`${child.name} was started without a standard output`)
    createInterface({ input: output }).on('line', (line) => {
      const facts = toFacts(line)
      if (facts !== undefined) resolve(facts)
    })
    const refuse = (how: unknown) =>
      reject(new DataError('config', `${child.name} ended with ${how} before it was ready`))
    child.process.once('exit', (code, signal) => refuse(signal ?? `code ${code}`))
    child.process.once('error', (error) => refuse(toReason(error)))
  })
}

function toFacts(line: string): Record<string, unknown> | undefined {
  // Only a line that is such an object: a child may print other lines with braces, such as traces on a console.
  if (!line.startsWith('{"')) return undefined
  const value: unknown = JSON.parse(line)
  return typeof value === 'object' && value !== null ? { ...value } : undefined
}
