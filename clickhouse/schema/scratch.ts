import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { DAY_MS } from '../../shared/intervals.ts'
import { type Database, onCluster } from '../../shared/store/store.ts'

const PREFIX = 'dao_data_schema_check_'

/**
 * The scratch database of a check. The name contains the start time and a random part, so that several checks may run.
 */
export const toScratchName = (now: number): string => `${PREFIX}${now}_${randomBytes(4).toString('hex')}`

export async function dropScratch(server: Database, name: string): Promise<void> {
  const on = server.cluster === undefined ? '' : `${onCluster(server.cluster)} SYNC`
  await server.command({ name: 'drop-scratch', sql: `DROP DATABASE IF EXISTS ${name}${on}` })
}

/**
 * Drops the scratch databases of killed checks. A check takes seconds; databases younger than a day may belong to a
 * running check on a machine with another clock.
 */
export async function dropOldScratches(server: Database, now: number): Promise<void> {
  const databases = await server.rows({
    name: 'scratches',
    sql: 'SELECT name FROM system.databases WHERE startsWith(name, {prefix: String})',
    params: { prefix: PREFIX },
    schema: z.object({ name: z.string() }),
  })
  for (const { name } of databases) {
    const since = /^(\d+)_[0-9a-f]{8}$/.exec(name.slice(PREFIX.length))?.[1]
    if (since !== undefined && Number(since) < now - DAY_MS) await dropScratch(server, name)
  }
}
