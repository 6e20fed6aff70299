import { z } from 'zod'
import type { Database } from '../../shared/store/store.ts'
import type { Scope } from './counted.ts'

export const STATES = ['active', 'closed', 'pending', 'unsettled'] as const

const NOW = "fromUnixTimestamp64Milli({now: Int64}, 'UTC')"

/**
 * The state of a proposal at `now` (Unix milliseconds), with its details as `d`; null if its times are unknown. An
 * on-chain outcome has priority over the clock, because voting on it has ended. After its end a proposal is `unsettled`
 * until its source has counted all votes.
 */
export const STATE = `multiIf(d.outcome != '', 'closed', isNull(d.starts_at) OR isNull(d.ends_at), NULL, d.starts_at > ${NOW}, 'pending', d.ends_at > ${NOW}, 'active', d.scores_state = 'pending', 'unsettled', 'closed')`

const changes = z.object({ last: z.int(), next: z.int() })

/**
 * When the clock last changed the state of a proposal, and when it will next, in Unix milliseconds; undefined for
 * never.
 */
export async function findStates(
  db: Database,
  scope: Scope,
  now: number,
): Promise<{ from: number; until: number | undefined }> {
  const [row] = await db.rows({
    name: 'governance-states',
    sql: `SELECT toInt64(maxOrDefaultIf(at, at * 1000 <= {now: Int64})) * 1000 AS last, toInt64(minOrDefaultIf(at, at * 1000 > {now: Int64})) * 1000 AS next
FROM
(
  SELECT toUInt64(toUnixTimestamp(assumeNotNull(arrayJoin([starts_at, ends_at])))) AS at FROM dao_proposal_details FINAL
  WHERE dao IN {daos: Array(UInt64)} AND NOT is_deleted AND starts_at IS NOT NULL AND ends_at IS NOT NULL
)`,
    params: { ...scope, now },
    settings: { max_threads: 1 },
    schema: changes,
  })
  return { from: row?.last ?? 0, until: row === undefined || row.next === 0 ? undefined : row.next }
}
