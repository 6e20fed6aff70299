import { datasets } from '../datasets/list.ts'
import type { Database } from './clickhouse.ts'
import { probe } from './probe.ts'

/** Rejects with DataError `storage` when the database does not answer in time, or lacks a table. */
export type Readiness = () => Promise<void>

const PROBE_TIMEOUT_MS = 3_000
/** Load balancers and orchestrators ask every few seconds each. */
const HOLDS_MS = 2_000

/** Names every table and reads none of them. */
const SQL = ['tokens', ...datasets.map((dataset) => dataset.series.table)]
  .map((table) => `SELECT 1 FROM ${table} WHERE 0`)
  .join(' UNION ALL ')

/**
 * Whether the database can serve: one statement, which all who ask meanwhile and for some seconds after share. It takes
 * none of the places in which answers are made, and no connection that they wait for.
 */
export function createReadiness(db: Database, now: () => number): Readiness {
  let knownUntil = Number.NEGATIVE_INFINITY
  let asking: Promise<void> | undefined
  const ask = async () => {
    try {
      await probe(db, { sql: SQL, signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })
      knownUntil = now() + HOLDS_MS
    } finally {
      asking = undefined
    }
  }
  return async () => {
    if (now() < knownUntil) return
    asking ??= ask()
    await asking
  }
}
