import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DataError, toReason } from '../shared/errors.ts'
import { STOP_DEADLINE_MS } from '../shared/process.ts'
import { type Child, startChild, untilReady } from './children.ts'

/** A program that runs as long as the system. */
export interface Part {
  readonly name: string
  /** Relative to the root of the project. */
  readonly file: string
  readonly args?: readonly string[]
}

export interface Supervisor {
  /**
   * Starts a process and resolves with the facts that it announces when ready. From then on, restarts it whenever it
   * exits.
   * @throws DataError `config` if it exits before it was ready, or if the supervisor is stopping.
   */
  start(part: Part): Promise<Record<string, unknown>>
  /** Stops one process, which may be started again. */
  end(part: Part): Promise<void>
  /**
   * Stops all processes in reverse order of their start, so that each still has its dependencies. Kills a process that
   * hangs.
   */
  stop(): Promise<void>
}

/** Delays before restarts. After this number of consecutive exits the process is lost. */
const PAUSES_MS: readonly number[] = [500, 1_000, 2_000, 4_000, 8_000, 16_000]
/** After this time a process counts as recovered, and earlier exits no longer count. */
const ALIVE_MS = 60_000

/** Every process exits without a kill before that. Killing one that hangs lets the others proceed. */
const KILLED_AFTER_MS = STOP_DEADLINE_MS + 5_000

/** Poll interval for free disk space. */
const DISK_POLL_MS = 5_000

/** Free space that a process needs to start; ClickHouse writes some files of this size. */
const NEEDED_BYTES = 1024 * 1024

const DISK_FAULTS: Readonly<Record<string, string>> = {
  ENOSPC: 'full',
  EDQUOT: 'full for this user (a quota)',
  EROFS: 'read-only',
}

/** Tries to write to the disk of a folder. Returns the reason why writes fail; undefined if they succeed. */
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
      // On a read-only disk, the file of an earlier check remains.
    }
  }
}

interface Supervised {
  readonly part: Part
  child: Child
  startedAt: number
  deaths: number
  restartTimer: NodeJS.Timeout | undefined
}

/**
 * Restarts processes that exit unexpectedly, after increasing delays and with a message. Calls `onLost` once, with the
 * last output, if a process keeps exiting. Starts nothing while `findFault` reports a fault.
 */
export function createSupervisor(options: {
  readonly say: (line: string) => void
  readonly onLost: (reason: string) => void
  readonly pausesMs?: readonly number[]
  readonly aliveMs?: number
  readonly killedAfterMs?: number
  /** Returns the reason why an exited process cannot run now, such as a full disk; undefined without one. */
  readonly findFault?: () => string | undefined
  readonly pollMs?: number
}): Supervisor {
  const { say, onLost, pausesMs = PAUSES_MS, aliveMs = ALIVE_MS, killedAfterMs = KILLED_AFTER_MS } = options
  const { findFault = () => undefined, pollMs = DISK_POLL_MS } = options
  let parts: readonly Supervised[] = []
  let isStopping = false
  /** Whether the process must not be restarted. */
  const isOver = (supervised: Supervised) => isStopping || !parts.includes(supervised)

  const launch = ({ name, file, args }: Part) => startChild(name, file, {}, args, { keepsOutput: true })

  const watch = async (supervised: Supervised) => {
    const how = `${supervised.part.name} ended with ${await supervised.child.ended}`
    if (isOver(supervised)) return
    const fault = findFault()
    if (fault !== undefined) {
      // The disk caused the exits, so they do not count.
      supervised.deaths = 0
      say(`${how}: ${fault}: it is restarted when it can write there`)
      return startWithRoom(supervised)
    }
    supervised.deaths = performance.now() - supervised.startedAt < aliveMs ? supervised.deaths + 1 : 1
    const pause = pausesMs[supervised.deaths - 1]
    if (pause === undefined)
      return onLost(`${how} for the ${supervised.deaths}th time in a row: ${toLast(supervised.child)}`)
    say(`${how}: it is restarted in ${pause / 1000} s`)
    supervised.restartTimer = setTimeout(() => void restart(supervised), pause)
  }

  const startWithRoom = (supervised: Supervised) => {
    supervised.restartTimer = setTimeout(() => {
      if (findFault() === undefined) void restart(supervised)
      else startWithRoom(supervised)
    }, pollMs)
  }

  const restart = async (supervised: Supervised) => {
    supervised.child = launch(supervised.part)
    supervised.startedAt = performance.now()
    void watch(supervised)
    try {
      await untilReady(supervised.child)
      say(`${supervised.part.name} is back`)
    } catch (error) {
      // The process exited before it was ready. `watch` has already scheduled the next restart, unless the system
      // stops.
      if (!isOver(supervised)) say(toReason(error))
    }
  }

  const endPart = async ({ part, restartTimer, child }: Supervised) => {
    clearTimeout(restartTimer)
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
      if (isStopping) throw new DataError('config', `${part.name} is not started, because the system is stopping`)
      const supervised: Supervised = {
        part,
        child: launch(part),
        startedAt: performance.now(),
        deaths: 0,
        restartTimer: undefined,
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
      for (const { restartTimer } of parts) clearTimeout(restartTimer)
      for (const supervised of [...parts].reverse()) await endPart(supervised)
    },
  }
}

const isRunning = ({ process }: Child): boolean =>
  process.pid !== undefined && process.exitCode === null && process.signalCode === null

const toLast = (child: Child): string => {
  const output = child.lastOutput().trim()
  return output === '' ? 'it printed nothing' : `its last output was\n${output}`
}
