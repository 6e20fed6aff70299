import { z } from 'zod'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { type Database, toClickHouseCode, toLocal, toLogical } from '../../shared/store/store.ts'

/** Facts of a dataset that determine the tables computed from it. */
type Source = Pick<Dataset, 'name' | 'cadence' | 'table' | 'derive' | 'series'>

/** A table computed from a stored series, with the statements that update and recompute it. */
export interface RollUp {
  readonly table: string
  /** The dataset whose change events the table's readers follow. */
  readonly dataset: Source | undefined
  /** The source table. */
  readonly raw: string
  /** The column that splits `raw` into batches; undefined if a row needs more than one entity. */
  readonly entity: string | undefined
  /** SELECT of a second view on `source` that feeds new inserts to the shadow table during the run. */
  readonly feed: string
  /** Returns the statement that fills the shadow; its parameters are those of a dataset's `derive`. */
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

/**
 * Finds the tables that can be recomputed: those that views fill from a stored series, and those that datasets derive.
 */
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

/**
 * Returns the roll-up that a view fills; undefined if the view fills the raw series itself or needs columns that are
 * not stored.
 */
async function toViewRollUp(db: Database, view: View, schema: Schema): Promise<RollUp | undefined> {
  const target = / TO (?:`?\w+`?\.)?`?(\w+)`?/.exec(view.create)?.[1]
  const table = target === undefined ? undefined : toLogical(target)
  const from = toLogical(view.source)
  const dataset = schema.datasets.find((one) => one.table === from || one.series.table === from)
  // A Null table stores nothing and passes its rows on; the stored rows are in the dataset's series table.
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

/** ClickHouse error code for an unknown column. */
const UNKNOWN_IDENTIFIER = '47'

/** Returns the columns of a SELECT, or undefined if its tables lack one of them. */
async function readColumns(
  db: Database,
  select: string,
  params: Readonly<Record<string, unknown>> = {},
): Promise<string[] | undefined> {
  try {
    const rows = await db.rows({ name: 'columns', sql: `DESCRIBE (${select})`, params, schema: columnRow })
    return rows.map(({ name }) => name)
  } catch (error) {
    if (toClickHouseCode(error) === UNKNOWN_IDENTIFIER) return undefined
    throw error
  }
}

/** Returns the table that holds the rows on each node. */
const toStored = (db: Database, table: string): string => (db.cluster === undefined ? table : toLocal(table))

/**
 * Returns a dataset's derived tables. Their own statements fill the shadow, and a view copies rows that jobs derive
 * during the run.
 */
function toDerived(db: Database, dataset: Source): RollUp[] {
  return (dataset.derive ?? []).flatMap(({ sql, isFull }) => {
    if (!isFull) return []
    const table = /\bINSERT\s+INTO\s+(\w+)/i.exec(sql)?.[1]
    if (table === undefined) return []
    return {
      table,
      dataset,
      raw: dataset.series.table,
      entity: dataset.series.entity,
      feed: `SELECT * FROM ${toStored(db, table)}`,
      // Only the target is replaced. Subqueries on the table itself, such as the time of its last computation, still
      // read the live table.
      fill: (shadow: string) => sql.replace(/\bINSERT\s+INTO\s+\w+/i, `INSERT INTO ${shadow}`),
    }
  })
}
