import { z } from 'zod'
import { isGovernor } from '../../shared/datasets/governance.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import { oneOf } from '../parameters/kinds.ts'
import type { Filter } from '../parameters/questions.ts'
import { Problem } from '../problem/problem.ts'

/** Sources of votes: Snapshot spaces, or contracts on a chain. */
export const SOURCES = ['snapshot', 'governor'] as const
export type GovernanceSource = (typeof SOURCES)[number]

/** Default sources: `/data/daos/governance` counts Snapshot only. */
const DEFAULT_SOURCES: readonly GovernanceSource[] = ['snapshot']

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

/** SQL for the source of a row, by its space. */
export const toSource = (space: string): string => `if(${isGovernor(space)}, 'governor', 'snapshot')`

/**
 * The requested DAOs as parameters of the statements: each current and former space of a DAO, newest first, and each
 * governor, which counts as a space here.
 */
export interface Scope {
  readonly daos: readonly number[]
  readonly own_daos: readonly number[]
  readonly own_spaces: readonly string[]
  readonly own_ranks: readonly number[]
}

export function toScope(daos: readonly Dao[], sources = DEFAULT_SOURCES): Scope {
  const own = daos.flatMap((dao) => {
    const spaces = sources.includes('snapshot') ? toSnapshotSpaces(dao) : []
    // Each governor counts its own proposals only, so proposals of governors never overlap.
    const governors = sources.includes('governor') ? dao.governors : []
    return [
      ...spaces.map((space, rank) => ({ key: dao.key, space, rank })),
      ...governors.map(({ space }) => ({ key: dao.key, space, rank: 0 })),
    ]
  })
  return {
    daos: [...new Set(own.map(({ key }) => key))],
    own_daos: own.map(({ key }) => key),
    own_spaces: own.map(({ space }) => space),
    own_ranks: own.map(({ rank }) => rank),
  }
}

const toSnapshotSpaces = ({ snapshotSpace, formerSnapshotSpaces }: Dao): string[] =>
  snapshotSpace === null ? [] : [snapshotSpace, ...formerSnapshotSpaces]

const OF_SCOPE = 'dao IN {daos: Array(UInt64)}'

/** When each space and governor of the requested DAOs was last read completely. */
const READINGS = `(
      SELECT dao, toString(space) AS space, read_at FROM governance_readings FINAL WHERE ${OF_SCOPE}
      UNION ALL
      SELECT dao, toString(space) AS space, read_at FROM governor_readings FINAL WHERE ${OF_SCOPE}
    )`

/**
 * Elements of an array in a statement, as a table. In a cluster, a set built from another set cannot be passed on to
 * shards.
 */
const toTable = (array: string) => `(SELECT arrayJoin(${array}) AS pair)`

/**
 * WITH clauses for the spaces and proposals that count: `read_spaces` are the completely read spaces, and `left_out`
 * are the proposals that do not count. A DAO that moved to another space may have moved its proposals and votes: both
 * spaces then contain the same proposal with the same id. The proposal counts once, in the newest space that was read. Proposals
 * withdrawn by their authors do not count.
 */
export const COUNTED = `
  (
    SELECT groupArray(tuple(r.dao, r.space, o.rank)) FROM
    ${READINGS} AS r
    INNER JOIN
    (
      SELECT pair.1 AS dao, pair.2 AS space, pair.3 AS rank
      FROM (SELECT arrayJoin(arrayZip({own_daos: Array(UInt64)}, {own_spaces: Array(String)}, {own_ranks: Array(UInt8)})) AS pair)
    ) AS o ON o.dao = r.dao AND o.space = r.space
  ) AS read_spaces,
  (
    SELECT groupArray(tuple(dao, toString(space), proposal)) FROM
    (
      SELECT dao, space, proposal FROM dao_proposal_details FINAL WHERE ${OF_SCOPE} AND is_deleted
      UNION DISTINCT
      SELECT p.dao, p.space, p.proposal FROM
      (SELECT dao, toString(space) AS space, proposal FROM dao_proposals FINAL WHERE ${OF_SCOPE}) AS p
      INNER JOIN (SELECT pair.1 AS dao, pair.2 AS space, pair.3 AS rank FROM ${toTable('read_spaces')}) AS s
        ON s.dao = p.dao AND s.space = p.space
      QUALIFY s.rank > min(s.rank) OVER (PARTITION BY p.dao, p.proposal)
    )
  ) AS left_out`

/** Whether a vote or proposal of a requested DAO counts; used with `COUNTED`. */
export const IS_COUNTED = `(dao, space) IN (SELECT pair.1, pair.2 FROM ${toTable('read_spaces')})
  AND (empty(left_out) OR (dao, space, proposal) NOT IN (SELECT pair.1, pair.2, pair.3 FROM ${toTable('left_out')}))`

/** Like `IS_COUNTED`, limited to the rows of the requested DAOs. */
export const COUNTS = `${OF_SCOPE} AND ${IS_COUNTED}`

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
