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
  /** Whose jobs they are. */
  readonly lane: Lane
}

/** Finds the jobs that kill the process that runs them. */
export interface CrashWatch {
  /**
   * Runs a job, at once or, if its worker died or hung before, when no other such job runs in this process.
   * @throws UnrecoverableError for a job that has killed its workers, DataError `storage` where Redis does not tell.
   */
  run<T>(queued: Queued, work: () => Promise<T>): Promise<T>
}

/** The jobs of this process that were there in a crash and wait for the one of them that runs. */
const suspects: Record<Lane, (() => Promise<void>)[]> = { live: [], history: [] }
let isServed = false

/** A slot is soon over, a range is not: what is live comes first. */
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
 * The queue counts how often a job's worker died, or hung, while it ran; it cannot tell a job that kills its worker from
 * one that was there when another job did, or when a machine went down. Two rules tell them apart:
 * - Jobs that were there in a crash run one after the other in a process, and are judged when their turn has come. So one
 *   that kills its worker does so without the others, and these are not blamed for what they waited through.
 * - Whoever kills workers from outside kills those without the job as well. So Redis counts, per queue, the workers that
 *   have begun and not ended on purpose. A job is to blame for a crash if no more than this one worker ended unasked since
 *   it was judged before; if others did too, the count of blame begins anew.
 *
 * Where Redis was emptied or a worker's end was not noted, the count only clears a job that should have been blamed, which
 * then takes some crashes more.
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
  // A worker that is closed while Redis is away hands nothing back: its jobs are taken over as after a crash.
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
