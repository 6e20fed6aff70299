import type { CommitListener, CommitLog, LoggedCommit } from '../../shared/store/commit-log.ts'

/** A log that a test drives. */
export function createHandLog() {
  const listeners: CommitListener[] = []
  const told: LoggedCommit[] = []
  let [count, forgotten] = [0, 0]
  const commitLog: CommitLog = {
    get version() {
      return `${count}-0`
    },
    after: async (version) =>
      Number.parseInt(version, 10) < forgotten ? undefined : told.slice(Number.parseInt(version, 10)),
    follow: (listener) => void listeners.push(listener),
    close: () => {},
  }
  return {
    commitLog,
    commit: (dataset: string, id?: string) => {
      count += 1
      const commit = { version: `${count}-0`, dataset, asOf: null, entities: null, from: null, to: null, id }
      told.push(commit)
      for (const listener of listeners) listener.committed([commit])
    },
    /** What was told so far is not kept any more. */
    forget: () => {
      forgotten = count
    },
  }
}
