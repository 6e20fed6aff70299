import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DataError } from '../shared/errors.ts'
import { findFreePort } from '../shared/free-port.ts'
import { readCommandLine } from './processes.ts'

export interface RedisServer {
  readonly url: string
  readonly child: ChildProcess
  /** Resolves when it has ended, requested or not. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

export interface RedisOptions {
  /** A free port by default. */
  readonly port?: number
  readonly password?: string
  readonly settings?: Readonly<Record<string, string>>
}

/**
 * Starts a private Redis (or Valkey) over a separate folder. Every write goes to its log on disk and nothing is
 * evicted, because lost jobs are lost slots. The settings are in a file that only the owner can read, because command
 * lines are public.
 * @throws DataError `config` if there is no binary or it does not start.
 */
export async function startRedis(dir: string, options: RedisOptions = {}): Promise<RedisServer> {
  const binary = ['redis-server', 'valkey-server'].find((name) => spawnSync(name, ['--version']).status === 0)
  if (binary === undefined)
    throw new DataError('config', 'no redis-server or valkey-server on the PATH, and REDIS_URL is not set')
  mkdirSync(dir, { recursive: true })
  await stopLeftover(dir)
  const { port = await findFreePort(), password } = options
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    dir,
    pidfile: join(dir, 'redis.pid'),
    appendonly: 'yes',
    appendfsync: 'everysec',
    'maxmemory-policy': 'noeviction',
    save: '',
    ...(password === undefined ? {} : { requirepass: password }),
    ...options.settings,
  }
  const child = spawn(binary, [writeSettings(dir, settings)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  // Redis has no channel to this process and would survive its immediate exit.
  const stopWithParent = () => child.kill('SIGTERM')
  process.once('exit', stopWithParent)
  void ended.then(() => process.off('exit', stopWithParent))
  await untilReady(child, dir)
  return {
    url: `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}`,
    child,
    ended,
    stop: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}

function writeSettings(dir: string, settings: Readonly<Record<string, string>>): string {
  const file = join(dir, 'redis.conf')
  rmSync(file, { force: true })
  // Redis parses quoted strings like JSON strings.
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${JSON.stringify(value)}`)
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 })
  return file
}

function untilReady(child: ChildProcess, dir: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-4_000)
      if (/Ready to accept connections/.test(output)) resolve()
    })
    child.once('error', reject)
    child.once('exit', (code) =>
      reject(new DataError('config', `Redis over ${dir} ended with code ${code}:\n${output}`)),
    )
  })
}

const LEFTOVER_POLL_MS = 50
const LEFTOVER_POLLS = 600

/**
 * Stops a server that survived its killed parent: two servers on one append-only file would corrupt it.
 * @throws DataError `config` if it does not end.
 */
async function stopLeftover(dir: string): Promise<void> {
  const pid = readPid(dir)
  if (pid === undefined) return
  process.kill(pid, 'SIGTERM')
  for (let polls = 0; readPid(dir) === pid; polls += 1) {
    if (polls === LEFTOVER_POLLS)
      throw new DataError('config', `Redis, process ${pid}, uses ${dir} and does not end: stop it`)
    await wait(LEFTOVER_POLL_MS)
  }
}

/** The process of the folder's server. Its id may belong to another program by now, even to another Redis. */
function readPid(dir: string): number | undefined {
  const [pid, settings] = [readIfThere(join(dir, 'redis.pid')), readIfThere(join(dir, 'redis.conf'))]
  if (pid === undefined) return undefined
  const port = /^port "(\d+)"$/m.exec(settings ?? '')?.[1] ?? ''
  const command = readCommandLine(Number(pid))
  return /redis-server|valkey-server/.test(command) && command.includes(port) ? Number(pid) : undefined
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
