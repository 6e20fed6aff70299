import { once } from 'node:events'
import type { Worker } from 'bullmq'
import type { DatasetQueue } from '../../shared/queue/queues.ts'

/** Resolves when no job waits or runs on a queue that a worker of this process serves. */
export async function untilIdle(worker: Worker, queue: DatasetQueue): Promise<void> {
  for (;;) {
    // Registers the listener before the count, so that no completion in between is missed.
    const next = once(worker, 'completed')
    const counts = await queue.getJobCounts('wait', 'prioritized', 'delayed', 'active')
    if (Object.values(counts).every((count) => count === 0)) return
    await next
  }
}
