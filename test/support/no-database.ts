import type { Database } from '../../shared/store/store.ts'

const refuse = () => Promise.reject(new Error('this test has no database'))

/** A database whose methods throw, for code that must not use one. */
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
