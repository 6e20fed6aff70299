import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DataError } from '../shared/errors.ts'
import { readCommandLine } from './processes.ts'

export interface RedisServer {
  readonly url: string
  readonly child: ChildProcess
  stop(): Promise<void>
}

/** A TCP port on the loopback address that nobody listens on. */
export function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

/**
 * Starts a private Redis (or Valkey) over its own folder: every write is logged to disk and nothing is ever evicted,
 * because a queue that forgets jobs loses slots.
 * @throws DataError `config` when there is no binary or it does not start.
 */
export async function startRedis(
  dir: string,
  options: { detached?: boolean; settings?: Readonly<Record<string, string>> } = {},
): Promise<RedisServer> {
  const binary = ['redis-server', 'valkey-server'].find((name) => spawnSync(name, ['--version']).status === 0)
  if (binary === undefined)
    throw new DataError('config', 'no redis-server or valkey-server on the PATH, and REDIS_URL is not set')
  mkdirSync(dir, { recursive: true })
  await stopLeftover(dir)
  const port = await findFreePort()
  const settings = {
    port,
    bind: '127.0.0.1',
    dir,
    pidfile: join(dir, 'redis.pid'),
    appendonly: 'yes',
    appendfsync: 'everysec',
    'maxmemory-policy': 'noeviction',
    save: '',
    ...options.settings,
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'inherit'], detached: options.detached ?? false })
  await untilReady(child, dir)
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  return {
    url: `redis://127.0.0.1:${port}`,
    child,
    stop: async () => {
      child.kill('SIGTERM')
      await exited
    },
  }
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

/** A server that outlived a killed parent still owns the folder; two on one append-only file would corrupt it. */
async function stopLeftover(dir: string): Promise<void> {
  const pid = readPid(join(dir, 'redis.pid'))
  if (pid === undefined) return
  process.kill(pid, 'SIGTERM')
  while (isOurs(pid)) await new Promise((resolve) => setImmediate(resolve))
}

function readPid(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, 'utf8').trim())
    return isOurs(pid) ? pid : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** A process id may have been given to another program since; only a Redis or Valkey is ours to stop. */
const isOurs = (pid: number): boolean => /redis-server|valkey-server/.test(readCommandLine(pid))
