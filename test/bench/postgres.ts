import pg from 'pg'
import { z } from 'zod'
import type { BenchContext, BenchRow } from './define-benchmark.ts'
import type { BenchDatabase } from './engine.ts'
import { compare, timed } from './measure.ts'
import { POSTGRES_POINTS, startPostgres, toAddress } from './postgres-server.ts'
import type { Range } from './scale-tables.ts'

/** The data to compare with PostgreSQL: a filled database, one of its tokens and the route's response for a range. */
interface Peer {
  readonly database: BenchDatabase
  readonly points: number
  readonly token: number
  request(range: Range): Promise<unknown>
}

const sizeRow = z.object({ bytes: z.number() })

/** The comparisons with PostgreSQL: the same points under the same key. Empty if it is not installed. */
export async function measurePostgres(
  peer: Peer,
  ranges: { day: Range; year: Range },
  { say }: BenchContext,
): Promise<BenchRow[]> {
  const server = await startPostgres(peer.database, say)
  if (server === undefined) return []
  const client = new pg.Client(toAddress(server))
  try {
    await client.connect()
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
      client.query({ name: 'points', text: POSTGRES_POINTS, values: [peer.token, new Date(start), new Date(end)] })
  const against = (what: string, range: Range, times: number) =>
    compare({
      what: `${what} of one token against PostgreSQL, ${peer.points.toLocaleString('en-US')} points`,
      unit: 'ms',
      a: timed('the route', () => peer.request(range), times),
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
