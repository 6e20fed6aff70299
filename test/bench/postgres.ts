import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { z } from 'zod'
import { findFreePort } from '../../shared/free-port.ts'
import type { BenchContext, BenchRow } from './define-benchmark.ts'
import type { BenchDatabase } from './engine.ts'
import { compare, timed } from './measure.ts'
import type { Range } from './scale-tables.ts'

/** What PostgreSQL is compared with: a filled database, one of its tokens and how the route answers a range of it. */
interface Peer {
  readonly database: BenchDatabase
  readonly points: number
  readonly token: number
  ask(range: Range): Promise<unknown>
}

const COLUMNS = 'token, observed_at, price, volume_24h, market_cap, total_supply, circulating_supply'

const TABLE = `CREATE UNLOGGED TABLE token_prices (token bigint, observed_at timestamptz, price double precision, volume_24h double precision,
  market_cap double precision, total_supply double precision, circulating_supply double precision)`

/** The JSON of the route, written by the server as well. */
const POINTS = `SELECT json_agg(json_build_object('timestamp', observed_at, 'quote', json_build_object('USD', json_build_object('price', price,
  'volume_24h', volume_24h, 'market_cap', market_cap, 'total_supply', total_supply, 'circulating_supply', circulating_supply,
  'timestamp', observed_at))) ORDER BY observed_at)::text AS points
FROM token_prices WHERE token = $1 AND observed_at >= $2 AND observed_at < $3`

const sizeRow = z.object({ bytes: z.number() })

const HOME = '/usr/lib/postgresql'

/** The rows that compare with PostgreSQL: the same points under the same key. None where its server is not installed. */
export async function measurePostgres(
  peer: Peer,
  ranges: { day: Range; year: Range },
  { say }: BenchContext,
): Promise<BenchRow[]> {
  const bin = findBinaries()
  if (bin === undefined) {
    say(`PostgreSQL skipped: no server in ${HOME} (apt-get install postgresql)`)
    return []
  }
  const server = await startPostgres(bin)
  const client = new pg.Client({ host: server.dir, port: server.port, user: 'bench', database: 'postgres' })
  try {
    await client.connect()
    await client.query(TABLE)
    say(`copying ${peer.points.toLocaleString('en-US')} points to PostgreSQL`)
    await copy(peer.database, join(bin, 'psql'), server)
    await client.query('ALTER TABLE token_prices ADD PRIMARY KEY (token, observed_at)')
    await client.query('VACUUM ANALYZE token_prices')
    return await compareAll(peer, ranges, client)
  } finally {
    await client.end()
    await server.stop()
  }
}

async function compareAll(
  peer: Peer,
  { day, year }: { day: Range; year: Range },
  client: pg.Client,
): Promise<BenchRow[]> {
  const query =
    ({ start, end }: Range) =>
    () =>
      client.query({ name: 'points', text: POINTS, values: [peer.token, new Date(start), new Date(end)] })
  const against = (what: string, range: Range, times: number) =>
    compare({
      what: `${what} of one token against PostgreSQL, ${peer.points.toLocaleString('en-US')} points`,
      unit: 'ms',
      a: timed('the route', () => peer.ask(range), times),
      b: timed('PostgreSQL', query(range), times),
      rounds: 9,
    })
  const rows = [await against('one day', day, 20), await against('one year', year, 1)]
  const sizes = await client.query("SELECT pg_total_relation_size('token_prices')::bigint AS bytes")
  const b = { name: 'PostgreSQL, with its key', value: Number(sizes.rows[0]?.bytes) / peer.points, unit: 'B/point' }
  const a = { name: 'raw table', value: (await readRawBytes(peer.database)) / peer.points, unit: 'B/point' }
  return [...rows, { what: 'a price point on disk against PostgreSQL', a, b, ratio: a.value / b.value }]
}

async function readRawBytes({ db }: BenchDatabase): Promise<number> {
  const sql =
    "SELECT sum(bytes_on_disk) AS bytes FROM system.parts WHERE database = currentDatabase() AND active AND table = 'token_prices'"
  const [row] = await db.rows({ name: 'raw-bytes', sql, schema: sizeRow })
  return row?.bytes ?? Number.NaN
}

/** The newest version's programs. */
function findBinaries(): string | undefined {
  if (!existsSync(HOME)) return undefined
  const versions = readdirSync(HOME).sort((a, b) => Number(b) - Number(a))
  return versions.map((version) => join(HOME, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')))
}

interface PostgresServer {
  /** Its data and its socket. */
  readonly dir: string
  readonly port: number
  stop(): Promise<void>
}

/** A cluster of its own in a temporary folder; it never runs as root, because PostgreSQL refuses to. */
async function startPostgres(bin: string): Promise<PostgresServer> {
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

/** Both sides speak the same tab-separated text, `\N` being null. */
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
  })
  await pipeline(rows, child.stdin)
  const code = await exited
  if (code !== 0) throw new Error(`psql ended with code ${code}`)
}
