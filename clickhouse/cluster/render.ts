import { DataError } from '../../shared/errors.ts'
import { onCluster, quoteName, toLocal } from '../../shared/store/topology.ts'
import { SHARDED, toShardingKey } from './sharding.ts'

/** The cluster that statements are rendered for, and the database they make tables in. */
export interface Cluster {
  readonly cluster: string
  readonly database: string
}

/**
 * A statement of a migration file as the server gets it. `{engine}` is where a replicated engine has its prefix; a
 * single server needs none, and gets the statement as it stands. For a cluster the statement becomes one or two:
 * - a table: its replicated part on every node, and the distributed one over them under the table's own name
 * - a table that stores nothing: the same, so that rows reach the views of the shard they belong to
 * - a view, and a change of what it selects: from what is inserted on a node into what that node holds, so that it sees
 *   each row once
 * - ALTER TABLE: columns of both, everything else of the part that holds rows; DROP: both
 * - a function: on every node
 * - INSERT ... SELECT: as it stands, through the distributed tables
 * @throws DataError `migration` for a statement that is none of these.
 */
export function renderStatement(sql: string, target?: Cluster): readonly string[] {
  if (target === undefined) return [sql.replaceAll('{engine}', '')]
  const statement = withoutComments(sql).trim()
  const rendering = RENDERINGS.find(({ pattern }) => pattern.test(statement))
  if (rendering === undefined)
    throw new DataError('migration', `a cluster has no form of this statement: ${statement.slice(0, 80)}`)
  return rendering.render(statement, target)
}

/** Comments of the migration files stand on lines of their own. */
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
 * A replicated table drops an insert that equals one of its last thousands. Here every row replaces by its key, so that
 * repeating is harmless anyway, while a value that returns to what it was must be stored. A setting of the table, because
 * those of a statement differ by the server's version.
 */
const KEEPS_REPEATS = 'replicated_deduplication_window = 0'

const withSetting = (clauses: string, setting: string): string =>
  `${clauses.trimEnd()}${/\nSETTINGS /.test(clauses) ? ',' : '\nSETTINGS'} ${setting}`

/** The distributed table over the parts of `table` that nodes hold; the sharding key may be another table's. */
export function toDistributed(table: string, { cluster, database }: Cluster, keyOf: string = table): string {
  const names = [cluster, database, toLocal(table)].map(quoteName).join(', ')
  const head = `CREATE TABLE IF NOT EXISTS ${table}${onCluster(cluster)} AS ${toLocal(table)}`
  return `${head}\nENGINE = Distributed(${names}, ${toShardingKey(keyOf)})`
}

/**
 * `{shard}` and `{replica}` are the node's own macros. The path names the table, not its id: whoever adds a node can
 * tell where the tables of its shard are.
 */
function toReplicated(engine: string, table: string, { database }: Cluster): string {
  if (engine === 'Null') return engine
  const [, family, args = ''] = /^\{engine\}(\w*MergeTree)(?:\(([^()]*)\))?$/.exec(engine) ?? []
  if (family === undefined) throw new DataError('migration', `${table}: a cluster has no form of ENGINE = ${engine}`)
  const place = [toReplicationPath(database, table), '{replica}'].map(quoteName).join(', ')
  return `Replicated${family}(${place}${args === '' ? '' : `, ${args}`})`
}

/** Where the replicas of a table find one another in Keeper. */
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

/** A view reads what is inserted on its own node. */
function readLocal(select: string): string {
  return select.replace(/\b(FROM|JOIN)\s+(\w+)/g, (text, keyword: string, table: string) =>
    SHARDED.has(table) ? `${keyword} ${toLocal(table)}` : text,
  )
}

function renderFunction(statement: string, { cluster }: Cluster): readonly string[] {
  return [statement.replace(/^CREATE OR REPLACE FUNCTION \w+/, (head) => `${head}${onCluster(cluster)}`)]
}

/** A distributed table has columns, but nothing else of what the part on a node has: no index, no codec, no setting. */
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
