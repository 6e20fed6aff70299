import { z } from 'zod'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { DataError } from '../../shared/errors.ts'
import { toMs } from '../../shared/intervals.ts'
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
  /** Start of the run of the row, in Unix milliseconds. */
  readonly collectedAt: number
}

/** Rows that one run decoded. */
export interface RunRows {
  readonly collectedAt: number
  readonly rows: readonly object[]
}

export interface Layout {
  readonly table: string
  /** Types by column, without that of the time of collection. */
  readonly columns: ReadonlyMap<string, string>
  /** The columns that identify a row. */
  readonly keys: readonly string[]
}

const column = z.object({ name: z.string(), type: z.string(), key: z.string() })
const COLLECTED = 'collected_at'

/**
 * Reads how the rows of a dataset are stored.
 * @throws DataError `payload` for a dataset whose rows are spread over several tables.
 */
export async function readLayout(db: Database, dataset: Dataset): Promise<Layout> {
  const { table, name, series } = dataset
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
  return { table, columns, keys }
}

const COLLECT_AGAIN = 'Collect them again: npm run backfill -- --help'

/** Most bytes of rows in one statement. */
const MOST_BYTES = 4 * 1024 * 1024

/** Converts rows to the values that the table would store. */
async function toStoredValues(db: Database, { columns }: Layout, rows: readonly object[], members: readonly string[]) {
  const structure = members.map((name) => `\`${name}\` ${columns.get(name)}`).join(', ')
  const converted: Row[] = []
  for (let at = 0; at < rows.length; ) {
    const lines: string[] = []
    for (let bytes = 0; at < rows.length && bytes < MOST_BYTES; at += 1) {
      const line = JSON.stringify(rows[at])
      bytes += line.length
      lines.push(line)
    }
    const part = await db.rows({
      name: 'replay-decoded',
      sql: `SELECT ${toSelected(members)} FROM format(JSONEachRow, ${quote(structure)}, ${quote(lines.join('\n'))})`,
      settings: { max_query_size: 4 * MOST_BYTES, use_structure_from_insertion_table_in_table_functions: 0 },
      schema: z.record(z.string(), z.unknown()),
    })
    converted.push(...part)
  }
  return converted
}

const quote = (text: string) => `'${text.replace(/[\\']/g, (character) => `\\${character}`)}'`
const toSelected = (members: readonly string[]) => members.map((name) => `\`${name}\``).join(', ')
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
  const example = runs.find(({ rows }) => rows.length > 0)?.rows[0]
  const members = [...layout.columns.keys()].filter((name) => example === undefined || name in example)
  const { time, entity } = dataset.series
  const toKey = (row: Row) => JSON.stringify(layout.keys.map((key) => row[key]))
  const decoded = new Map<string, { row: Row; collectedAt: number }>()
  for (const { collectedAt, rows } of runs)
    for (const row of await toStoredValues(db, layout, rows, members)) decoded.set(toKey(row), { row, collectedAt })
  const times = [...decoded.values()].map(({ row }) => toMs(String(row[time])))
  const stored = await db.rows({
    name: 'replay-stored',
    sql: `SELECT ${toSelected(members)}, toUnixTimestamp64Milli(s.${COLLECTED}) AS ${COLLECTED}_ms
FROM ${layout.table} AS s FINAL
WHERE (${time} >= {from: DateTime64(3, 'UTC')} AND ${time} <= {to: DateTime64(3, 'UTC')})
  OR has({runs: Array(DateTime64(3, 'UTC'))}, s.${COLLECTED})`,
    params: {
      from: toText(times.reduce((least, at) => Math.min(least, at), 8e12)),
      to: toText(times.reduce((most, at) => Math.max(most, at), 0)),
      runs: [...new Set(runs.map(({ collectedAt }) => toText(collectedAt)))],
    },
    schema: z.looseObject({ [`${COLLECTED}_ms`]: z.number() }),
  })
  const replayed = new Set(runs.map(({ collectedAt }) => collectedAt))
  const differences: Difference[] = []
  const add = (kind: Difference['kind'], collectedAt: number, before?: Row, after?: Row) => {
    const row = after ?? before ?? {}
    const changed = members.filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]))
    if (changed.length === 0) return
    const key = entity === undefined ? 0 : Number(row[entity])
    differences.push({ kind, entity: key, at: toMs(String(row[time])), before, after, members: changed, collectedAt })
  }
  for (const { [`${COLLECTED}_ms`]: collectedMs, ...before } of stored) {
    const collectedAt = Number(collectedMs)
    const key = toKey(before)
    const now = decoded.get(key)
    decoded.delete(key)
    if (now === undefined) {
      if (replayed.has(collectedAt)) add('removed', collectedAt, before)
    } else if (collectedAt <= now.collectedAt) add('changed', now.collectedAt, before, now.row)
  }
  for (const { row, collectedAt } of decoded.values()) add('added', collectedAt, undefined, row)
  return differences.sort((a, b) => a.at - b.at || a.entity - b.entity)
}
