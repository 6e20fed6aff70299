import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import compression from 'compression'
import express from 'express'
import pg from 'pg'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { DUCKDB_POINTS, openDuckdb } from './duckdb-file.ts'
import { POSTGRES_POINTS } from './postgres-server.ts'

/**
 * A conventional service for days of prices: Express with compression, over a database with the right index that writes
 * the JSON, as a separate process. The argument is the location of the prices.
 */
const place = z
  .union([z.object({ postgres: z.record(z.string(), z.unknown()) }), z.object({ duckdb: z.string() })])
  .parse(JSON.parse(process.argv[2] ?? ''))

type Read = (token: number, start: string, end: string) => Promise<string>

const row = z.object({ points: z.string() })

function openPostgres(address: object): Read {
  const pool = new pg.Pool({ ...address, max: 8 })
  return async (token, start, end) => {
    const { rows } = await pool.query({ name: 'points', text: POSTGRES_POINTS, values: [token, start, end] })
    return row.parse(rows[0]).points
  }
}

async function openDuckdbFile(file: string): Promise<Read> {
  const { connection } = await openDuckdb(file)
  const statement = await connection.prepare(DUCKDB_POINTS)
  // A prepared statement has one set of parameters at a time.
  let last: Promise<unknown> = Promise.resolve()
  return (token, start, end) => {
    const reading = last.then(async () => {
      statement.bind({ token: String(token), start, end })
      const [[points] = []] = (await statement.runAndReadAll()).getRows()
      return z.string().parse(points)
    })
    last = reading.catch(() => {})
    return reading
  }
}

const read = 'postgres' in place ? openPostgres(place.postgres) : await openDuckdbFile(place.duckdb)
const tokens = new Map(loadRegistry().tokens.map((token) => [token.id, token]))
const query = z.object({ id: z.string(), start: z.iso.datetime(), end: z.iso.datetime() })

const app = express()
app.use(compression())
app.get('/data/tokens/historic-financial', async (request, response) => {
  const { id, start, end } = query.parse(request.query)
  const token = tokens.get(id)
  if (token === undefined) return void response.status(404).end()
  const points = await read(token.key, start, end)
  response.type('json').send(`{"name":${JSON.stringify(token.name)},"id":"${id}","data":${points}}`)
})
const server = createServer(app)
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ ready: true, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }))
})
process.once('SIGTERM', () => process.exit(0))
