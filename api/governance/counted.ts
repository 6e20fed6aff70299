import { z } from 'zod'
import {
  DEFAULT_SOURCES,
  type GovernanceSource,
  READINGS,
  type Scope,
  SOURCES,
  toScope,
} from '../../shared/datasets/governance-scope.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import { oneOf } from '../parameters/kinds.ts'
import type { Filter } from '../parameters/questions.ts'
import { Problem } from '../problem/problem.ts'

/** The `source` parameter. */
export const sourceParameter = oneOf(
  [...SOURCES, 'all'],
  'Source of the votes: `snapshot` (the default), `governor` for the contracts of the DAO on its chains, or `all` for both.',
  'all',
).optional()

export const toSources = (requested: GovernanceSource | 'all' | undefined): readonly GovernanceSource[] =>
  requested === 'all' ? SOURCES : requested === undefined ? DEFAULT_SOURCES : [requested]

/**
 * Rejects filters on members that exist only with `source`. Without `source` all records come from Snapshot, so such
 * members are the same for all, and a filter on them would silently remove all or none. `record` is the schema without
 * `source`.
 * @throws Problem `invalid_parameter` for such a filter.
 */
export function rejectSourceFilters(filters: readonly Filter[], record: z.ZodObject): void {
  const rejected = filters.find(({ member }) => !(member.path in record.shape))
  if (rejected === undefined) return
  const detail = `filter asks about ${rejected.member.path}, which is told with source only: add source=snapshot, governor or all.`
  throw new Problem('invalid_parameter', detail, { param: 'filter' })
}

/** The problem for a DAO without governance data. */
export function toNoData({ snapshotSpace, governors }: Dao, sources = DEFAULT_SOURCES): Problem {
  const own = { snapshot: snapshotSpace !== null, governor: governors.length > 0 }
  const why = sources.map((source) => `${NAMES[source]} ${own[source] ? UNREAD : UNKNOWN}.`)
  const hints = sources.includes('governor') || !own.governor ? [] : ['It has a governor: use source=governor.']
  return new Problem('no_data', ['This DAO has no governance data.', ...why, ...hints].join(' '))
}

const NAMES = { snapshot: 'Its Snapshot space', governor: 'Its governor' } as const
const UNREAD = 'was not read to its end yet'
const UNKNOWN = 'is not known'

const reading = z.object({ read_at: z.int(), spaces: z.int() })
const found = z.object({ dao: z.number(), space: z.string(), proposal: z.string() })

/** The DAO of a proposal, its space, and its id there; undefined for an unknown proposal. */
export async function findProposal(db: Database, registry: Registry, id: string) {
  const sql = 'SELECT dao, space, proposal FROM dao_proposals WHERE id = {id: String} LIMIT 1'
  const [row] = await db.rows({ name: 'governance-proposal', sql, params: { id }, schema: found })
  const dao = row && registry.daos.find(({ key }) => key === row.dao)
  return row && dao && { dao, space: row.space, proposal: row.proposal }
}

/**
 * When the DAO's spaces and governors were last read completely, in Unix milliseconds.
 * @throws Problem `no_data` if none was ever read.
 */
export async function requireRead(db: Database, dao: Dao, sources = DEFAULT_SOURCES): Promise<number> {
  const readAt = await findRead(db, toScope([dao], sources))
  if (readAt === undefined) throw toNoData(dao, sources)
  return readAt
}

/** When the spaces and governors were last read completely, in Unix milliseconds; undefined if none was ever read. */
export async function findRead(db: Database, scope: Scope): Promise<number | undefined> {
  const [row] = await db.rows({
    name: 'governance-reading',
    sql: `SELECT toUnixTimestamp64Milli(max(read_at)) AS read_at, count() AS spaces FROM ${READINGS}
WHERE has({own_spaces: Array(String)}, space)`,
    params: { ...scope },
    settings: { max_threads: 1 },
    schema: reading,
  })
  return row === undefined || row.spaces === 0 ? undefined : row.read_at
}
