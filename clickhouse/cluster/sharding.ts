import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DataError } from '../../shared/errors.ts'
import { MIGRATIONS } from '../schema/released.ts'
import { MIGRATIONS_TABLE } from '../schema/stored.ts'

/**
 * Returns the column that decides the shard of a row, by table: the first column of the sorting key. Rows that replace
 * one another have the same sorting key, and are only replaced within a shard. All rows of a token or of a DAO are on
 * one shard. Small tables are sharded as well instead of being on every node: every table is written and read in one
 * way, and an unavailable node never stops the writes of another shard. A table that stores nothing has the column of a
 * table that one of its views fills.
 */
export function toShardingColumns(statements: readonly string[]): ReadonlyMap<string, string> {
  const columns = new Map<string, string>()
  const unsorted: string[] = []
  for (const statement of statements) {
    const [, table, engine] = /CREATE TABLE IF NOT EXISTS (\w+)[\s\S]*\nENGINE = (\S+)/.exec(statement) ?? []
    const column = /\nORDER BY \(?(\w+)/.exec(statement)?.[1]
    if (table !== undefined && engine === 'Null') unsorted.push(table)
    else if (table !== undefined && column !== undefined) columns.set(table, column)
  }
  const views = statements.flatMap((statement) => {
    const [, target, source] =
      /CREATE MATERIALIZED VIEW IF NOT EXISTS \w+ TO (\w+) AS\s[\s\S]*?\bFROM (\w+)/.exec(statement) ?? []
    return target === undefined ? [] : [{ source, column: columns.get(target) }]
  })
  for (const table of unsorted) {
    const column = views.find(({ source, column }) => source === table && column !== undefined)?.column
    if (column !== undefined) columns.set(table, column)
  }
  return columns
}

let columnsByTable: ReadonlyMap<string, string> | undefined

/** Returns the sharding columns of the tables that the migration files create. */
export function readShardingColumns(): ReadonlyMap<string, string> {
  if (columnsByTable === undefined) {
    const files = readdirSync(MIGRATIONS).filter((file) => file.endsWith('.sql'))
    const texts = files.sort().map((file) => readFileSync(join(MIGRATIONS, file), 'utf8'))
    columnsByTable = toShardingColumns([MIGRATIONS_TABLE, ...texts.flatMap((text) => text.split(/;[ \t]*$/m))])
  }
  return columnsByTable
}

/**
 * The sharding key of a table as SQL. Hashed, because keys of entities need not be spread evenly.
 * @throws DataError `migration` for a table that no migration file creates.
 */
export function toShardingKey(table: string): string {
  const column = readShardingColumns().get(table)
  if (column !== undefined) return `cityHash64(${column})`
  throw new DataError('migration', `${table} has no sharding key: no migration file creates it with an ORDER BY`)
}
