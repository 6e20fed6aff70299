import { z } from 'zod'
import { DAY_MS } from '../intervals.ts'
import type { Dao } from '../registry/entities.ts'
import type { Database } from './clickhouse.ts'

/** A DAO's space without new proposals; `since` is the day of its newest proposal, null without any. */
export interface QuietSpace {
  readonly space: string
  readonly since: string | null
}

const QUIET_DAYS = 60

/** The newest proposal of every completely read space, 1970 without any. */
const NEWEST = `
  SELECT r.space AS space, toUnixTimestamp(max(p.created_at)) AS seconds
  FROM governance_readings AS r FINAL LEFT JOIN dao_proposals AS p ON p.dao = r.dao AND p.space = r.space
  GROUP BY space`

const newest = z.object({ space: z.string(), seconds: z.number() })

/**
 * Returns the spaces of live DAOs without a new proposal for 60 days. Either nothing was proposed, or the space has
 * moved: the hub still responds for the old name as if nothing had changed. `now` is in Unix milliseconds.
 */
export async function readQuietSpaces(db: Database, daos: readonly Dao[], now: number): Promise<QuietSpace[]> {
  const rows = await db.rows({ name: 'quiet-spaces', sql: NEWEST, schema: newest })
  const secondsOf = new Map(rows.map(({ space, seconds }) => [space, seconds]))
  return daos.flatMap(({ live, snapshotSpace }) => {
    const seconds = secondsOf.get(snapshotSpace ?? '')
    if (!live || snapshotSpace === null || seconds === undefined || seconds * 1000 >= now - QUIET_DAYS * DAY_MS)
      return []
    return [{ space: snapshotSpace, since: seconds === 0 ? null : new Date(seconds * 1000).toISOString().slice(0, 10) }]
  })
}

/** A sentence for logs and reports; empty if no space is inactive. */
export function toQuietNote(spaces: readonly QuietSpace[]): string {
  if (spaces.length === 0) return ''
  const named = spaces.map(({ space, since }) =>
    since === null ? `${space} (none ever)` : `${space} (since ${since})`,
  )
  const count = spaces.length === 1 ? '1 space' : `${spaces.length} spaces`
  return `no new proposal for ${QUIET_DAYS} days in ${count}, which may have moved: ${named.join(', ')}`
}
