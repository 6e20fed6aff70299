import { mkdtempSync } from 'node:fs'
import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { expect } from 'vitest'
import { toBucket } from '../../shared/buckets.ts'
import { tokenHolders } from '../../shared/datasets/holders.ts'
import { addCoverage } from '../../shared/ledger/tables.ts'
import type { Dao, Token } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import { type Catalog, readCatalog, verify } from '../../workers/publish/catalog.ts'
import { type Outcome, publish } from '../../workers/publish/publish.ts'
import { openFolder, type Target } from '../../workers/publish/target.ts'
import { createApiDatabase, createHandFeed, startApi } from './api.ts'
import { createTestConfig } from './database.ts'
import { storeEveryDataset } from './every-dataset.ts'
import { storeQuotes, toQuote } from './quotes.ts'
import { silent } from './silent.ts'
import { storeFlowRows, toFlow } from './stored-flows.ts'

/** The months before and after the first of March have rows. */
export const NOW = Date.parse('2024-03-03T12:02:30Z')

interface RunOptions {
  readonly target?: Target
  readonly signal?: AbortSignal
  readonly keepDays?: number
  readonly only?: readonly string[]
  readonly db?: Database
}

/** A published store with every dataset, the API over it, and readers of the published files. */
export type Published = Awaited<ReturnType<typeof createPublished>>

export async function createPublished() {
  const root = mkdtempSync(join(tmpdir(), 'dao-data-published-'))
  const folder = join(root, 'published')
  const config = createTestConfig({ PUBLISH_TO: folder })
  const database = await createApiDatabase(config)
  const { registry, writer } = database
  /** The time of the next publication, in Unix milliseconds; tests move it. */
  const clock = { at: NOW }
  const listed = registry.daos.filter(({ live, token }) => live && token !== null)

  const daoAt = (n: number): Dao => {
    const dao = listed[n]
    if (dao === undefined) throw new Error(`the registry has no DAO ${n}`)
    return dao
  }
  const tokenAt = (n: number): Token => {
    const token = registry.tokenById.get(daoAt(n).token ?? '')
    if (token === undefined) throw new Error(`the DAO ${n} has no token`)
    return token
  }
  const run = (options: RunOptions = {}): Promise<Outcome> =>
    publish({
      ...{ db: writer, registry, target: openFolder(writer, folder) },
      ...{ keepDays: 7, publicUrl: 'https://data.example', log: silent, now: () => clock.at, ...options },
    })

  await storeEveryDataset(writer, registry, NOW)
  await storeQuotes(
    writer,
    [1, 2, 3].flatMap((n) => [
      { token: tokenAt(n).key, at: Date.parse('2024-02-29T23:50:10Z'), price: n, volume_24h: null },
      { token: tokenAt(n).key, at: Date.parse('2024-02-29T23:51:10Z'), price: 2 * n },
    ]),
  )
  await storeSources(writer, tokenAt(2).key)
  await coverHolders(writer, registry)
  await storePaidFlows(writer, registry)
  const api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
  await run()

  const catalogOf = async (): Promise<Catalog> => {
    const catalog = await readCatalog(openFolder(undefined, folder))
    if (catalog === undefined) throw new Error('nothing was published')
    return catalog
  }
  return {
    ...{ root, folder, config, database, api, clock, daoAt, tokenAt, catalogOf },
    /** Publishes at the time of the clock. */
    run,
    partitionsOf: async (name: string) =>
      (await catalogOf()).datasets.find((dataset) => dataset.name === name)?.partitions ?? [],
    faultsOf: async (): Promise<string[]> => {
      const faults: string[] = []
      for await (const fault of verify(openFolder(undefined, folder))) faults.push(fault)
      return faults
    },
    /** Every file below the folder with its time of change. */
    readTimes: async (): Promise<Record<string, number>> => {
      const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
      const paths = files.map((entry) => join(entry.parentPath, entry.name))
      return Object.fromEntries(await Promise.all(paths.map(async (path) => [path, (await stat(path)).mtimeMs])))
    },
    /** Rows of a query by DuckDB over the views of load.sql. */
    query: async (sql: string): Promise<Record<string, unknown>[]> => {
      const instance = await DuckDBInstance.create()
      const connection = await instance.connect()
      try {
        await connection.run(`SET TimeZone = 'UTC'; SET VARIABLE published = '${folder}'`)
        await connection.run(await readFile(join(folder, 'load.sql'), 'utf8'))
        return (await connection.runAndReadAll(sql)).getRowObjectsJson() as Record<string, unknown>[]
      } finally {
        connection.closeSync()
        instance.closeSync()
      }
    },
    /** The body of an answer of the API. */
    get: async (path: string) => {
      const response = await fetch(`${api.url}${path}`)
      expect(response.status, path).toBe(200)
      return response.json()
    },
    close: async () => {
      await api.close()
      await database.drop()
      await rm(root, { recursive: true, force: true })
    },
  }
}

/** Quotes of several providers in one week, of which the first is the point of the coarse intervals. */
async function storeSources(db: Database, token: number): Promise<void> {
  const quotes = [
    ['2024-02-26T00:02:00Z', 'coingecko'],
    ['2024-02-26T00:31:00Z', 'defillama'],
    ['2024-02-28T05:00:00Z', 'coinmarketcap'],
  ] as const
  const rows = quotes.map(([at, provider]) => ({ ...toQuote({ token, at: Date.parse(at), price: 3 }), provider }))
  await db.insert({ table: 'token_quotes_in', rows })
}

async function coverHolders(db: Database, registry: Registry): Promise<void> {
  const begin = toBucket(Date.parse('2024-01-01'), tokenHolders.cadence)
  const half = (toBucket(NOW, tokenHolders.cadence) - begin) / 2
  const report = {
    state: 'stored',
    provider: 'chainbase',
    seconds: 86_400,
    first: begin,
    last: begin + half - 1,
  } as const
  const keys = registry.tokens.map(({ key }) => key)
  await addCoverage(
    db,
    tokenHolders,
    keys.map((entity) => ({ entity, ...report })),
  )
}

/** A payment of the treasury with a price, and spam. */
async function storePaidFlows(db: Database, registry: Registry): Promise<void> {
  const address = (end: string) => `0x${end.padStart(40, '0')}`
  const flow = {
    ...{ dao: registry.daoBySlug.get('ens')?.key ?? 0, wallet: address('1'), counterparty: address('2') },
    ...{ at: '2024-03-02T10:00:00.000Z', contract_address: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48' },
    ...{ symbol: 'USDC', decimals: 6, base_units: '2500000', kind: 'spending' as const },
  }
  const rows = [toFlow(100, flow), toFlow(101, { ...flow, kind: 'spam', rule: 'zero-quantity', base_units: '0' })]
  await storeFlowRows(db, rows)
}

/** A value of a published file as a number; null stays null. */
export const toNumber = (value: unknown) => (value === null ? null : Number(value))
