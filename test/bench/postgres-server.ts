import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { findFreePort } from '../../shared/free-port.ts'
import type { BenchDatabase } from './engine.ts'

export const COLUMNS = 'token, observed_at, price, volume_24h, market_cap, total_supply, circulating_supply'

const TABLE = `CREATE UNLOGGED TABLE token_prices (token bigint, observed_at timestamptz, price double precision, volume_24h double precision,
  market_cap double precision, total_supply double precision, circulating_supply double precision)`

const TIME = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** The route's response as JSON written by the server: of token $1 from $2 until before $3. */
export const POSTGRES_POINTS = `SELECT '[' || coalesce(string_agg(row_to_json(point)::text, ',' ORDER BY timestamp), '') || ']' AS points
FROM (SELECT ${TIME('observed_at')} AS timestamp, (SELECT row_to_json(quote) FROM (SELECT (SELECT row_to_json(usd) FROM (SELECT price, volume_24h, market_cap,
  total_supply, circulating_supply, ${TIME('observed_at')} AS timestamp) AS usd) AS "USD") AS quote) AS quote
FROM token_prices WHERE token = $1 AND observed_at >= $2 AND observed_at < $3) AS point`

const HOME = '/usr/lib/postgresql'

/** A running server with every stored price under the same key. */
export interface PostgresServer {
  /** Its data and its socket. */
  readonly dir: string
  readonly port: number
  readonly pid: number
  stop(): Promise<void>
}

/** Starts a server and copies the prices. Returns undefined with a message if PostgreSQL is not installed. */
export async function startPostgres(
  database: BenchDatabase,
  say: (line: string) => void,
): Promise<PostgresServer | undefined> {
  const bin = findBinaries()
  if (bin === undefined) {
    say(`PostgreSQL skipped: no server in ${HOME} (apt-get install postgresql)`)
    return undefined
  }
  const server = await start(bin)
  const client = new pg.Client({ ...toAddress(server) })
  try {
    await client.connect()
    await client.query(TABLE)
    say('copying the prices to PostgreSQL')
    await copy(database, join(bin, 'psql'), server)
    await client.query('ALTER TABLE token_prices ADD PRIMARY KEY (token, observed_at)')
    await client.query('VACUUM ANALYZE token_prices')
    return server
  } catch (error) {
    await server.stop()
    throw error
  } finally {
    await client.end()
  }
}

export const toAddress = ({ dir, port }: Pick<PostgresServer, 'dir' | 'port'>) => ({
  host: dir,
  port,
  user: 'bench',
  database: 'postgres',
})

/** The programs of the newest version. */
function findBinaries(): string | undefined {
  if (!existsSync(HOME)) return undefined
  const versions = readdirSync(HOME).sort((a, b) => Number(b) - Number(a))
  return versions.map((version) => join(HOME, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')))
}

/** Starts a private database cluster in a temporary folder, not as root, because PostgreSQL refuses to run as root. */
async function start(bin: string): Promise<PostgresServer> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-postgres-'))
  const user = process.getuid?.() === 0 ? findUser() : undefined
  if (user !== undefined) chownSync(dir, user.uid, user.gid)
  const data = join(dir, 'data')
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'bench', '-A', 'trust', '-E', 'UTF8', '--locale=C'], {
    ...user,
    cwd: dir,
    stdio: 'ignore',
  })
  const port = await findFreePort()
  const settings = {
    listen_addresses: '',
    unix_socket_directories: dir,
    shared_buffers: '1GB',
    maintenance_work_mem: '1GB',
    max_wal_size: '4GB',
    jit: 'off',
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn(join(bin, 'postgres'), ['-D', data, '-p', String(port), ...options], {
    ...user,
    cwd: dir,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await untilReady(child)
  return {
    dir,
    port,
    pid: Number(child.pid),
    stop: async () => {
      child.kill('SIGINT')
      await exited
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function findUser(): { uid: number; gid: number } {
  const id = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

function untilReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (/ready to accept connections/.test(text)) resolve()
    })
    child.once('exit', (code) => reject(new Error(`PostgreSQL ended with code ${code} before it was ready`)))
  })
}

/** Both sides support the same tab-separated text with `\N` for null. */
async function copy({ db }: BenchDatabase, psql: string, { dir, port }: PostgresServer): Promise<void> {
  const sql = `COPY token_prices (${COLUMNS}) FROM STDIN`
  const child = spawn(psql, ['-h', dir, '-p', String(port), '-U', 'bench', '-q', '-d', 'postgres', '-c', sql], {
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const rows = await db.stream({
    name: 'copy',
    sql: `SELECT ${COLUMNS} FROM token_prices FINAL`,
    format: 'TabSeparated',
    isLong: true,
    settings: { max_execution_time: 0 },
  })
  await pipeline(rows, child.stdin)
  const code = await exited
  if (code !== 0) throw new Error(`psql ended with code ${code}`)
}
