import { readFileSync, rmSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { z } from 'zod'
import { DataError } from '../errors.ts'
import { toJson } from '../json.ts'
import { writePrivate } from './own-stores.ts'

const runningStack = z.object({
  pid: z.int(),
  mode: z.enum(['demo', 'live']),
  /** Separate the system's data from other data on the same stores. */
  settings: z.object({ CLICKHOUSE_DATABASE: z.string(), QUEUE_PREFIX: z.string() }),
})

/** The system that `npm start` or `npm run live` runs over a data folder. Contains no secrets. */
export type RunningStack = z.infer<typeof runningStack>

const toFile = (dataDir: string) => join(dataDir, 'stack.json')

/** Records for the commands that a system runs over a data folder. */
export const writeRunning = (dataDir: string, stack: RunningStack): void => writePrivate(toFile(dataDir), stack)

export const removeRunning = (dataDir: string): void => rmSync(toFile(dataDir), { force: true })

/**
 * Reads the system that runs over a data folder. Ignores the file of a killed system, whose process no longer exists.
 */
function readRunning(dataDir: string): RunningStack | undefined {
  let text: string
  try {
    text = readFileSync(toFile(dataDir), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const { success, data } = runningStack.safeParse(toJson(text))
  if (!success) throw new DataError('config', `${toFile(dataDir)} is malformed: remove it`)
  return isRunning(data.pid) ? data : undefined
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: the process exists but belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

type Environment = Readonly<Record<string, string | undefined>>

const isSet = (env: Environment, name: string) => Boolean(env[name] || env[`${name}_FILE`])

/** The folders of `npm run live` and of `npm start`. If both run, the first has precedence. */
const FOLDERS = ['.data', '.data/demo'] as const

/** Whether the commands search the folder by default. */
export const isFoundFolder = (dataDir: string): boolean => FOLDERS.some((folder) => resolve(folder) === dataDir)

/**
 * Completes an environment with the system that runs here: its data folder, database and queue prefix where they are
 * not set. DATA_DIR chooses among several systems. Calls `say` if the choice may surprise the operator.
 */
export function withRunningStack(env: Environment, say: (line: string) => void): Environment {
  if (isSet(env, 'CLICKHOUSE_URL') && isSet(env, 'REDIS_URL')) return env
  const folders = env.DATA_DIR ? [env.DATA_DIR] : FOLDERS
  const running = folders.flatMap((folder) => {
    const stack = readRunning(resolve(folder))
    return stack === undefined ? [] : [{ folder, ...stack }]
  })
  const [taken, second] = running
  if (taken === undefined) return env
  const otherwise =
    second === undefined ? '' : `; to use the ${second.mode} system, set DATA_DIR=${toShown(second.folder)}`
  if (!env.DATA_DIR && (second !== undefined || taken.mode === 'demo'))
    say(`using the ${taken.mode} system over ${toShown(taken.folder)}${otherwise}`)
  const own = Object.entries({ DATA_DIR: resolve(taken.folder), ...taken.settings })
  return { ...env, ...Object.fromEntries(own.filter(([name]) => !isSet(env, name))) }
}

const toShown = (folder: string) => relative(process.cwd(), resolve(folder)) || '.'

/** Explains why a store without a setting may be unreachable; undefined if all stores are set or a system runs. */
export function toHint(env: Environment): string | undefined {
  const unset = ['CLICKHOUSE_URL', 'REDIS_URL'].filter((name) => !isSet(env, name))
  const folders = env.DATA_DIR ? [env.DATA_DIR] : FOLDERS
  if (unset.length === 0 || folders.some((folder) => readRunning(resolve(folder)) !== undefined)) return undefined
  const where = folders.map(toShown).join(' or ')
  return `no npm start or npm run live runs over ${where}, and ${unset.join(' and ')} ${unset.length === 1 ? 'is' : 'are'} not set`
}
