import type { Database } from './clickhouse.ts'

/** Returns a database whose methods fail with this reason, for code that must not use one. */
export function createNoDatabase(reason: string): Database {
  const refuse = () => Promise.reject(new Error(reason))
  return {
    name: 'none',
    cluster: undefined,
    answerTimeoutMs: 30_000,
    rows: refuse,
    stream: refuse,
    command: refuse,
    insert: refuse,
    load: refuse,
    close: refuse,
  }
}
