import { type ChildProcess, spawn } from 'node:child_process'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { toChildEnvironment } from '../shared/config/config.ts'
import { DataError, toReason } from '../shared/errors.ts'

/** A part of the system that runs as a process of its own. */
export interface Child {
  readonly name: string
  readonly process: ChildProcess
  /** How it ended, in words; a process that could not be started has ended. */
  readonly ended: Promise<string>
  /** The last that it wrote to standard error, where that was asked to be kept. */
  lastOutput(): string
  /** Asks it to stop and resolves when it has. */
  stop(): Promise<void>
}

const KEPT_OUTPUT = 2_000

const ROOT = join(import.meta.dirname, '..')
let compiledIn: string | undefined

/** From now on programs run from the folder into which `build` compiled them: they start in half the time. */
export function runCompiledIn(folder: string): void {
  compiledIn = folder
}

/** Node's arguments that run a TypeScript file: interpreted by tsx, unless it is one of those that were compiled. */
export function toProgram(file: string): string[] {
  const inside = relative(ROOT, file)
  if (compiledIn === undefined || inside.startsWith('..')) return ['--import', 'tsx', file]
  return [join(compiledIn, inside).replace(/\.ts$/, '.js')]
}

/**
 * Starts a TypeScript program in its own process group, so that Ctrl-C reaches only the parent, which stops its
 * children in order. With an open channel to the parent, it stops by itself when the parent is killed.
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
    output = (output + text).slice(-KEPT_OUTPUT)
  })
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`))
    // Where the system has no room for another process there is no exit.
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
 * Waits for the child's line `{"ready": true, ...}` or, for programs that only announce an address, `{"url": ...}`.
 * @throws DataError `config` when it ends before.
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
  // Only a line that is this object: a child may print other lines with braces, such as traces on a console.
  if (!line.startsWith('{"')) return undefined
  const value: unknown = JSON.parse(line)
  return typeof value === 'object' && value !== null ? { ...value } : undefined
}
