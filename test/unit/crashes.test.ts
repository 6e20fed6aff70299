import { EventEmitter } from 'node:events'
import type { Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import type { Queued } from '../../shared/queue/job-notes.ts'
import type { QueueClass } from '../../shared/queue/queue-classes.ts'
import { createCrashWatch } from '../../workers/run/runner.ts'
import { silent } from '../support/silent.ts'

/** A Redis without recorded crashes, or an unavailable Redis. */
const toRedis = (isUnavailable: boolean) => {
  const command = async () => (isUnavailable ? Promise.reject(new Error('Connection is closed.')) : '0')
  return { status: 'ready', hget: command, hincrby: command } as unknown as Redis
}

/** The crash watch for the jobs of a queue class. */
function watch(queueClass: QueueClass, isUnavailable = false) {
  const worker = Object.assign(new EventEmitter(), { name: `tvl.${queueClass}` }) as unknown as Worker
  return createCrashWatch(worker, { redis: toRedis(isUnavailable), prefix: 'test', log: silent, queueClass })
}

/** A job whose worker died once. */
const suspect = () => ({ stalledCounter: 1, progress: 0, updateProgress: async () => {} }) as unknown as Queued

describe('createCrashWatch', () => {
  it('runs suspect jobs one at a time, live slots before waiting ranges', async () => {
    const [live, history] = [watch('live'), watch('history')]
    const began: string[] = []
    let end = () => {}
    const held = new Promise<void>((resolve) => {
      end = resolve
    })
    const run = (name: string, queueClass: QueueClass) =>
      (queueClass === 'live' ? live : history).run(suspect(), async () => {
        began.push(name)
        if (name === 'first') await held
        if (name === 'second') throw new Error('failed')
      })
    const first = run('first', 'history')
    const rest = [run('second', 'history'), run('third', 'history'), run('slot', 'live')]
    const outcomes = Promise.allSettled(rest)
    await expect.poll(() => began).toEqual(['first'])
    end()
    await first
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
    expect(began).toEqual(['first', 'slot', 'second', 'third'])
  })

  it('rejects a suspect job as retryable if Redis is unavailable', async () => {
    const unavailable = watch('live', true)
    await expect(unavailable.run(suspect(), async () => 'done')).rejects.toMatchObject({ code: 'storage' })
  })
})
