import { DataError } from '../../shared/errors.ts'
import { onCluster, quoteName, toLocal } from '../../shared/store/store.ts'
import { readShardingColumns, toShardingKey } from './sharding.ts'

/** The cluster of the statements, and the database of the tables. */
export interface Cluster {
  readonly cluster: string
  readonly database: string
}

/**
 * Renders a statement of a migration file for the server. `{engine}` is the position of a replicated engine's prefix. A
 * single server gets the statement without it. For a cluster the statement becomes one or two:
 * - a table: a replicated table on every node, and a Distributed table over them under the table's name
 * - a table with the Null engine: the same, so that rows reach the views of their shard
 * - a view, and a change of its query: reads the inserts of its own node and writes to that node's table, so that it
 * sees each row once
 * - ALTER TABLE: changes columns of both, everything else of the local table only; DROP: both
 * - a function: on every node
 * - INSERT ... SELECT: unchanged, through the Distributed tables
 * @throws DataError `migration` for any other statement.
 */
export function renderStatement(sql: string, target?: Cluster): readonly string[] {
  if (target === undefined) return [sql.replaceAll('{engine}', '')]
  const statement = withoutComments(sql).trim()
  const rendering = RENDERINGS.find(({ pattern }) => pattern.test(statement))
  if (rendering === undefined)
    throw new DataError('migration', `this statement is not supported on a cluster: ${statement.slice(0, 80)}`)
  return rendering.render(statement, target)
}

/** Comments in migration files are on separate lines. */
const withoutComments = (sql: string): string => sql.replace(/^[ \t]*--.*\n?/gm, '')

interface Rendering {
  readonly pattern: RegExp
  render(statement: string, target: Cluster): readonly string[]
}

const RENDERINGS: readonly Rendering[] = [
  { pattern: /^CREATE TABLE IF NOT EXISTS \w+\s*\(/, render: renderTable },
  { pattern: /^CREATE MATERIALIZED VIEW IF NOT EXISTS \w+ TO \w+ AS\s/, render: renderView },
  { pattern: /^ALTER TABLE \w+ MODIFY QUERY\s/, render: renderViewQuery },
  { pattern: /^ALTER TABLE \w+\s/, render: renderAlter },
  { pattern: /^DROP (TABLE|VIEW) IF EXISTS \w+$/, render: renderDrop },
  { pattern: /^CREATE OR REPLACE FUNCTION \w+ AS\s/, render: renderFunction },
  { pattern: /^INSERT INTO \w+\s/, render: (statement) => [statement] },
]

function renderTable(statement: string, target: Cluster): readonly string[] {
  const [, table = '', columns = '', engine = '', rest = ''] =
    /^CREATE TABLE IF NOT EXISTS (\w+)\s*(\([\s\S]*\))\s*ENGINE = (\S[^\n]*)([\s\S]*)$/.exec(statement) ?? []
  if (engine === '') throw new DataError('migration', `no engine in: ${statement.slice(0, 80)}`)
  const head = `CREATE TABLE IF NOT EXISTS ${toLocal(table)}${onCluster(target.cluster)}\n${columns}`
  const settings = engine === 'Null' ? rest : withSetting(rest, KEEPS_REPEATS)
  const local = `${head}\nENGINE = ${toReplicated(engine, table, target)}${settings}`
  return [local, toDistributed(table, target)]
}

/**
 * A replicated table drops an insert that equals one of its last few thousand inserts. Here rows replace by key, so
 * repeats are harmless, but a value that returns to an earlier one must be stored. A table setting, because the
 * statement settings differ between server versions.
 */
const KEEPS_REPEATS = 'replicated_deduplication_window = 0'

const withSetting = (clauses: string, setting: string): string =>
  `${clauses.trimEnd()}${/\nSETTINGS /.test(clauses) ? ',' : '\nSETTINGS'} ${setting}`

/** The Distributed table over the local tables of `table`. The sharding key may be that of another table. */
export function toDistributed(table: string, { cluster, database }: Cluster, keyOf: string = table): string {
  const names = [cluster, database, toLocal(table)].map(quoteName).join(', ')
  const head = `CREATE TABLE IF NOT EXISTS ${table}${onCluster(cluster)} AS ${toLocal(table)}`
  return `${head}\nENGINE = Distributed(${names}, ${toShardingKey(keyOf)})`
}

/**
 * `{shard}` and `{replica}` are macros of the node. The path contains the table's name instead of its id, so that an
 * operator who adds a node can derive the paths of its shard.
 */
function toReplicated(engine: string, table: string, { database }: Cluster): string {
  if (engine === 'Null') return engine
  const [, family, args = ''] = /^\{engine\}(\w*MergeTree)(?:\(([^()]*)\))?$/.exec(engine) ?? []
  if (family === undefined) throw new DataError('migration', `${table}: not supported on a cluster: ENGINE = ${engine}`)
  const place = [toReplicationPath(database, table), '{replica}'].map(quoteName).join(', ')
  return `Replicated${family}(${place}${args === '' ? '' : `, ${args}`})`
}

/** The path in Keeper at which the replicas of a table find each other. */
export const toReplicationPath = (database: string, table: string): string =>
  `/clickhouse/tables/{shard}/${database}/${table}`

function renderView(statement: string, { cluster }: Cluster): readonly string[] {
  const head = /^(CREATE MATERIALIZED VIEW IF NOT EXISTS \w+) TO (\w+)/
  const onEveryNode = statement.replace(head, (_, create: string, table: string) => {
    toShardingKey(table)
    return `${create}${onCluster(cluster)} TO ${toLocal(table)}`
  })
  return [readLocal(onEveryNode)]
}

function renderViewQuery(statement: string, { cluster }: Cluster): readonly string[] {
  return [readLocal(statement.replace(/^ALTER TABLE \w+/, (head) => `${head}${onCluster(cluster)}`))]
}

/** A view reads the inserts of its own node. */
function readLocal(select: string): string {
  return select.replace(/\b(FROM|JOIN)\s+(\w+)/g, (text, keyword: string, table: string) =>
    readShardingColumns().has(table) ? `${keyword} ${toLocal(table)}` : text,
  )
}

function renderFunction(statement: string, { cluster }: Cluster): readonly string[] {
  return [statement.replace(/^CREATE OR REPLACE FUNCTION \w+/, (head) => `${head}${onCluster(cluster)}`)]
}

/** A Distributed table has columns only: no indexes, codecs or settings. */
const OF_COLUMNS = /^(ADD|DROP|RENAME|MODIFY|COMMENT) COLUMN\s/

function renderAlter(statement: string, { cluster }: Cluster): readonly string[] {
  const [, table = '', change = ''] = /^ALTER TABLE (\w+)\s+([\s\S]*)$/.exec(statement) ?? []
  toShardingKey(table)
  const on = onCluster(cluster)
  const local = `ALTER TABLE ${toLocal(table)}${on} ${change}`
  const column = change.replace(/\s+CODEC\([^()]*(?:\([^()]*\)[^()]*)*\)/g, '').replace(/\s+TTL\s.*$/s, '')
  return OF_COLUMNS.test(change) ? [local, `ALTER TABLE ${table}${on} ${column}`] : [local]
}

function renderDrop(statement: string, { cluster }: Cluster): readonly string[] {
  const [, kind = '', name = ''] = /^DROP (TABLE|VIEW) IF EXISTS (\w+)$/.exec(statement) ?? []
  const drop = (one: string) => `DROP ${kind} IF EXISTS ${one}${onCluster(cluster)} SYNC`
  return kind === 'VIEW' ? [drop(name)] : [drop(name), drop(toLocal(name))]
}
