import type { ClientKey, Turns } from './types.ts'

/** A piece of work takes up to a millisecond, so a client delays the others by a few milliseconds. */
const PIECES_PER_TURN = 4

/**
 * Between two turns the event loop reads new requests. Without the limit, the requests of all connections of one client
 * would be answered before those of another one.
 */
export function createTurns(piecesPerTurn = PIECES_PER_TURN): Turns {
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
    const pieces: (() => void)[] = []
    for (const [client, line] of waiting) {
      const next = line.splice(0, piecesPerTurn)
      pieces.push(...next)
      used.set(client, next.length)
      if (line.length === 0) waiting.delete(client)
    }
    if (pieces.length > 0) schedule()
    for (const piece of pieces) piece()
  }
  return {
    take: (client, work) => {
      const line = waiting.get(client)
      const count = used.get(client) ?? 0
      if (line === undefined && count < piecesPerTurn) {
        used.set(client, count + 1)
        schedule()
        work()
      } else if (line === undefined) waiting.set(client, [work])
      else line.push(work)
    },
  }
}
