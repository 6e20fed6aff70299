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
const toTimestamp = (iso: string) => `TIMESTAMP ${quoteText(iso.replace('T', ' ').replace('Z', ''))}`
const toKey = (key: string, value: string) => (key === 'interval' ? quoteText(value) : `${Number(value)}::BIGINT`)

/** A file with the table that its rows are loaded into. */
export interface FileTable {
  readonly file: PublishedFile
  readonly table: string
  readonly columns: readonly { readonly name: string; readonly type: string }[]
}

const timeOf = ({ sortedBy, columns }: PublishedDataset) =>
  sortedBy.find((name) => columns.some((column) => column.name === name && column.type.startsWith('DateTime')))

/**
 * Statements that create an empty table for each file of a dataset, and the view over them. Every branch of the view has
 * the file's keys as constants and its time range as a condition, so the plan of a query has only the files that it needs.
 */
export function toDefinition(
  dataset: PublishedDataset,
  firstTable: number,
): { readonly tables: readonly FileTable[]; readonly statements: readonly string[] } {
  const columns = dataset.columns.map(({ name, type }) => ({ name, type: toDuckdbType(type) }))
  const tables = dataset.partitions.map((file, at) => ({ file, columns, table: `published_${firstTable + at}` }))
  const members = columns.map(({ name, type }) => `${quoteName(name)} ${type}`).join(', ')
  const time = timeOf(dataset)
  const branches = tables.map(({ file: { keys, from, to }, table }) => {
    const constants = dataset.partitionedBy.map((key) => `, ${toKey(key, keys[key] ?? '')} AS ${quoteName(key)}`)
    const range =
      time === undefined || from === null || to === null
        ? ''
        : ` WHERE ${quoteName(time)} BETWEEN ${toTimestamp(from)} AND ${toTimestamp(to)}`
    return `SELECT *${constants.join('')} FROM files.${table}${range}`
  })
  // A dataset without rows has no files: its view is empty, with all columns.
  const keys = dataset.partitionedBy.map(
    (key) => `, NULL::${key === 'interval' ? 'VARCHAR' : 'BIGINT'} AS ${quoteName(key)}`,
  )
  const none = columns.map(({ name, type }) => `NULL::${type} AS ${quoteName(name)}`).join(', ')
  const body = branches.length === 0 ? `SELECT ${none}${keys.join('')} WHERE false` : branches.join('\nUNION ALL ')
  return {
    tables,
    statements: [
      ...tables.map(({ table }) => `CREATE TABLE files.${table} (${members})`),
      `CREATE VIEW ${quoteName(toViewName(dataset.name))} AS ${body}`,
    ],
  }
}

/** Strings, quoted names and comments of SQL. */
const QUOTED = /'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|--[^\n]*|\/\*[\s\S]*?\*\//g

/**
 * The single statement of a text, without its final semicolon.
 * @throws Error if there is none, or more than one: the files of only one statement would be loaded.
 */
export function toStatement(text: string): string {
  const bare = text.replaceAll(QUOTED, (part) =>
    /^(?:--|\/\*)/.test(part) ? ' '.repeat(part.length) : 'x'.repeat(part.length),
  )
  const end = bare.trimEnd().replace(/[;\s]+$/, '').length
  if (end === 0) throw new Error('There is no statement to run.')
  if (bare.slice(0, end).includes(';')) throw new Error('Write one statement at a time: there is a semicolon inside.')
  return text.slice(0, end)
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

/**
 * The tables of files that a plan reads, each with its columns that the plan needs: those of the result of a scan, and
 * those of its filters. A scan without a list of columns needs all of them.
 * @param plan of `EXPLAIN (FORMAT json)`
 */
export function findScans(
  plan: string,
  tables: ReadonlyMap<string, Pick<FileTable, 'columns'>>,
): ReadonlyMap<string, ReadonlySet<string>> {
  const scans = new Map<string, Set<string>>()
  const visit = ({ name = '', children = [], extra_info: facts = {} }: PlanNode) => {
    children.forEach(visit)
    const [table] = /\bpublished_\d+\b/.exec(facts.Table ?? '') ?? []
    if (table === undefined) return
    const needed = scans.get(table) ?? new Set()
    const projected = [facts.Projections ?? []].flat()
    const filters = [facts.Filters ?? []].flat().join('\n')
    const names = (tables.get(table)?.columns ?? []).map((column) => column.name)
    // Positions of rows, and scans of another kind, have names of their own.
    const isKnown = name.trim() === 'SEQ_SCAN' && projected.length > 0 && projected.every((one) => names.includes(one))
    for (const one of names) if (!isKnown || projected.includes(one) || filters.includes(one)) needed.add(one)
    scans.set(table, needed)
  }
  ;(JSON.parse(plan) as readonly PlanNode[]).forEach(visit)
  return scans
}

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
  {
    title: 'Proposals and votes of each DAO',
    sql: `SELECT dao_name, count(*) AS proposals, sum(votes) AS votes, max(created_at) AS newest
FROM proposals
GROUP BY ALL
ORDER BY proposals DESC
LIMIT 20`,
  },
  {
    title: 'Voters with the most votes',
    sql: `SELECT voter, count(*) AS votes, count(DISTINCT dao_id) AS daos
FROM votes
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
