import { ClickHouseError } from '@clickhouse/client'
import { z } from 'zod'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { DataError } from '../../shared/errors.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { toLocal, toLogical } from '../../shared/store/topology.ts'

/** What of a dataset tells which tables are computed from it. */
type Source = Pick<Dataset, 'name' | 'cadence' | 'table' | 'derive' | 'series'>

/** A table that is computed from a stored series, and how it is kept up to date and computed anew. */
export interface RollUp {
  readonly table: string
  /** The dataset whose commits the table's readers follow. */
  readonly dataset: Source | undefined
  /** The stored rows that it is computed from. */
  readonly raw: string
  /** The column by which `raw` can be computed in batches; undefined where a row needs more than one entity's. */
  readonly entity: string | undefined
  /** The SELECT of a second view, on `source`, that feeds a shadow of the table with what is inserted meanwhile. */
  readonly feed: string
  /** The statement that fills the shadow; its parameters are those of a dataset's `derive`. */
  fill(shadow: string): string
}

const viewRow = z.object({
  view: z.string(),
  select: z.string(),
  create: z.string(),
  source: z.string(),
  source_engine: z.string(),
})
type View = z.infer<typeof viewRow>

const columnRow = z.object({ name: z.string() })

/** The tables that can be computed anew: those that views fill from a stored series, and those that datasets derive. */
export async function findRollUps(db: Database, database: string, datasets: readonly Source[]): Promise<RollUp[]> {
  const views = await db.rows({ name: 'views', sql: VIEWS, schema: viewRow })
  const engines = await readEngines(db)
  const ofViews = await Promise.all(views.map((view) => toViewRollUp(db, view, { database, datasets, engines })))
  return [...ofViews.flatMap((rollUp) => rollUp ?? []), ...datasets.flatMap((one) => toDerived(db, one))]
}

const VIEWS = `SELECT view.name AS view, view.as_select AS select, view.create_table_query AS create,
  source.name AS source, source.engine AS source_engine
FROM (SELECT name, engine, arrayJoin(dependencies_table) AS view FROM system.tables WHERE database = currentDatabase()) AS source
INNER JOIN system.tables AS view ON view.name = source.view AND view.database = currentDatabase()
WHERE view.engine = 'MaterializedView'
ORDER BY view.name`

async function readEngines(db: Database): Promise<Map<string, string>> {
  const sql = 'SELECT name, engine FROM system.tables WHERE database = currentDatabase()'
  const rows = await db.rows({ name: 'engines', sql, schema: z.object({ name: z.string(), engine: z.string() }) })
  return new Map(rows.map(({ name, engine }) => [name, engine]))
}

interface Schema {
  readonly database: string
  readonly datasets: readonly Source[]
  readonly engines: ReadonlyMap<string, string>
}

/** The roll-up that a view fills; undefined where the view fills the raw series itself, or needs what is not stored. */
async function toViewRollUp(db: Database, view: View, schema: Schema): Promise<RollUp | undefined> {
  const target = / TO (?:`?\w+`?\.)?`?(\w+)`?/.exec(view.create)?.[1]
  const table = target === undefined ? undefined : toLogical(target)
  const from = toLogical(view.source)
  const dataset = schema.datasets.find((one) => one.table === from || one.series.table === from)
  // A source that stores nothing hands its rows on: they are found where the dataset's series is.
  const raw = view.source_engine === 'Null' ? dataset?.series.table : from
  if (table === undefined || raw === undefined || raw === table) return undefined
  const rawColumns = await readColumns(db, `SELECT * FROM ${raw}`)
  const tableColumns = await readColumns(db, `SELECT * FROM ${table}`)
  const entity: string | undefined = dataset?.series.entity
  const parted = entity !== undefined && [rawColumns, tableColumns].every((columns) => columns?.includes(entity))
  const final = /Replacing|Summing|Aggregating|Collapsing/.test(schema.engines.get(toStored(db, raw)) ?? '')
    ? 'FINAL'
    : ''
  const where = parted ? `WHERE ${entity} IN {entities: Array(UInt64)}` : ''
  const source = new RegExp(`\\bFROM\\s+(?:\`?${schema.database}\`?\\.)?\`?${view.source}\`?(?!\\w)`, 'g')
  const select = view.select.replace(source, `FROM (SELECT * FROM ${raw} ${final} ${where}) AS ${view.source}`)
  const columns = await readColumns(db, select, { entities: [] })
  if (columns === undefined) return undefined
  const list = columns.join(', ')
  return {
    table,
    dataset,
    raw,
    entity: parted ? entity : undefined,
    feed: view.select,
    fill: (shadow) => `INSERT INTO ${shadow} (${list}) SELECT ${list} FROM (${select})`,
  }
}

/** ClickHouse's code for a column that there is not. */
const UNKNOWN_IDENTIFIER = '47'

/** The columns of a SELECT; undefined when it needs one that its tables do not have. */
async function readColumns(
  db: Database,
  select: string,
  params: Readonly<Record<string, unknown>> = {},
): Promise<string[] | undefined> {
  try {
    const rows = await db.rows({ name: 'columns', sql: `DESCRIBE (${select})`, params, schema: columnRow })
    return rows.map(({ name }) => name)
  } catch (error) {
    const cause = error instanceof DataError ? error.cause : error
    if (cause instanceof ClickHouseError && cause.code === UNKNOWN_IDENTIFIER) return undefined
    throw error
  }
}

/** The table that holds the rows, on each node. */
const toStored = (db: Database, table: string): string => (db.cluster === undefined ? table : toLocal(table))

/** A dataset's derived tables: their own statements fill the shadow, and what jobs derive meanwhile is copied to it. */
function toDerived(db: Database, dataset: Source): RollUp[] {
  return (dataset.derive ?? []).flatMap(({ sql, isWhole }) => {
    if (!isWhole) return []
    const table = /\bINSERT\s+INTO\s+(\w+)/i.exec(sql)?.[1]
    if (table === undefined) return []
    return {
      table,
      dataset,
      raw: dataset.series.table,
      entity: dataset.series.entity,
      feed: `SELECT * FROM ${toStored(db, table)}`,
      // What it reads of the table itself, such as up to when it was computed, stays the live one's.
      fill: (shadow: string) => sql.replace(/\bINSERT\s+INTO\s+\w+/i, `INSERT INTO ${shadow}`),
    }
  })
}
