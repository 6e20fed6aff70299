import { DataError, toReason } from '../shared/errors.ts'
import { type Child, startChild, untilReady } from './children.ts'

/** A program that is to run as long as the system does. */
export interface Part {
  readonly name: string
  /** From the root of the project. */
  readonly file: string
  readonly args?: readonly string[]
}

export interface Supervisor {
  /**
   * Starts a part and resolves with what it says when it is ready. From then on it is started again whenever it ends.
   * @throws DataError `config` when it ends before it was ever ready, or everything is being stopped.
   */
  start(part: Part): Promise<Record<string, unknown>>
  /** Stops one part, which may be started anew. */
  end(part: Part): Promise<void>
  /** Stops all parts, the last one started first, so that nobody loses what it still needs. */
  stop(): Promise<void>
}

/** Pauses before a part is started again; one that has died that often in a row keeps dying. */
const PAUSES_MS: readonly number[] = [500, 1_000, 2_000, 4_000, 8_000, 16_000]
/** A part that has run so long has come back, and its earlier deaths count no more. */
const ALIVE_MS = 60_000

interface Kept {
  readonly part: Part
  child: Child
  startedAt: number
  deaths: number
  again: NodeJS.Timeout | undefined
}

/**
 * Keeps parts running: one that ends unasked is started again after a growing pause, with a line that says so.
 * `onLost` is called once, with its last output, when one keeps dying.
 */
export function createSupervisor(options: {
  readonly say: (line: string) => void
  readonly onLost: (reason: string) => void
  readonly pausesMs?: readonly number[]
  readonly aliveMs?: number
}): Supervisor {
  const { say, onLost, pausesMs = PAUSES_MS, aliveMs = ALIVE_MS } = options
  let parts: readonly Kept[] = []
  let isStopping = false
  /** Whether nobody wants it to run any more. */
  const isOver = (kept: Kept) => isStopping || !parts.includes(kept)

  const launch = ({ name, file, args }: Part) => startChild(name, file, {}, args, { keepsOutput: true })

  const watch = async (kept: Kept) => {
    const how = `${kept.part.name} ended with ${await kept.child.ended}`
    if (isOver(kept)) return
    kept.deaths = performance.now() - kept.startedAt < aliveMs ? kept.deaths + 1 : 1
    const pause = pausesMs[kept.deaths - 1]
    if (pause === undefined) return onLost(`${how} for the ${kept.deaths}th time in a row: ${toLast(kept.child)}`)
    say(`${how}: it is started again in ${pause / 1000} s`)
    kept.again = setTimeout(() => void startAgain(kept), pause)
  }

  const startAgain = async (kept: Kept) => {
    kept.child = launch(kept.part)
    kept.startedAt = performance.now()
    void watch(kept)
    try {
      await untilReady(kept.child)
      say(`${kept.part.name} is back`)
    } catch (error) {
      // It ended before it was ready, which `watch` has seen as well: the next pause has begun, or the system stops.
      if (!isOver(kept)) say(toReason(error))
    }
  }

  return {
    start: async (part) => {
      if (isStopping) throw new DataError('config', `${part.name} is not started: everything is being stopped`)
      const kept: Kept = { part, child: launch(part), startedAt: performance.now(), deaths: 0, again: undefined }
      parts = [...parts, kept]
      const facts = await untilReady(kept.child)
      void watch(kept)
      return facts
    },
    end: async (part) => {
      const ended = parts.filter((kept) => kept.part === part)
      parts = parts.filter((kept) => kept.part !== part)
      for (const kept of ended) await endKept(kept)
    },
    stop: async () => {
      isStopping = true
      for (const { again } of parts) clearTimeout(again)
      for (const kept of [...parts].reverse()) await endKept(kept)
    },
  }
}

async function endKept({ again, child }: Kept): Promise<void> {
  clearTimeout(again)
  if (isRunning(child)) await child.stop()
}

const isRunning = ({ process }: Child): boolean =>
  process.pid !== undefined && process.exitCode === null && process.signalCode === null

const toLast = (child: Child): string => {
  const output = child.lastOutput().trim()
  return output === '' ? 'it said nothing' : `its last words were\n${output}`
}
