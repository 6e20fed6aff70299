import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { z } from 'zod'
import { DataError } from '../errors.ts'
import { toJson } from '../json.ts'
import { indexRecord } from '../registry/index-schema.ts'
import { openList, toRecord } from '../registry/registry-file.ts'
import { INDEX, KINDS, type RegistryPart, type RegistrySource } from '../registry/source.ts'
import type { Database } from './clickhouse.ts'

/** A stored version of the registry. */
export interface RegistryVersion {
  readonly version: string
  /** Activation time, in Unix milliseconds. */
  readonly changedAt: number
  /** The number of its records. */
  readonly records: number
}

const versionRow = z.object({ version: z.string(), changedAt: z.number(), records: z.number() })
const recordRow = z.object({ list: z.string(), position: z.number(), record: z.string() })

/** Records per read: a few megabytes. */
const PAGE = 5_000

/**
 * Returns the active version; undefined if none was ever stored.
 * @throws DataError `storage`
 */
export async function findRegistryVersion(db: Database, signal?: AbortSignal): Promise<RegistryVersion | undefined> {
  const sql = `SELECT version, toUnixTimestamp64Milli(stored_at) AS changedAt, records
FROM registry_versions FINAL ORDER BY stored_at DESC, version LIMIT 1`
  const [row] = await db.rows({
    ...{ name: 'registry-version', sql, settings: { max_threads: 1 }, schema: versionRow },
    ...(signal === undefined ? {} : { signal }),
  })
  return row
}

/**
 * Reads the records of a version, or of a part of it, page by page, and yields to the event loop in between.
 * @throws DataError `storage`, also if records are missing.
 */
export async function readStoredSource(
  db: Database,
  { version, changedAt, records: expected }: RegistryVersion,
  part: RegistryPart = 'whole',
): Promise<RegistrySource> {
  const mistakes: string[] = []
  const toFile = (list: string) => `${list} of the stored registry`
  const lists = {
    categories: openList(toFile('categories'), KINDS.categories, mistakes),
    chains: openList(toFile('chains'), KINDS.chains, mistakes),
    tokens: openList(toFile('tokens'), KINDS.tokens, mistakes),
    daos: openList(toFile('daos'), KINDS.daos, mistakes),
  }
  let index: RegistrySource['index'] = null
  let read = 0
  for await (const { list, record } of readRecords(db, version, part)) {
    read += 1
    const value = toJson(record)
    if (list === INDEX) index = toRecord(toFile(INDEX), value, indexRecord, mistakes)
    else if (isList(list)) lists[list].add(value)
    else mistakes.push(`${toFile(list)}: unknown list`)
  }
  const there = read + (part === 'whole' ? 0 : await countDaos(db, version))
  if (there !== expected)
    throw new DataError('storage', `version ${version} of the registry has ${there} of ${expected} records`)
  const { categories, chains, tokens, daos } = lists
  // References to an unread list are not checked.
  const files = {
    ...{ categories: categories.file, chains: chains.file, tokens: tokens.file },
    daos: { ...daos.file, readable: part === 'whole' },
  }
  return { files, index, mistakes, part, version, changedAt }
}

const isList = (list: string): list is keyof typeof KINDS => list in KINDS

/** Counts the DAOs of a version without reading them. */
async function countDaos(db: Database, version: string): Promise<number> {
  const [row] = await db.rows({
    name: 'registry-daos',
    sql: "SELECT count() AS daos FROM registry_records FINAL WHERE version = {version: String} AND list = 'daos'",
    params: { version },
    schema: z.object({ daos: z.number() }),
  })
  return row?.daos ?? 0
}

async function* readRecords(
  db: Database,
  version: string,
  part: RegistryPart,
): AsyncGenerator<z.infer<typeof recordRow>> {
  let after = { list: '', position: 0 }
  for (;;) {
    const page = await db.rows({
      name: 'registry-records',
      sql: `SELECT list, position, record FROM registry_records FINAL
WHERE version = {version: String} AND (list, position) > ({list: String}, {position: UInt32})${part === 'whole' ? '' : " AND list != 'daos'"}
ORDER BY list, position LIMIT {most: UInt32}`,
      params: { version, ...after, most: PAGE },
      schema: recordRow,
    })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return
    after = last
    await yieldToEventLoop()
  }
}
