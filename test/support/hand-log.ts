import type { ChangeListener } from '../../shared/store/change-stream.ts'
import type { ChangeStream, StreamedChange } from '../../shared/store/store.ts'

/** A change stream driven by a test. */
export function createHandLog() {
  const listeners: ChangeListener[] = []
  const events: StreamedChange[] = []
  let [count, forgotten] = [0, 0]
  const changeStream: ChangeStream = {
    get version() {
      return `${count}-0`
    },
    after: async (version) =>
      Number.parseInt(version, 10) < forgotten ? undefined : events.slice(Number.parseInt(version, 10)),
    follow: (listener) => void listeners.push(listener),
    close: () => {},
  }
  return {
    changeStream,
    commit: (dataset: string, id?: string) => {
      count += 1
      const change = { version: `${count}-0`, dataset, asOf: null, entities: null, from: null, to: null, id }
      events.push(change)
      for (const listener of listeners) listener.changed([change])
    },
    /** Deletes the events up to now. */
    forget: () => {
      forgotten = count
    },
  }
}
