import type { Database } from '../../shared/store/clickhouse.ts'
import { onCluster, quoteName } from '../../shared/store/topology.ts'

/** A restore that began and is not over: of which backup, and whether all rows are stored and compared. */
export interface Restoring {
  /** SHA-256 of what the backup says of itself. */
  readonly backup: string
  readonly isLoaded: boolean
}

/**
 * A table without rows that is there as long as the database holds a part of a backup. What it says is its comment, so that
 * it is made and read in one step.
 */
export const RESTORING_TABLE = 'restoring'

const toComment = ({ backup, isLoaded }: Restoring): string => quoteName(`${isLoaded ? 'loaded' : 'loading'} ${backup}`)

export function parseRestoring(comment: string): Restoring {
  const [state, backup = ''] = comment.split(' ')
  return { backup, isLoaded: state === 'loaded' }
}

/** Says that the database holds a part of a backup; when that is said already, how far the restore is. */
export async function markRestoring(db: Database, restoring: Restoring): Promise<void> {
  const [on, comment] = [onCluster(db.cluster), toComment(restoring)]
  const create = `CREATE TABLE IF NOT EXISTS ${RESTORING_TABLE}${on} (backup String) ENGINE = Null COMMENT ${comment}`
  await db.command({ name: 'begin-restore', sql: create })
  const alter = `ALTER TABLE ${RESTORING_TABLE}${on} MODIFY COMMENT ${comment}`
  await db.command({ name: 'note-restore', sql: alter })
}

export async function endRestoring(db: Database): Promise<void> {
  const sql = `DROP TABLE IF EXISTS ${RESTORING_TABLE}${onCluster(db.cluster)} SYNC`
  await db.command({ name: 'end-restore', sql })
}
