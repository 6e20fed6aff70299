import type { CommitListener, CommitLog } from '../../shared/store/commit-log.ts'

/** A log that a test drives. */
export function createHandLog() {
  const listeners: CommitListener[] = []
  let count = 0
  const commitLog: CommitLog = {
    get version() {
      return `${count}-0`
    },
    after: async () => [],
    follow: (listener) => void listeners.push(listener),
    close: () => {},
  }
  return {
    commitLog,
    commit: (dataset: string) => {
      count += 1
      const told = { version: `${count}-0`, dataset, asOf: null, entities: null, from: null, to: null }
      for (const listener of listeners) listener.committed([told])
    },
  }
}
