import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { DataError, toReason } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'
import { type Database, toClickHouseCode } from './clickhouse.ts'
import { quoteName } from './topology.ts'

export interface Lock {
  /**
   * Checks at the server whether this process still has the lock. A process that was frozen may have lost it without an
   * event so far, so call this before each step that another owner of the lock must not see.
   * @throws DataError `storage` if the lock was lost and may have another owner, or if the server does not answer.
   */
  requireHeld(): Promise<void>
}

/** ClickHouse's code for a duplicate query id. */
const ALREADY_RUNNING = '216'

/**
 * A statement that sleeps. Each minute it sends more than the server's buffer, so that no proxy closes an idle
 * connection. The first row confirms that it runs.
 */
const SLEEP = `SELECT if(number % 300 = 0, repeat(' ', 600000), '') AS filling, filling AS more, sleepEachRow(0.2)
FROM numbers(1000000000)`

/** Unlimited duration; the statement ends with its connection, which ClickHouse does only for read-only statements. */
const SETTINGS = {
  max_execution_time: 0,
  max_block_size: 1,
  readonly: 2,
  cancel_http_readonly_queries_on_client_close: 1,
} as const

/**
 * Runs `work` under a named lock of the server, or of all servers of the cluster. The lock is a statement that runs as
 * long as the work. So a crashed process leaves no lock behind, and the lock needs no renewal. Completed work stays
 * valid even if the lock is lost afterwards.
 * @throws DataError `storage` with the message `taken` if another process has the lock.
 */
export async function withLock<T>(
  db: Database,
  options: { readonly name: string; readonly taken: string; readonly log: Logger },
  work: (lock: Lock) => Promise<T>,
): Promise<T> {
  const { requireHeld, release } = await take(db, options)
  try {
    return await work({ requireHeld })
  } finally {
    await release()
  }
}

async function take(
  db: Database,
  { name, taken, log }: Parameters<typeof withLock>[1],
): Promise<Lock & { release(): Promise<void> }> {
  // Distinguishes the statement from that of a later owner, which has the same id.
  const token = randomBytes(16).toString('hex')
  const stream = await sleepAs(db, { id: name, token, taken })
  let lost: string | undefined
  stream.on('error', (error) => (lost = toReason(error)))
  stream.on('end', () => (lost = 'its statement ended'))
  stream.resume()
  const release = async () => {
    try {
      // Without KILL the statement would end a moment after its reader, and the next caller would fail.
      const sql = `KILL QUERY WHERE ${IS_OWN} SYNC`
      if (lost === undefined) await db.command({ name: 'release lock', sql, params: { name, token } })
    } catch (error) {
      log.warn({ lock: name, reason: toReason(error) }, 'lock could not be released; it expires with its connection')
    } finally {
      stream.destroy()
    }
  }
  if (await isTakenElsewhere(db, name)) {
    await release()
    throw new DataError('storage', taken)
  }
  const requireHeld = async () => {
    if (lost === undefined && (await countProcesses(db, IS_OWN, { name, token })) === 0)
      lost = 'its statement no longer runs'
    if (lost !== undefined) throw new DataError('storage', `the lock "${name}" was lost: ${lost}`)
  }
  return { requireHeld, release }
}

interface Sleep {
  readonly id: string
  readonly token: string
  readonly taken: string
}

async function sleepAs(db: Database, { id, token, taken }: Sleep) {
  const sql = `${SLEEP} WHERE '${token}' != ''`
  try {
    return await db.stream({ name: 'take lock', id, sql, format: 'TSV', settings: SETTINGS, isLong: true })
  } catch (error) {
    if (toClickHouseCode(error) !== ALREADY_RUNNING) throw error
    throw new DataError('storage', taken, { cause: error })
  }
}

/** The statement of this owner of the lock, by the token in its text. */
const IS_OWN = 'query_id = {name: String} AND position(query, {token: String}) > 0'

const countRow = z.object({ running: z.int() })

/** Running statements of the server, or of all servers of the cluster. */
async function countProcesses(db: Database, where: string, params: Readonly<Record<string, string>>): Promise<number> {
  const processes =
    db.cluster === undefined ? 'system.processes' : `clusterAllReplicas(${quoteName(db.cluster)}, system.processes)`
  const [row] = await db.rows({
    name: 'locks',
    sql: `SELECT count() AS running FROM ${processes} WHERE ${where}`,
    params,
    schema: countRow,
  })
  return row?.running ?? 0
}

/** Query ids are unique per server only, so another server of a cluster may run the same id. */
const isTakenElsewhere = async (db: Database, name: string): Promise<boolean> =>
  db.cluster !== undefined && (await countProcesses(db, 'query_id = {name: String}', { name })) > 1
