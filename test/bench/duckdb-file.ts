import { createWriteStream, existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import type { BenchDatabase } from './engine.ts'
import { COLUMNS } from './postgres-server.ts'

/** Not a package of the project, because it has 70 MB and only this comparison uses it. */
const PACKAGE = '@duckdb/node-api'

/** The used part of the package's API. */
interface Connection {
  run(sql: string): Promise<unknown>
  prepare(sql: string): Promise<Prepared>
  closeSync(): void
}
interface Prepared {
  bind(values: Record<string, unknown>): void
  runAndReadAll(): Promise<{ getRows(): unknown[][] }>
}
const library = z.looseObject({
  DuckDBInstance: z.custom<{ create(file: string): Promise<{ connect(): Promise<Connection>; closeSync(): void }> }>(),
})

/** The route's response as JSON written by DuckDB: of token $token from $start until before $end. */
export const DUCKDB_POINTS = `SELECT CAST(to_json(list({timestamp: strftime(observed_at, '%Y-%m-%dT%H:%M:%S.%gZ'), quote: {USD: {price: price,
  volume_24h: volume_24h, market_cap: market_cap, total_supply: total_supply, circulating_supply: circulating_supply,
  timestamp: strftime(observed_at, '%Y-%m-%dT%H:%M:%S.%gZ')}}} ORDER BY observed_at)) AS VARCHAR) AS points
FROM token_prices WHERE token = CAST($token AS BIGINT) AND observed_at >= CAST($start AS TIMESTAMP) AND observed_at < CAST($end AS TIMESTAMP)`

export async function openDuckdb(file: string) {
  const loaded = library.parse(await import(PACKAGE))
  const instance = await loaded.DuckDBInstance.create(file)
  const connection = await instance.connect()
  const close = () => {
    connection.closeSync()
    instance.closeSync()
  }
  return { connection, close }
}

/**
 * Copies every stored price to a DuckDB file, sorted by its key. Returns undefined with a message if the package is not
 * installed.
 */
export async function createDuckdbFile(
  { db }: BenchDatabase,
  say: (line: string) => void,
): Promise<{ file: string; remove(): Promise<void> } | undefined> {
  if (!isInstalled()) {
    say(`DuckDB skipped: npm install --no-save ${PACKAGE}`)
    return undefined
  }
  const folder = await mkdtemp(join(tmpdir(), 'bench-duckdb-'))
  const [parquet, file] = [join(folder, 'prices.parquet'), join(folder, 'prices.duckdb')]
  say('copying the prices to DuckDB')
  const rows = await db.stream({
    name: 'copy',
    sql: `SELECT ${COLUMNS} FROM token_prices FINAL ORDER BY token, observed_at`,
    format: 'Parquet',
  })
  await pipeline(rows, createWriteStream(parquet))
  const { connection, close } = await openDuckdb(file)
  await connection.run(`CREATE TABLE token_prices AS SELECT * REPLACE (CAST(token AS BIGINT) AS token, CAST(observed_at AS TIMESTAMP) AS observed_at)
FROM read_parquet('${parquet}')`)
  await connection.run('CHECKPOINT')
  close()
  return { file, remove: () => rm(folder, { recursive: true, force: true }) }
}

function isInstalled(): boolean {
  const paths = createRequire(import.meta.url).resolve.paths(PACKAGE) ?? []
  return paths.some((path) => existsSync(join(path, PACKAGE)))
}
