import { FEES_AND_TREASURIES } from './fees-and-treasuries.ts'

/** A file of a dataset. */
export interface PublishedFile {
  readonly path: string
  readonly bytes: number
  readonly rows: number
  readonly keys: Readonly<Record<string, string>>
  /** Earliest and latest time of the rows; null for a dataset without time. */
  readonly from: string | null
  readonly to: string | null
}

export interface PublishedDataset {
  readonly name: string
  readonly description: string
  readonly partitionedBy: readonly string[]
  readonly sortedBy: readonly string[]
  readonly columns: readonly {
    readonly name: string
    /** The ClickHouse type. */
    readonly type: string
    readonly description: string
    readonly unit: string | null
  }[]
  readonly partitions: readonly PublishedFile[]
}

/** The part of `published/catalog.json` that the page reads. */
export interface Catalog {
  readonly format: number
  readonly publishedAt: string
  readonly datasets: readonly PublishedDataset[]
}

/** Name of a dataset in SQL, as in `load.sql` of the publication: `dex-trades` would need quotes. */
export const toViewName = (dataset: string) => dataset.replaceAll('-', '_')

const TYPES: readonly (readonly [RegExp, string])[] = [
  [/^(?:String|FixedString\(.*\)|Enum\d*\(.*\)|UUID)$/, 'VARCHAR'],
  [/^Float(?:32|64)$/, 'DOUBLE'],
  [/^Date(?:32)?$/, 'DATE'],
  [/^DateTime(?:64)?(?:\(.*\))?$/, 'TIMESTAMP'],
  [/^Bool$/, 'BOOLEAN'],
  [/^Int(?:8|16|32|64)$/, 'BIGINT'],
  [/^UInt(?:8|16|32)$/, 'BIGINT'],
  [/^UInt64$/, 'UBIGINT'],
]

/**
 * The DuckDB type of a column's ClickHouse type.
 * @throws Error for a type that no published column has had so far.
 */
export function toDuckdbType(type: string): string {
  const [, inner] = /^(?:Nullable|LowCardinality)\((.*)\)$/.exec(type) ?? []
  if (inner !== undefined) return toDuckdbType(inner)
  const [, item] = /^Array\((.*)\)$/.exec(type) ?? []
  if (item !== undefined) return `${toDuckdbType(item)}[]`
  const [, decimal] = /^Decimal\((\d+, ?\d+)\)$/.exec(type) ?? []
  if (decimal !== undefined) return `DECIMAL(${decimal})`
  const [, found] = TYPES.find(([pattern]) => pattern.test(type)) ?? []
  if (found === undefined) throw new Error(`The page cannot read columns of the type ${type}.`)
  return found
}

const quoteName = (name: string) => `"${name.replaceAll('"', '""')}"`
const quoteText = (text: string) => `'${text.replaceAll("'", "''")}'`
/** A moment as a literal of the column's type. */
const toTimeLiteral = (iso: string, type: string) =>
  type === 'DATE'
    ? `DATE ${quoteText(iso.slice(0, 10))}`
    : `TIMESTAMP ${quoteText(iso.replace('T', ' ').replace('Z', ''))}`
const toKey = (key: string, value: string) => (key === 'interval' ? quoteText(value) : `${Number(value)}::BIGINT`)

/**
 * A table of a dataset's view. A table of one file is loaded; one of several files only stands for them in a plan, which
 * is faster with few tables.
 */
export interface FileTable {
  readonly dataset: PublishedDataset
  readonly files: readonly [PublishedFile, ...PublishedFile[]]
  readonly table: string
}

/** The files of a dataset, grouped by all keys but the last: a group has the months of a year. */
export function toGroups({ partitionedBy, partitions }: PublishedDataset): FileTable['files'][] {
  const groups = new Map<string, [PublishedFile, ...PublishedFile[]]>()
  for (const file of partitions) {
    const key = JSON.stringify(partitionedBy.slice(0, -1).map((name) => file.keys[name]))
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [file])
    else group.push(file)
  }
  return [...groups.values()]
}

/** The columns of a dataset in the files, with their DuckDB types. */
export const toFileColumns = ({ columns }: PublishedDataset) =>
  columns.map(({ name, type }) => ({ name, type: toDuckdbType(type) }))

const toKeyType = (key: string) => (key === 'interval' ? 'VARCHAR' : 'BIGINT')

/** The keys that differ between the files of a table: they are columns of it. */
const findVarying = ({ dataset, files: [first, ...others] }: FileTable) =>
  dataset.partitionedBy.filter((key) => others.some(({ keys }) => keys[key] !== first.keys[key]))

/** The statement that creates an empty table. */
export function toTableStatement(table: FileTable): string {
  const keys = findVarying(table).map((name) => ({ name, type: toKeyType(name) }))
  const members = [...toFileColumns(table.dataset), ...keys].map(({ name, type }) => `${quoteName(name)} ${type}`)
  return `CREATE TABLE files.${table.table} (${members.join(', ')})`
}

/** The column with the time of the rows; undefined for a dataset without time. */
const findTime = (dataset: PublishedDataset) =>
  toFileColumns(dataset).find(
    ({ name, type }) => dataset.sortedBy.includes(name) && (type === 'DATE' || type === 'TIMESTAMP'),
  )

/** SQL for a key of a table's files. A file with the rows of a year has no month in its path. */
function toKeySql({ dataset, files: [first] }: FileTable, key: string): string {
  const value = first.keys[key]
  const time = findTime(dataset)
  return value === undefined && key === 'month' && time !== undefined
    ? `month(${quoteName(time.name)})`
    : toKey(key, value ?? '')
}

/** The time range of a table's rows; undefined for a dataset without time. */
function toTimeRange({ dataset, files }: FileTable) {
  const time = findTime(dataset)
  const times = files.flatMap(({ from, to }) => (from === null || to === null ? [] : [from, to])).sort()
  const [from, to] = [times[0], times.at(-1)]
  return time === undefined || from === undefined || to === undefined || times.length < 2 * files.length
    ? undefined
    : { time, from, to }
}

/**
 * The statement that creates or replaces the view over the tables of a dataset. Every branch has the keys of its files as
 * constants and their time range as a condition, so the plan of a query has only the tables that it needs.
 */
export function toViewStatement(dataset: PublishedDataset, tables: readonly FileTable[]): string {
  const branches = tables.map((one) => {
    const varying = findVarying(one)
    const keys = dataset.partitionedBy.map((key) =>
      varying.includes(key) ? `, ${quoteName(key)}` : `, ${toKeySql(one, key)} AS ${quoteName(key)}`,
    )
    const without = varying.length === 0 ? '' : ` EXCLUDE (${varying.map(quoteName).join(', ')})`
    const range = toTimeRange(one)
    const where =
      range === undefined
        ? ''
        : ` WHERE ${quoteName(range.time.name)} BETWEEN ${toTimeLiteral(range.from, range.time.type)} AND ${toTimeLiteral(range.to, range.time.type)}`
    return `SELECT *${without}${keys.join('')} FROM files.${one.table}${where}`
  })
  // A dataset without rows has no files: its view is empty, with all columns.
  const keys = dataset.partitionedBy.map((key) => `, NULL::${toKeyType(key)} AS ${quoteName(key)}`)
  const none = toFileColumns(dataset).map(({ name, type }) => `NULL::${type} AS ${quoteName(name)}`)
  const body =
    branches.length === 0 ? `SELECT ${none.join(', ')}${keys.join('')} WHERE false` : branches.join('\nUNION ALL ')
  return `CREATE OR REPLACE VIEW ${quoteName(toViewName(dataset.name))} AS ${body}`
}

/** Strings, quoted names and comments of SQL. */
const QUOTED = /'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|--[^\n]*|\/\*[\s\S]*?\*\//g

/** The text with spaces instead of comments, and letters instead of strings and quoted names. */
const maskQuoted = (text: string) =>
  text.replaceAll(QUOTED, (part) => (/^(?:--|\/\*)/.test(part) ? ' ' : 'x').repeat(part.length))

/**
 * The single statement of a text, without its final semicolon.
 * @throws Error if there is none, or more than one: the files of only one statement would be loaded.
 */
export function toStatement(text: string): string {
  const bare = maskQuoted(text)
  const end = bare.trimEnd().replace(/[;\s]+$/, '').length
  if (end === 0) throw new Error('There is no statement to run.')
  if (bare.slice(0, end).includes(';')) throw new Error('Write one statement at a time: there is a semicolon inside.')
  return text.slice(0, end)
}

/**
 * The number of rows after which a statement ends: those of its final `LIMIT` and `OFFSET`. Undefined without them, and
 * with another `LIMIT` in the statement.
 */
export function findLimit(statement: string): number | undefined {
  const bare = maskQuoted(statement).trimEnd()
  const [, limit, offset] = /\blimit\s+(\d+)(?:\s+offset\s+(\d+))?$/i.exec(bare) ?? []
  const count = (word: RegExp) => bare.match(word)?.length ?? 0
  // An OFFSET may also be before LIMIT, or in a subquery.
  const isOnly = count(/\blimit\b/gi) === 1 && count(/\boffset\b/gi) === (offset === undefined ? 0 : 1)
  return limit === undefined || !isOnly ? undefined : Number(limit) + Number(offset ?? 0)
}

/** Whether a statement only describes tables, so that it needs no rows and has no plan. */
export const isDescription = (statement: string) => /^\s*(?:describe|desc|show)\b/i.test(statement)

/** The datasets whose names are words of a statement. A name in a comment is found too, which does no harm. */
export function findNamed(statement: string, datasets: readonly PublishedDataset[]): PublishedDataset[] {
  const words = new Set(statement.toLowerCase().match(/\w+/g))
  return datasets.filter(({ name }) => words.has(toViewName(name)))
}

/** The part of a plan's node that names the scanned table and columns. A list of one element is that element. */
interface PlanNode {
  readonly name?: string
  readonly children?: readonly PlanNode[]
  readonly extra_info?: {
    readonly Table?: string
    readonly Projections?: string | readonly string[]
    readonly Filters?: string | readonly string[]
  }
}

/** The allowed values of each column. A row has to satisfy all of them. */
export type RowFilter = Readonly<Record<string, readonly string[]>>

/** The part of a table that a plan reads. */
export interface Scan {
  readonly columns: ReadonlySet<string>
  /** Rows that satisfy none of the filters are not needed. Undefined: all rows are needed. */
  readonly filters: readonly RowFilter[] | undefined
  /** Whether the only reader of the rows is a `LIMIT`, so that any rows are enough. */
  readonly isLimited: boolean
}

const LIMIT_NODES: readonly string[] = ['LIMIT', 'STREAMING_LIMIT']
/** Nodes that return a row for each row, without knowing the others. */
const ROW_NODES: readonly string[] = ['PROJECTION', 'UNION']

const RANGE = /^\w+>='([^']+)'::(DATE|TIMESTAMP) AND \w+<='([^']+)'::\2$/
const toMs = (text: string) => Date.parse(/^\d+-\d+-\d+$/.test(text) ? text : `${text.replace(' ', 'T')}Z`)

/** Whether a condition of a scan is that of the view, which every row of the table satisfies. */
function isOwnRange(condition: string, table: FileTable): boolean {
  const range = toTimeRange(table)
  const [, from = '', type, to = ''] = RANGE.exec(condition) ?? []
  if (range === undefined || type === undefined) return false
  const toBound = (iso: string) => Date.parse(type === 'DATE' ? iso.slice(0, 10) : iso)
  return toMs(from) === toBound(range.from) && toMs(to) === toBound(range.to)
}

/** The files that have at least this number of rows together: the smallest one with all of them, or else the longest ones. */
export function selectFiles(files: readonly PublishedFile[], rows: number): ReadonlySet<PublishedFile> {
  const [smallest] = files.filter((file) => file.rows >= rows).sort((a, b) => a.bytes - b.bytes)
  if (smallest !== undefined) return new Set([smallest])
  const selected = new Set<PublishedFile>()
  let count = 0
  for (const file of [...files].sort((a, b) => b.rows - a.rows)) {
    if (count >= rows) break
    selected.add(file)
    count += file.rows
  }
  return selected
}

const TEXT = "'(?:[^']|'')*'"
/** A condition of a scan that gives the values of a text column. "optional": another node applies the condition, too. */
const VALUES = new RegExp(`^(?:optional: )?(\\w+)(?:=${TEXT}(?: OR \\1=${TEXT})*| IN \\(${TEXT}(?:, ${TEXT})*\\))$`)

/** The conditions of a scan that the reader of files can apply; the others are applied by DuckDB alone. */
function toRowFilter(conditions: readonly string[], isText: (column: string) => boolean): RowFilter | undefined {
  const values = conditions.flatMap((condition) => {
    const [, column] = VALUES.exec(condition) ?? []
    if (column === undefined || !isText(column)) return []
    const texts = condition.match(new RegExp(TEXT, 'g')) ?? []
    return [[column, texts.map((text) => text.slice(1, -1).replaceAll("''", "'"))] as const]
  })
  return values.length === 0 ? undefined : Object.fromEntries(values)
}

/**
 * The tables that a plan reads, each with the columns of the results of its scans and of their filters. A scan without a
 * list of columns needs all of them.
 * @param plan of `EXPLAIN (FORMAT json)`
 */
export function findScans(plan: string, tables: ReadonlyMap<string, FileTable>): ReadonlyMap<string, Scan> {
  const scans = new Map<string, Scan>()
  let limits = 0
  const visit = ({ name = '', children = [], extra_info: facts = {} }: PlanNode, isBelowLimit: boolean) => {
    const isLimit = LIMIT_NODES.includes(name.trim())
    if (isLimit) limits += 1
    for (const child of children) visit(child, isLimit || (isBelowLimit && ROW_NODES.includes(name.trim())))
    const [table = ''] = /\bpublished_\d+\b/.exec(facts.Table ?? '') ?? []
    const found = tables.get(table)
    if (found === undefined) return
    // A scan without columns, as of `count(*)`, has an empty list.
    const projected = facts.Projections === '' ? [] : [facts.Projections ?? ['']].flat()
    const conditions = [facts.Filters ?? []].flat()
    const columns = toFileColumns(found.dataset)
    const known = [...columns.map((column) => column.name), ...found.dataset.partitionedBy]
    // Positions of rows, and scans of another kind, have other names.
    const isKnown = name.trim() === 'SEQ_SCAN' && projected.every((one) => known.includes(one))
    const isNeeded = (one: string) =>
      !isKnown || projected.includes(one) || conditions.some((condition) => condition.includes(one))
    const isText = (one: string) => columns.some((column) => column.name === one && column.type === 'VARCHAR')
    const filter = isKnown ? toRowFilter(conditions, isText) : undefined
    const before = scans.get(table)
    const needed = columns.flatMap((column) => (isNeeded(column.name) ? [column.name] : []))
    const filters = before === undefined ? [] : before.filters
    scans.set(table, {
      columns: new Set([...(before?.columns ?? []), ...needed]),
      filters: filters === undefined || filter === undefined ? undefined : [...filters, filter],
      isLimited:
        isBelowLimit &&
        isKnown &&
        before === undefined &&
        conditions.every((condition) => isOwnRange(condition, found)),
    })
  }
  for (const root of JSON.parse(plan) as readonly PlanNode[]) visit(root, false)
  // The number of rows is that of the statement's only LIMIT.
  return limits === 1 ? scans : new Map([...scans].map(([table, scan]) => [table, { ...scan, isLimited: false }]))
}

const LAST_YEAR = new Date().getUTCFullYear() - 1

/** Questions with their SQL, over datasets of every publication. */
export const QUESTIONS: readonly { readonly title: string; readonly sql: string }[] = [
  {
    title: 'Price of one token by day',
    sql: `SELECT timestamp, price
FROM prices
WHERE interval = '1d' AND token_symbol = 'UNI'
ORDER BY timestamp`,
  },
  {
    title: 'Tokens with the largest market cap',
    sql: `SELECT token_symbol, dao_name, arg_max(market_cap, timestamp) AS market_cap_usd
FROM prices
WHERE interval = '1d' AND market_cap IS NOT NULL
GROUP BY ALL
ORDER BY market_cap_usd DESC
LIMIT 20`,
  },
  {
    title: 'Most volatile tokens by day',
    sql: `WITH changes AS (
  SELECT token_symbol, timestamp, ln(price / lag(price) OVER (PARTITION BY token_id ORDER BY timestamp)) AS change
  FROM prices
  WHERE interval = '1d' AND price > 0
)
SELECT token_symbol, round(100 * stddev_samp(change), 2) AS percent_a_day, count(change) AS days
FROM changes
GROUP BY ALL
HAVING count(change) >= 5
ORDER BY percent_a_day DESC
LIMIT 20`,
  },
  {
    title: 'Value of all treasuries by day',
    sql: `SELECT day, sum(value_usd) AS value_usd, count(value_usd) AS treasuries
FROM treasury
GROUP BY day
ORDER BY day`,
  },
  {
    title: 'Treasuries with the largest share of stablecoins',
    sql: `SELECT dao_name, value_usd, round(100 * stablecoin_usd / value_usd, 1) AS stablecoin_percent
FROM treasury
WHERE value_usd > 0
QUALIFY row_number() OVER (PARTITION BY dao_id ORDER BY day DESC) = 1
ORDER BY stablecoin_percent DESC NULLS LAST
LIMIT 20`,
  },
  FEES_AND_TREASURIES,
  {
    title: 'Proposals and votes of each DAO',
    sql: `SELECT dao_name, count(*) AS proposals, sum(votes) AS votes, max(created_at) AS newest
FROM proposals
GROUP BY ALL
ORDER BY proposals DESC
LIMIT 20`,
  },
  {
    title: `Voters with the most votes since ${LAST_YEAR}`,
    sql: `SELECT voter, count(*) AS votes, count(DISTINCT dao_id) AS daos
FROM votes
WHERE year >= ${LAST_YEAR}
GROUP BY voter
ORDER BY votes DESC
LIMIT 20`,
  },
  {
    title: 'Concentration of holders',
    sql: `SELECT token_symbol, total_holders, top10_share, top100_share
FROM holders
QUALIFY row_number() OVER (PARTITION BY token_id ORDER BY day DESC) = 1
ORDER BY top10_share DESC NULLS LAST
LIMIT 20`,
  },
  {
    title: 'Fees of protocols by month',
    sql: `SELECT date_trunc('month', day) AS month, sum(fees_usd) AS fees_usd, sum(revenue_usd) AS revenue_usd
FROM fees
GROUP BY ALL
ORDER BY month`,
  },
  {
    title: 'Treasury compared with the market cap',
    sql: `WITH caps AS (
  SELECT dao_id, arg_max(market_cap, timestamp) AS market_cap_usd
  FROM prices
  WHERE interval = '1d' AND market_cap > 0
  GROUP BY dao_id
), values_of AS (
  SELECT dao_id, dao_name, arg_max(value_usd, day) AS treasury_usd
  FROM treasury
  WHERE value_usd IS NOT NULL
  GROUP BY ALL
)
SELECT dao_name, treasury_usd, market_cap_usd, round(treasury_usd / market_cap_usd, 3) AS ratio
FROM values_of JOIN caps USING (dao_id)
ORDER BY ratio DESC
LIMIT 20`,
  },
]
