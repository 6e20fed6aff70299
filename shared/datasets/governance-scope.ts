import type { Dao } from '../registry/entities.ts'
import { isGovernor } from './governance.ts'

/** Sources of votes: Snapshot spaces, or contracts on a chain. */
export const SOURCES = ['snapshot', 'governor'] as const
export type GovernanceSource = (typeof SOURCES)[number]

/** Default sources: `/data/daos/governance` counts Snapshot only. */
export const DEFAULT_SOURCES: readonly GovernanceSource[] = ['snapshot']

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

/** Condition on a row: of the requested DAOs. */
export const OF_SCOPE = 'dao IN {daos: Array(UInt64)}'

/** When each space and governor of the requested DAOs was last read completely. */
export const READINGS = `(
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
