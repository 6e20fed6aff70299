import { z } from 'zod'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { Problem } from '../problem/problem.ts'

/** The DAOs that are asked about, as the statements here take them: each space that one votes in or did, the newest first. */
export interface Scope {
  readonly daos: readonly number[]
  readonly own_daos: readonly number[]
  readonly own_spaces: readonly string[]
  readonly own_ranks: readonly number[]
}

export function toScope(daos: readonly Dao[]): Scope {
  const own = daos.flatMap(({ key, snapshotSpace, formerSnapshotSpaces }) =>
    snapshotSpace === null ? [] : [snapshotSpace, ...formerSnapshotSpaces].map((space, rank) => ({ key, space, rank })),
  )
  return {
    daos: [...new Set(own.map(({ key }) => key))],
    own_daos: own.map(({ key }) => key),
    own_spaces: own.map(({ space }) => space),
    own_ranks: own.map(({ rank }) => rank),
  }
}

const OF_SCOPE = 'dao IN {daos: Array(UInt64)}'

/** Elements of an array that a statement has, as a table. A set that is made of a set cannot be handed on in a cluster. */
const toTable = (array: string) => `(SELECT arrayJoin(${array}) AS pair)`

/**
 * Which spaces count, for a WITH: those that were read to their ends, `read_spaces`, and of their proposals all but
 * `left_out`. A DAO that moved to another space took its proposals and votes along, or left some behind: both spaces hold
 * the same proposal under one id. It counts once, in the newest space that was read. What its author took back does not
 * count.
 */
export const COUNTED = `
  (
    SELECT groupArray(tuple(r.dao, r.space, o.rank)) FROM
    (SELECT dao, toString(space) AS space FROM governance_readings FINAL WHERE ${OF_SCOPE}) AS r
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

/** Whether a vote or a proposal of a DAO asked about counts; to be used with `COUNTED`. */
export const IS_COUNTED = `(dao, space) IN (SELECT pair.1, pair.2 FROM ${toTable('read_spaces')})
  AND (empty(left_out) OR (dao, space, proposal) NOT IN (SELECT pair.1, pair.2, pair.3 FROM ${toTable('left_out')}))`

/** The same of the rows of the DAOs asked about. */
export const COUNTS = `${OF_SCOPE} AND ${IS_COUNTED}`

/** What is told of a DAO that there is nothing to tell of. */
export function toNoData({ snapshotSpace }: Dao): Problem {
  const why =
    snapshotSpace === null ? 'No Snapshot space of it is known.' : 'Its Snapshot space was not read to its end yet.'
  return new Problem('no_data', `There is no governance data of this DAO. ${why}`)
}

const reading = z.object({ read_at: z.int(), spaces: z.int() })

/**
 * When a DAO's spaces were last read to their ends, in Unix milliseconds.
 * @throws Problem `no_data` where none ever was.
 */
export async function requireRead(db: Database, dao: Dao): Promise<number> {
  const scope = toScope([dao])
  const [row] = await db.rows({
    name: 'governance-reading',
    sql: `SELECT toUnixTimestamp64Milli(max(read_at)) AS read_at, count() AS spaces FROM governance_readings FINAL
WHERE ${OF_SCOPE} AND has({own_spaces: Array(String)}, space)`,
    params: { ...scope },
    settings: { max_threads: 1 },
    schema: reading,
  })
  if (row === undefined || row.spaces === 0) throw toNoData(dao)
  return row.read_at
}
