import { createHash } from 'node:crypto'
import { INDEX, type RegistrySource } from '../../shared/registry/source.ts'
import { type Database, findRegistryVersion } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

interface StoredRecord {
  readonly list: string
  readonly position: number
  /** The record as JSON with the members of its file: an older program refuses the defaults of members it lacks. */
  readonly record: string
}

/** Rows per insert. */
const CHUNK = 10_000

/**
 * Activates a registry: processes that follow the stored one load it within seconds. Writes the records first, then the
 * version row, which marks them as complete. If the registry is already active, writes only the version row, and only
 * with `isChanged`: the joined tables had another registry's content, for example of an interrupted run, so data
 * derived from them is stale. The new time is always after that of the previous version, even if a clock was ahead.
 * @throws DataError `storage`
 */
export async function storeRecords(
  db: Database,
  source: RegistrySource,
  { isChanged, log }: { readonly isChanged: boolean; readonly log: Logger },
): Promise<void> {
  const rows = toRows(source)
  const version = toVersion(rows)
  const before = await findRegistryVersion(db)
  const isThere = before?.version === version
  if (isThere && !isChanged) return
  for (let from = 0; from < rows.length && !isThere; from += CHUNK)
    await db.insert({ table: 'registry_records', rows: rows.slice(from, from + CHUNK), every: { version } })
  await db.command({
    name: 'registry-version',
    sql: `INSERT INTO registry_versions
SELECT {version: String}, {records: UInt32}, greatest(now64(3), fromUnixTimestamp64Milli({after: Int64} + 1))`,
    params: { version, records: rows.length, after: before?.changedAt ?? 0 },
  })
  log.info(
    { version, records: rows.length, before: before?.version },
    isThere ? 'the registry is active again' : 'a new registry is active',
  )
}

/** The version under which the records of a registry are stored. */
export const toStoredVersion = (source: RegistrySource): string => toVersion(toRows(source))

function toRows({ files, index }: RegistrySource): StoredRecord[] {
  const rows = Object.entries(files).flatMap(([list, { records }]) =>
    (records as { written: unknown }[]).map(({ written }, position) => ({
      list,
      position,
      record: JSON.stringify(written),
    })),
  )
  return [...rows, { list: INDEX, position: 0, record: JSON.stringify(index) }]
}

/** The digest of all records in their order, so that equal registries have equal versions. */
function toVersion(rows: readonly StoredRecord[]): string {
  const hash = createHash('sha256')
  for (const { list, record } of rows) hash.update(`${list}\n${record}\n`)
  return hash.digest('hex').slice(0, 32)
}
