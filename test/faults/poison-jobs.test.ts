import { once } from 'node:events'
import { join } from 'node:path'
import { QueueEvents } from 'bullmq'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createQueue, type DatasetQueue } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { createTestConfig, createTestDatabase } from '../support/database.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { LONG_SLOT, POISON_SLOT, SECOND_SLOT } from './poison-slots.ts'

let environment: Record<string, string>
let queue: DatasetQueue
let events: QueueEvents
let close: () => Promise<void>

beforeEach(async () => {
  const config = createTestConfig()
  const { url, prefix } = config.redis
  environment = { ...toStoreSettings(config), REDIS_URL: url, QUEUE_PREFIX: prefix }
  const database = await createTestDatabase(config)
  const redis = createRedis(url, silent)
  const blocking = createRedis(url, silent, 'blocking')
  queue = createQueue('tvl', redis, prefix)
  events = new QueueEvents('tvl', { connection: blocking, prefix })
  await events.waitUntilReady()
  close = async () => {
    await events.close()
    await queue.close()
    redis.disconnect()
    blocking.disconnect()
    await database.drop()
  }
})
afterEach(() => close())

const start = () => startChild('worker', join(import.meta.dirname, 'poison-part.ts'), environment)

async function kill(worker: Child): Promise<void> {
  worker.process.kill('SIGKILL')
  await worker.ended
}

const add = (slot: number, jobId: string) => queue.add('tvl', { kind: 'slot', slot }, { jobId })

/** Resolves when a job has ended, with the reason of a dead letter. */
function untilEnded(id: string): Promise<string> {
  return new Promise((resolve) => {
    events.on('failed', ({ jobId, failedReason }) => jobId === id && resolve(failedReason))
    events.on('completed', ({ jobId }) => jobId === id && resolve('completed'))
  })
}

it('worker moves a job to the dead letters after three crashes, with the reason, and continues with the queue', async () => {
  let crashes = 0
  let worker = start()
  let isOver = false
  const supervised = (async () => {
    while (!isOver) {
      const end = await worker.ended
      if (isOver) return
      expect(end).toBe('SIGKILL')
      crashes += 1
      worker = start()
    }
  })()
  const [poison, next] = [untilEnded('poison'), untilEnded('next')]
  await add(POISON_SLOT, 'poison')
  await add(SECOND_SLOT, 'next')
  expect(await poison).toMatch(/^the worker that ran this job died or hung 3 times, while no other worker did: /)
  expect([crashes, await next]).toEqual([3, 'completed'])
  isOver = true
  await kill(worker)
  await supervised
})

it('worker completes a job whose worker is killed repeatedly from outside', async () => {
  const workers = [start(), start()]
  await Promise.all(workers.map(untilReady))
  const done = untilEnded('long')
  const underWay = () =>
    Promise.race(workers.map((worker) => once(worker.process, 'message').then(() => workers.indexOf(worker))))
  let running = underWay()
  await add(LONG_SLOT, 'long')
  for (let crash = 0; crash < 5; crash += 1) {
    const at = await running
    const replace = async (index: number) => {
      const old = workers[index]
      if (old !== undefined) await kill(old)
      const fresh = start()
      workers[index] = fresh
      return fresh
    }
    // The other worker is killed twice, and runs again before the worker of the job is killed.
    for (let times = 0; times < 2; times += 1) await untilReady(await replace(1 - at))
    await replace(at)
    running = underWay()
  }
  workers[await running]?.process.send({ goOn: true })
  expect(await done).toBe('completed')
  expect((await queue.getJob('long'))?.stalledCounter).toBe(5)
  await Promise.all(workers.map(kill))
}, 240_000)
