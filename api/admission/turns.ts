import type { ClientKey, Turns } from './types.ts'

/** A task takes up to a millisecond, so a client delays the others by a few milliseconds. */
const TASKS_PER_TURN = 4

/**
 * Between two turns the event loop reads new requests. Without the limit, the requests of all connections of one client
 * would be answered before those of another one.
 */
export function createTurns(tasksPerTurn = TASKS_PER_TURN): Turns {
  const used = new Map<ClientKey, number>()
  const waiting = new Map<ClientKey, (() => void)[]>()
  let isScheduled = false
  const schedule = () => {
    if (isScheduled) return
    isScheduled = true
    setImmediate(proceed)
  }
  const proceed = () => {
    isScheduled = false
    used.clear()
    const tasks: (() => void)[] = []
    for (const [client, line] of waiting) {
      const next = line.splice(0, tasksPerTurn)
      tasks.push(...next)
      used.set(client, next.length)
      if (line.length === 0) waiting.delete(client)
    }
    if (tasks.length > 0) schedule()
    for (const task of tasks) task()
  }
  return {
    take: (client, work) => {
      const line = waiting.get(client)
      const count = used.get(client) ?? 0
      if (line === undefined && count < tasksPerTurn) {
        used.set(client, count + 1)
        schedule()
        work()
      } else if (line === undefined) waiting.set(client, [work])
      else line.push(work)
    },
  }
}
