import { z } from 'zod'
import type { Dataset, StoredRows } from '../../shared/datasets/define-dataset.ts'
import { DataError } from '../../shared/errors.ts'
import { INTERVAL_SECONDS, type TimeRange, toMs } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import { toLocal } from '../../shared/store/store.ts'

/** A row as ClickHouse returns it, and as it accepts it. */
type Row = Readonly<Record<string, unknown>>

/** A difference between a stored row and the decoded one; a missing side is no row. */
export interface Difference {
  readonly kind: 'added' | 'changed' | 'removed'
  readonly entity: number
  /** Unix milliseconds. */
  readonly at: number
  readonly before: Row | undefined
  readonly after: Row | undefined
  /** The members that differ. */
  readonly members: readonly string[]
  /** The decoded row with its provider; undefined if no run decodes it any more. */
  readonly decoded: DecodedRow | undefined
  /** Start of the run of the row, in Unix milliseconds. */
  readonly collectedAt: number
}

/** A row as the present code decodes it. */
export interface DecodedRow {
  readonly provider: string
  readonly row: object
}

/** Rows that one run decoded. */
export interface RunRows extends TimeRange {
  readonly collectedAt: number
  readonly rows: readonly DecodedRow[]
}

export interface Layout {
  readonly table: string
  /** Types by column, without that of the time of collection. */
  readonly columns: ReadonlyMap<string, string>
  /** The columns that identify a row. */
  readonly keys: readonly string[]
  /** How rows in several tables are read back. */
  readonly storedRows: StoredRows | undefined
}

const column = z.object({ name: z.string(), type: z.string(), key: z.string() })
const COLLECTED = 'collected_at'
const COLLECTED_MS = 'collected_at_ms'

/**
 * Reads how the rows of a dataset are stored.
 * @throws DataError `payload` for a dataset whose rows are spread over several tables.
 */
export async function readLayout(db: Database, dataset: Dataset): Promise<Layout> {
  const { table, name, series, storedRows } = dataset
  if (storedRows !== undefined)
    return { table, keys: storedRows.keys, columns: new Map(Object.entries(storedRows.columns)), storedRows }
  if (table !== series.table || dataset.isCollected === undefined)
    throw new DataError(
      'payload',
      `${name}: its rows are stored in several tables, so they cannot be compared. ${COLLECT_AGAIN}`,
    )
  const rows = await db.rows({
    name: 'replay-layout',
    sql: `SELECT c.name AS name, c.type AS type, t.sorting_key AS key
FROM system.columns AS c INNER JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
WHERE c.database = {database: String} AND c.table = {table: String} AND c.default_kind NOT IN ('ALIAS', 'MATERIALIZED')`,
    params: { database: db.name, table: db.cluster === undefined ? table : toLocal(table) },
    schema: column,
  })
  const keys = (rows[0]?.key ?? '').split(',').map((key) => key.trim())
  const columns = new Map(rows.filter(({ name: own }) => own !== COLLECTED).map((one) => [one.name, one.type]))
  if (keys.some((key) => !columns.has(key)))
    throw new DataError(
      'payload',
      `${name}: its rows are sorted by ${keys.join(', ')}, so they cannot be compared. ${COLLECT_AGAIN}`,
    )
  return { table, columns, keys, storedRows }
}

const COLLECT_AGAIN = 'Collect them again: npm run backfill -- --help'

/** A decoded row may have fields that are not stored with the others. */
const toMembers = (row: object = {}, members: readonly string[]) =>
  Object.fromEntries(members.flatMap((name) => (name in row ? [[name, Reflect.get(row, name)]] : [])))

/** Most bytes of rows in one statement. */
const MOST_BYTES = 4 * 1024 * 1024

/** Converts rows to the values that the table would store. */
async function toStoredValues(db: Database, layout: Layout, rows: readonly object[], members: readonly string[]) {
  const structure = members.map((name) => `\`${name}\` ${layout.columns.get(name)}`).join(', ')
  const converted: Row[] = []
  for (let at = 0; at < rows.length; ) {
    const lines: string[] = []
    for (let bytes = 0; at < rows.length && bytes < MOST_BYTES; at += 1) {
      const line = JSON.stringify(toMembers(rows[at], members))
      bytes += line.length
      lines.push(line)
    }
    const part = await db.rows({
      name: 'replay-decoded',
      sql: `SELECT ${toSelected(members, layout)} FROM format(JSONEachRow, ${quote(structure)}, ${quote(lines.join('\n'))})`,
      settings: { max_query_size: 4 * MOST_BYTES, use_structure_from_insertion_table_in_table_functions: 0 },
      schema: z.record(z.string(), z.unknown()),
    })
    converted.push(...part)
  }
  return converted
}

const quote = (text: string) => `'${text.replace(/[\\']/g, (character) => `\\${character}`)}'`
/** JSON numbers cannot hold integers of 128 and 256 bits, so they are texts. */
export const isWideInteger = (type = ''): boolean => /^U?Int(128|256)$/.test(type)
const toSelected = (members: readonly string[], { columns }: Layout) =>
  members
    .map((name) => (isWideInteger(columns.get(name)) ? `toString(\`${name}\`) AS \`${name}\`` : `\`${name}\``))
    .join(', ')
const toText = (ms: number) => new Date(ms).toISOString().slice(0, -1)

/**
 * Compares the decoded rows of runs with the stored rows. If several runs decode the same row, the last run counts.
 * Rows of later runs are not changed. A stored row of one of the runs is removed if no run decodes it any more.
 */
export async function compareRows(
  db: Database,
  dataset: Dataset,
  layout: Layout,
  runs: readonly RunRows[],
): Promise<readonly Difference[]> {
  const { storedRows } = layout
  const example = runs.find(({ rows }) => rows.length > 0)?.rows[0]?.row
  const members = [...layout.columns.keys()].filter(
    (name) => storedRows !== undefined || example === undefined || name in example,
  )
  const { time, entity } = dataset.series
  const toKey = (row: Row) => JSON.stringify(layout.keys.map((key) => row[key]))
  const rankOf = (row: Row) => storedRows?.rank(row) ?? 0
  const decoded = new Map<string, { row: Row; collectedAt: number; decoded: DecodedRow | undefined }>()
  for (const { collectedAt, rows } of runs) {
    const complete = rows.map(({ provider, row }) =>
      storedRows === undefined ? row : { ...storedRows.defaults, ...row, provider },
    )
    for (const [place, row] of (await toStoredValues(db, layout, complete, members)).entries()) {
      const before = decoded.get(toKey(row))
      if (before === undefined || rankOf(before.row) <= rankOf(row))
        decoded.set(toKey(row), { row, collectedAt, decoded: rows[place] })
    }
  }
  const times = [...decoded.values()].map(({ row }) => toMs(String(row[time])))
  const stored = await readStored(db, dataset, { layout, members, runs, times })
  const replayed = new Set(runs.map(({ collectedAt }) => collectedAt))
  const differences: Difference[] = []
  const add = (
    kind: Difference['kind'],
    collectedAt: number,
    { before, after, decoded }: { before?: Row; after?: Row; decoded?: DecodedRow | undefined },
  ) => {
    const row = after ?? before ?? {}
    const changed = members.filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]))
    if (changed.length === 0) return
    const key = entity === undefined ? 0 : Number(row[entity])
    const at = toMs(String(row[time]))
    differences.push({ kind, entity: key, at, before, after, members: changed, decoded, collectedAt })
  }
  for (const { [COLLECTED_MS]: collectedMs, ...before } of stored) {
    const collectedAt = Number(collectedMs)
    const key = toKey(before)
    const now = decoded.get(key)
    decoded.delete(key)
    if (now === undefined) {
      if (replayed.has(collectedAt) && !storedRows?.isKept(before)) add('removed', collectedAt, { before })
      continue
    }
    // A row of another run that outranks the decoded one stays.
    const isOutranked = replayed.has(collectedAt) || rankOf(before) <= rankOf(now.row)
    if (collectedAt <= now.collectedAt && isOutranked)
      add('changed', now.collectedAt, { before, after: now.row, decoded: now.decoded })
  }
  for (const { row, collectedAt, decoded: own } of decoded.values())
    add('added', collectedAt, { after: row, decoded: own })
  return differences.sort((a, b) => a.at - b.at || a.entity - b.entity)
}

interface StoredQuestion {
  readonly layout: Layout
  readonly members: readonly string[]
  readonly runs: readonly RunRows[]
  /** The times of the decoded rows. */
  readonly times: readonly number[]
}

/** The stored rows of the runs and of the times of decoded rows, with the starts of their runs. */
function readStored(db: Database, dataset: Dataset, { layout, members, runs, times }: StoredQuestion) {
  const { time } = dataset.series
  const { storedRows, table } = layout
  const within = { from: min(times), to: max(times) }
  const schema = z.looseObject({ [COLLECTED_MS]: z.number() })
  if (storedRows !== undefined) {
    // Rows may have times up to a cadence before their slot.
    const from = min([within.from, ...runs.map((run) => run.from)]) - INTERVAL_SECONDS[dataset.cadence] * 1000
    const to = max([within.to, ...runs.map((run) => run.to)])
    const starts = [...new Set(runs.map(({ collectedAt }) => collectedAt))]
    const params = { from: toText(from), to: toText(to), runs: starts }
    return db.rows({ name: 'replay-stored', sql: storedRows.sql, params, schema })
  }
  return db.rows({
    name: 'replay-stored',
    sql: `SELECT ${toSelected(members, layout)}, toUnixTimestamp64Milli(s.${COLLECTED}) AS ${COLLECTED_MS}
FROM ${table} AS s FINAL
WHERE (${time} >= {from: DateTime64(3, 'UTC')} AND ${time} <= {to: DateTime64(3, 'UTC')})
  OR has({runs: Array(DateTime64(3, 'UTC'))}, s.${COLLECTED})`,
    params: {
      from: toText(within.from),
      to: toText(within.to),
      runs: [...new Set(runs.map(({ collectedAt }) => toText(collectedAt)))],
    },
    schema,
  })
}

const min = (times: readonly number[]) => times.reduce((least, at) => Math.min(least, at), 8e12)
const max = (times: readonly number[]) => times.reduce((most, at) => Math.max(most, at), 0)
