import { createHash } from 'node:crypto'
import { INDEX, type RegistrySource } from '../../shared/registry/source.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { findRegistryVersion } from '../../shared/store/stored-registry.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

interface StoredRecord {
  readonly list: string
  readonly position: number
  /** Its JSON, with every member that the schema knows. */
  readonly record: string
}

/** So many rows are inserted at once. */
const CHUNK = 10_000

/**
 * Puts a registry into force: processes that follow the stored one have it within seconds. Its records come first, then
 * the line that says that they are whole. Of the registry that is in force already only that line is written again, and only
 * where `isChanged`: what statements join had become another's, such as of a run that was stopped before its own line, and
 * what was made with it must not be kept. What is written is later than what was in force, also where the clock was ahead then.
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
    isThere ? 'the registry is in force once more' : 'a new registry is in force',
  )
}

function toRows({ files, index }: RegistrySource): StoredRecord[] {
  const rows = Object.entries(files).flatMap(([list, { records }]) =>
    (records as { record: object }[]).map(({ record }, position) => ({
      list,
      position,
      record: JSON.stringify(record),
    })),
  )
  return [...rows, { list: INDEX, position: 0, record: JSON.stringify(index) }]
}

/** The digest of all records in their order: the same registry is the same version, whoever stores it. */
function toVersion(rows: readonly StoredRecord[]): string {
  const hash = createHash('sha256')
  for (const { list, record } of rows) hash.update(`${list}\n${record}\n`)
  return hash.digest('hex').slice(0, 32)
}
