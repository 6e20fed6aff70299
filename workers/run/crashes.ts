import { UnrecoverableError, type Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { toReason } from '../../shared/errors.ts'
import { askRedis } from '../../shared/queue/ask-redis.ts'
import { addNotes, MOST_BLAMED, MOST_JUDGED, type Queued, readNotes } from '../../shared/queue/job-notes.ts'
import type { Lane } from '../../shared/queue/lanes.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

interface CrashContext {
  readonly redis: Redis
  readonly prefix: string
  readonly log: Logger
  /** Queue class of the jobs. */
  readonly lane: Lane
}

/** Detects jobs that crash their process. */
export interface CrashWatch {
  /**
   * Runs a job immediately. If its worker died or hung before, runs it when no other suspect job runs in this process.
   * @throws UnrecoverableError for a job that has crashed its workers, DataError `storage` if Redis is unavailable.
   */
  run<T>(queued: Queued, work: () => Promise<T>): Promise<T>
}

/** Suspect jobs of this process (they were running during a crash), waiting for the running suspect to finish. */
const suspects: Record<Lane, (() => Promise<void>)[]> = { live: [], history: [] }
let isServed = false

/** Live jobs run first: a slot expires soon, a range does not. */
async function serveLine(): Promise<void> {
  if (isServed) return
  isServed = true
  for (let next = toNext(); next !== undefined; next = toNext()) await next()
  isServed = false
}

const toNext = () => suspects.live.shift() ?? suspects.history.shift()

function inLine<T>(lane: Lane, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    suspects[lane].push(() => work().then(resolve, reject))
    void serveLine()
  })
}

/**
 * BullMQ counts how often a job's worker died or hung while the job ran. The count cannot distinguish a job that
 * crashes its worker from a job that ran next to it, or from a machine failure. Two rules distinguish them:
 * - Suspect jobs run one at a time per process, and are judged when their turn starts. A job that crashes its worker
 *   then does so alone, and waiting jobs are not blamed.
 * - An external cause also ends workers that do not run the job. Redis therefore counts, per queue, the workers that
 *   started and did not close on purpose. The job is blamed if at most one worker ended since its last judgement. If
 *   more ended, the blame count restarts at 1.
 *
 * If Redis was emptied or a worker's end was not recorded, the error is on the safe side: a job to blame may be
 * cleared, and needs some more crashes before it is blamed.
 */
export function createCrashWatch(worker: Worker, { redis, prefix, log, lane }: CrashContext): CrashWatch {
  const key = `${prefix}:workers`
  const count = async (by: number) => {
    try {
      await redis.hincrby(key, worker.name, by)
    } catch (error) {
      log.debug({ queue: worker.name, reason: toReason(error) }, 'a worker could not be counted')
    }
  }
  void count(1)
  // If Redis is unavailable, a closing worker cannot return its jobs. They are taken over as after a crash.
  worker.on('closed', () => void (redis.status === 'ready' && count(-1)))
  const judge = async (queued: Queued) => {
    const seen = queued.stalledCounter
    const before = readNotes(queued).crashes
    if (seen === before?.seen) return
    const ended = Number((await askRedis('workers that ended', () => redis.hget(key, worker.name))) ?? 0)
    const isAlone = before === undefined || ended - before.ended <= 1
    const judged = (before?.judged ?? 0) + 1
    const blamed = isAlone ? (before?.blamed ?? 0) + 1 : 1
    await addNotes(queued, { crashes: { seen, judged, blamed, ended } })
    if (blamed < MOST_BLAMED && judged < MOST_JUDGED) return
    const others = blamed < MOST_BLAMED ? 'whoever is to blame' : 'while no other worker did'
    throw new UnrecoverableError(
      `the worker that ran this job died or hung ${judged} times, ${others}: see the last output of the workers; a retry gives the job one more try`,
    )
  }
  return {
    run: (queued, work) => {
      if (queued.stalledCounter === 0) return work()
      return inLine(lane, async () => {
        await judge(queued)
        return work()
      })
    },
  }
}
