import type { ChangeListener } from '../../shared/store/change-stream.ts'
import type { ChangeStream } from '../../shared/store/store.ts'

/** A change stream that receives entries continuously. */
export function createBusyStream(): ChangeStream {
  const listeners: ChangeListener[] = []
  let count = 0
  const timer = setInterval(() => {
    count += 1
    const change = { version: `${count}-0`, dataset: 'prices', asOf: null, entities: 2, from: null, to: null }
    for (const { changed } of listeners) changed([change])
  }, 20)
  return {
    get version() {
      return `${count}-0`
    },
    after: async () => [],
    follow: (listener) => void listeners.push(listener),
    close: () => clearInterval(timer),
  }
}
