import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DataError, toReason } from '../shared/errors.ts'
import { STOP_DEADLINE_MS } from '../shared/process.ts'
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
  /** Stops all parts, the last one started first, so that nobody loses what it still needs. One that hangs is killed. */
  stop(): Promise<void>
}

/** Pauses before a part is started again. One that has died this often in a row is given up. */
const PAUSES_MS: readonly number[] = [500, 1_000, 2_000, 4_000, 8_000, 16_000]
/** After running this long a part counts as recovered, and its earlier deaths no longer count. */
const ALIVE_MS = 60_000

/** Every part ends by itself before that: one that does not hangs, and all others would wait for it. */
const KILLED_AFTER_MS = STOP_DEADLINE_MS + 5_000

/** How often it is looked whether a disk has room again. */
const LOOK_AGAIN_MS = 5_000

/** What a part needs to start; ClickHouse writes some files of this size. */
const NEEDED_BYTES = 1024 * 1024

const DISK_FAULTS: Readonly<Record<string, string>> = {
  ENOSPC: 'full',
  EDQUOT: 'full for this user (a quota)',
  EROFS: 'read-only',
}

/** Tries to write to the disk of a folder. Returns in words why nothing can be written; undefined where it can. */
export function findDiskFault(folder: string): string | undefined {
  const probe = join(folder, '.room')
  try {
    writeFileSync(probe, Buffer.alloc(NEEDED_BYTES), { flush: true })
    return undefined
  } catch (error) {
    const fault = DISK_FAULTS[(error as NodeJS.ErrnoException).code ?? '']
    return fault === undefined ? undefined : `the disk of ${folder} is ${fault}`
  } finally {
    try {
      rmSync(probe, { force: true })
    } catch {
      // A read-only disk keeps what an earlier look left there.
    }
  }
}

interface Supervised {
  readonly part: Part
  child: Child
  startedAt: number
  deaths: number
  again: NodeJS.Timeout | undefined
}

/**
 * Keeps parts running: one that ends unasked is started again after a growing pause, with a line that says so.
 * `onLost` is called once, with its last output, when one keeps dying. While `findFault` names a fault nothing is started.
 */
export function createSupervisor(options: {
  readonly say: (line: string) => void
  readonly onLost: (reason: string) => void
  readonly pausesMs?: readonly number[]
  readonly aliveMs?: number
  readonly killedAfterMs?: number
  /** Says why a part that ended could not run now, such as a full disk; undefined where nothing speaks against it. */
  readonly findFault?: () => string | undefined
  readonly lookAgainMs?: number
}): Supervisor {
  const { say, onLost, pausesMs = PAUSES_MS, aliveMs = ALIVE_MS, killedAfterMs = KILLED_AFTER_MS } = options
  const { findFault = () => undefined, lookAgainMs = LOOK_AGAIN_MS } = options
  let parts: readonly Supervised[] = []
  let isStopping = false
  /** Whether nobody wants it to run any more. */
  const isOver = (supervised: Supervised) => isStopping || !parts.includes(supervised)

  const launch = ({ name, file, args }: Part) => startChild(name, file, {}, args, { keepsOutput: true })

  const watch = async (supervised: Supervised) => {
    const how = `${supervised.part.name} ended with ${await supervised.child.ended}`
    if (isOver(supervised)) return
    const fault = findFault()
    if (fault !== undefined) {
      // Its deaths are the disk's: they count anew when it can be written again.
      supervised.deaths = 0
      say(`${how}: ${fault}: it is started again when it can write there`)
      return startWithRoom(supervised)
    }
    supervised.deaths = performance.now() - supervised.startedAt < aliveMs ? supervised.deaths + 1 : 1
    const pause = pausesMs[supervised.deaths - 1]
    if (pause === undefined)
      return onLost(`${how} for the ${supervised.deaths}th time in a row: ${toLast(supervised.child)}`)
    say(`${how}: it is started again in ${pause / 1000} s`)
    supervised.again = setTimeout(() => void startAgain(supervised), pause)
  }

  const startWithRoom = (supervised: Supervised) => {
    supervised.again = setTimeout(() => {
      if (findFault() === undefined) void startAgain(supervised)
      else startWithRoom(supervised)
    }, lookAgainMs)
  }

  const startAgain = async (supervised: Supervised) => {
    supervised.child = launch(supervised.part)
    supervised.startedAt = performance.now()
    void watch(supervised)
    try {
      await untilReady(supervised.child)
      say(`${supervised.part.name} is back`)
    } catch (error) {
      // It ended before it was ready. `watch` sees that too, and has begun the next pause, unless the system stops.
      if (!isOver(supervised)) say(toReason(error))
    }
  }

  const endPart = async ({ part, again, child }: Supervised) => {
    clearTimeout(again)
    if (!isRunning(child)) return
    const late = setTimeout(() => {
      say(`${part.name} did not end within ${killedAfterMs / 1000} s: it is killed`)
      child.process.kill('SIGKILL')
    }, killedAfterMs)
    await child.stop()
    clearTimeout(late)
  }

  return {
    start: async (part) => {
      if (isStopping) throw new DataError('config', `${part.name} is not started: everything is being stopped`)
      const supervised: Supervised = {
        part,
        child: launch(part),
        startedAt: performance.now(),
        deaths: 0,
        again: undefined,
      }
      parts = [...parts, supervised]
      const facts = await untilReady(supervised.child)
      void watch(supervised)
      return facts
    },
    end: async (part) => {
      const ended = parts.filter((supervised) => supervised.part === part)
      parts = parts.filter((supervised) => supervised.part !== part)
      for (const supervised of ended) await endPart(supervised)
    },
    stop: async () => {
      isStopping = true
      for (const { again } of parts) clearTimeout(again)
      for (const supervised of [...parts].reverse()) await endPart(supervised)
    },
  }
}

const isRunning = ({ process }: Child): boolean =>
  process.pid !== undefined && process.exitCode === null && process.signalCode === null

const toLast = (child: Child): string => {
  const output = child.lastOutput().trim()
  return output === '' ? 'it said nothing' : `its last words were\n${output}`
}
