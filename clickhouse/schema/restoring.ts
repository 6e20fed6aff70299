import { type Database, onCluster, quoteName } from '../../shared/store/store.ts'

/** An unfinished restore: the backup, and whether all rows are stored and compared. */
export interface Restoring {
  /** SHA-256 of the backup's manifest. */
  readonly backup: string
  readonly isLoaded: boolean
}

/**
 * A table without rows that exists while the database has a part of a backup. Its comment is the state, so that it is
 * created and read atomically.
 */
export const RESTORING_TABLE = 'restoring'

const toComment = ({ backup, isLoaded }: Restoring): string => quoteName(`${isLoaded ? 'loaded' : 'loading'} ${backup}`)

export function parseRestoring(comment: string): Restoring {
  const [state, backup = ''] = comment.split(' ')
  return { backup, isLoaded: state === 'loaded' }
}

/** Marks the database as containing a part of a backup, or updates the state of the restore. */
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
