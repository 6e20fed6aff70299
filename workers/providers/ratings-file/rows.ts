import { type DaoRatingRow, daoRatingRow } from '../../../shared/datasets/ratings.ts'
import { DataError } from '../../../shared/errors.ts'
import { DAY_MS } from '../../../shared/intervals.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import { isTime, orNull, toNumber } from '../answer.ts'
import type { FileRecord } from './csv.ts'

/** The columns of the file by the row's members; the order is that of the documentation. */
const COLUMNS = {
  dao: 'dao',
  overall_rating: 'overallRating',
  fundamental_rating: 'fundamentalRating',
  governance: 'governance',
  team: 'team',
  competitive_moat: 'competitiveMoat',
  value_proposition: 'valueProposition',
  token_economics: 'tokenEconomics',
  rated_at: 'lastUpdated',
  source: 'source',
  report_url: 'reportUrl',
} as const satisfies Partial<Record<keyof DaoRatingRow, string>>

const COLUMN_NAMES: ReadonlySet<string> = new Set(Object.values(COLUMNS))

const SHOWN = 20

interface Checked {
  readonly rows: DaoRatingRow[]
  /** One per bad row: `file:line: column: reason`. */
  readonly faults: string[]
}

/**
 * Checks the ratings of a file row by row. A bad row is reported with line and column and left out. `slot` is the time
 * of the import in Unix milliseconds.
 * @throws DataError `rows_rejected` with the faults if all rows are bad.
 */
export function toRatings(records: readonly FileRecord[], daos: readonly Rated[], slot: number, file: string): Checked {
  const find = createDaoFinder(daos)
  const lines = new Map<number, number>()
  const rows: DaoRatingRow[] = []
  const faults: string[] = []
  for (const record of records) {
    const checked = toRating(record, find, slot)
    const before = 'row' in checked ? lines.get(checked.row.dao) : undefined
    const fault = 'fault' in checked ? checked.fault : before && `dao: is rated in line ${before} already`
    if (fault) faults.push(`${file}:${record.line}: ${fault}`)
    else if ('row' in checked) {
      lines.set(checked.row.dao, record.line)
      rows.push(checked.row)
    }
  }
  if (rows.length === 0) {
    const shown = faults.slice(0, SHOWN).join('; ')
    throw new DataError('rows_rejected', `${faults.length} of ${records.length} ratings are bad: ${shown}`)
  }
  return { rows, faults }
}

type Rated = Pick<Dao, 'key' | 'id' | 'slug' | 'name'>
type FindDao = (name: string) => Rated | undefined

/** Finds a DAO by id, slug or exact name, ignoring case. */
function createDaoFinder(daos: readonly Rated[]): FindDao {
  const byName = new Map(daos.flatMap((dao) => [dao.name, dao.slug, dao.id].map((name) => [name.toLowerCase(), dao])))
  return (name) => byName.get(name.toLowerCase())
}

function toRating(
  { fields, fault }: FileRecord,
  find: FindDao,
  slot: number,
): { row: DaoRatingRow } | { fault: string } {
  if (fault !== undefined) return { fault }
  const stranger = Object.keys(fields).find((name) => !COLUMN_NAMES.has(name))
  if (stranger !== undefined) return { fault: `${stranger}: no such column; there are ${[...COLUMN_NAMES].join(', ')}` }
  const name = fields.dao
  const dao = typeof name === 'string' ? find(name) : undefined
  if (dao === undefined) return { fault: `dao: no live DAO has the slug, name or id ${JSON.stringify(name ?? null)}` }
  const read = (member: keyof typeof COLUMNS) => fields[COLUMNS[member]]
  const ratedAt = toTime(read('rated_at'))
  const candidate = {
    dao: dao.key,
    observed_at: new Date(slot).toISOString(),
    rated_at: ratedAt,
    overall_rating: toNumber(read('overall_rating')),
    fundamental_rating: toNumber(read('fundamental_rating')),
    governance: toNumber(read('governance')),
    team: toNumber(read('team')),
    competitive_moat: toNumber(read('competitive_moat')),
    value_proposition: toNumber(read('value_proposition')),
    token_economics: toNumber(read('token_economics')),
    source: read('source') ?? '',
    report_url: orNull(daoRatingRow.shape.report_url, read('report_url') ?? null),
  }
  const parsed = daoRatingRow.safeParse(candidate)
  if (!parsed.success) return { fault: toFault(parsed.error.issues[0]) }
  const ratedMs = Date.parse(parsed.data.rated_at)
  if (ratedMs > slot + DAY_MS) return { fault: 'lastUpdated: is in the future' }
  if (!isTime(ratedMs)) return { fault: 'lastUpdated: is before there were DAOs' }
  return { row: parsed.data }
}

function toFault(issue: { path: PropertyKey[]; message: string } | undefined): string {
  const member = String(issue?.path[0])
  const column: string = Reflect.get(COLUMNS, member) ?? member
  return `${column}: ${issue?.message}`
}

const ISO = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/

/**
 * Parses an ISO date or date-time as UTC and returns it with milliseconds. Null for other values, including 30
 * February.
 */
function toTime(value: unknown): string | null {
  if (typeof value !== 'string' || !ISO.test(value)) return null
  const zoned = value.length === 10 || /(Z|[+-]\d\d:\d\d)$/.test(value) ? value : `${value}Z`
  const [time, day] = [Date.parse(zoned), new Date(`${value.slice(0, 10)}T00:00:00Z`)]
  // Date silently moves nonexistent dates to the next month.
  const exists = !Number.isNaN(day.getTime()) && day.toISOString().startsWith(value.slice(0, 10))
  return exists && !Number.isNaN(time) ? new Date(time).toISOString() : null
}
