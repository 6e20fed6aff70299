import type { Database } from '../../shared/store/clickhouse.ts'

const refuse = () => Promise.reject(new Error('this test has no database'))

/** The door for what must not need one. */
export const noDatabase: Database = {
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
