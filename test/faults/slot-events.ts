import { QueueEvents } from 'bullmq'
import type { Redis } from 'ioredis'

/** Outcomes of the jobs of several queues, from the time of opening. */
export interface SlotEvents {
  /** `<dataset>: <reason>` of each job that failed permanently. */
  readonly deadLetters: readonly string[]
  /** Resolves when all of these jobs are complete, also if they already are. Rejects when one becomes a dead letter. */
  untilComplete(ids: readonly string[]): Promise<void>
  close(): Promise<void>
}

export async function openSlotEvents(queues: readonly string[], redis: Redis, prefix: string): Promise<SlotEvents> {
  const complete = new Set<string>()
  const deadLetters: string[] = []
  let onReceived = () => {}
  const opened = queues.map((name) => {
    const connection = redis.duplicate({ maxRetriesPerRequest: null })
    const events = new QueueEvents(name, { connection, prefix })
    events.on('completed', ({ jobId }) => {
      complete.add(jobId)
      onReceived()
    })
    events.on('failed', ({ failedReason }) => {
      deadLetters.push(`${name}: ${failedReason}`)
      onReceived()
    })
    return { events, connection }
  })
  await Promise.all(opened.map(({ events }) => events.waitUntilReady()))
  return {
    deadLetters,
    untilComplete: (ids) =>
      new Promise((resolve, reject) => {
        onReceived = () => {
          if (deadLetters.length > 0) reject(new Error(`dead letters: ${deadLetters.join('; ')}`))
          else if (ids.every((id) => complete.has(id))) resolve()
        }
        onReceived()
      }),
    close: async () => {
      await Promise.all(opened.map(({ events }) => events.close()))
      for (const { connection } of opened) connection.disconnect()
    },
  }
}
