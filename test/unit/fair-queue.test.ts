import { setMaxListeners } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Release } from '../../api/admission/admission.ts'
import { createFairQueue, type QueueLimits } from '../../api/admission/fair-queue.ts'

/** Signal of a client that never disconnects. */
const { signal: connected } = new AbortController()
setMaxListeners(0, connected)

/** Resolves after all pending promise callbacks. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A queue with a clock of the test. Admitted work ends when the test calls `finish`, the oldest first. */
function createStage(limits: Partial<QueueLimits> = {}) {
  const state = { now: 0, waiting: 0, rejected: 0, waits: [] as number[] }
  const meters = {
    waiting: (count: number) => void Object.assign(state, { waiting: count }),
    waited: (seconds: number) => void state.waits.push(seconds),
    rejected: () => void state.rejected++,
  }
  const queue = createFairQueue({ slots: 1, maxWaiting: 512, ...limits, clock: () => state.now }, meters)
  const started: string[] = []
  const running: { client: string; release: Release }[] = []
  const enter = (client: string, signal = connected) => {
    const ticket = queue.enter(client, signal)
    const admitted = ticket.turn.then((release) => {
      started.push(client)
      running.push({ client, release })
      return client
    })
    return { admitted, alsoFor: ticket.alsoFor }
  }
  const request = async (client: string, signal?: AbortSignal) => enter(client, signal).admitted
  const requestMany = (client: string, count: number) => Array.from({ length: count }, () => request(client))
  /** Ends the work of `count` slots, each after `tookMs` milliseconds. Default: until none is in use. */
  const finish = async (tookMs = 0, count = Number.POSITIVE_INFINITY) => {
    for (let ended = 0; ended < count; ended += 1) {
      await settled()
      const oldest = running.shift()
      if (oldest === undefined) return
      state.now += tookMs
      oldest.release()
    }
    await settled()
  }
  /** Lets the queue measure how long work takes. */
  const measure = async (tookMs: number) => {
    const first = request('first')
    await finish(tookMs)
    await first
  }
  return { state, queue, started, running, enter, request, requestMany, finish, measure }
}

const statusesOf = async (requests: readonly Promise<unknown>[]) =>
  (await Promise.allSettled(requests)).map(({ status }) => status)

const rejection = { code: 'unavailable', particulars: { headers: { 'Retry-After': expect.stringMatching(/^\d+$/) } } }

describe('createFairQueue', () => {
  it('runs at most `slots` requests at a time and finishes all of them', async () => {
    const { state, running, requestMany, finish } = createStage({ slots: 4 })
    const requests = requestMany('a', 100)
    await settled()
    expect([running.length, state.waiting]).toEqual([4, 96])
    await finish()
    await Promise.all(requests)
    expect([state.waiting, state.rejected, state.waits.length]).toEqual([0, 0, 100])
  })

  it('alternates between clients, however many requests one of them sends', async () => {
    const { started, request, requestMany, finish } = createStage()
    const requests = [...requestMany('a', 20), ...requestMany('b', 2), request('c')]
    await finish()
    await Promise.all(requests)
    expect(started.slice(0, 7)).toEqual(['a', 'a', 'b', 'c', 'a', 'b', 'a'])
  })

  it('keeps slots free for other clients', async () => {
    const { started, requestMany, request, finish } = createStage({ slots: 4, slotsPerClient: 2 })
    const flood = requestMany('a', 6)
    await settled()
    expect(started).toEqual(['a', 'a'])
    const second = request('b')
    await settled()
    expect(started).toEqual(['a', 'a', 'b'])
    await finish()
    await Promise.all([...flood, second])
  })

  it('admits a page with a hundred charts, also if a chart takes a second', async () => {
    const { state, requestMany, finish, measure } = createStage({ slots: 2 })
    await measure(1_000)
    const page = requestMany('a', 128)
    await finish(1_000)
    expect(await Promise.all(page)).toHaveLength(128)
    expect(state.rejected).toBe(0)
  })

  it('rejects a request with `Retry-After` if too many requests of its client wait, but no other client', async () => {
    const { state, request, requestMany, finish } = createStage()
    const page = requestMany('a', 129)
    await expect(request('a')).rejects.toMatchObject(rejection)
    const second = request('b')
    await finish()
    expect(await Promise.all([...page, second])).toHaveLength(130)
    expect(state.rejected).toBe(1)
  })

  it('rejects the newest request of the longest line if the queue is full', async () => {
    const { state, request, requestMany, finish } = createStage({ maxWaiting: 10 })
    const [running, ...flood] = requestMany('a', 11)
    await expect(request('a')).rejects.toMatchObject(rejection)
    const second = request('b')
    await expect(flood.at(-1)).rejects.toMatchObject(rejection)
    await finish()
    expect(await Promise.all([running, ...flood.slice(0, -1), second])).toHaveLength(11)
    expect(state.rejected).toBe(2)
  })

  it('frees the place of a disconnected client at once', async () => {
    const { state, started, request, finish } = createStage({ maxWaiting: 1 })
    const running = request('a')
    const leaves = new AbortController()
    const disconnected = request('b', leaves.signal)
    leaves.abort(new Error('left'))
    expect(state.waiting).toBe(0)
    const next = request('c')
    await expect(disconnected).rejects.toThrow('left')
    await finish()
    await Promise.all([running, next])
    expect(started).toEqual(['a', 'c'])
  })

  it('does not accept a request of a client that has disconnected before', async () => {
    const { state, started, request } = createStage()
    await expect(request('a', AbortSignal.abort(new Error('left')))).rejects.toThrow('left')
    expect([state.waiting, started]).toEqual([0, []])
  })

  it('runs work that several clients request at the earliest of their positions', async () => {
    const { started, enter, requestMany, finish } = createStage()
    const flood = requestMany('a', 10)
    const shared = enter('a')
    shared.alsoFor('b')
    let place = -1
    void shared.admitted.then(() => {
      place = started.length
    })
    await finish()
    await Promise.all([...flood, shared.admitted])
    expect(place).toBeLessThanOrEqual(3)
  })

  it('ignores repeated releases of a slot', async () => {
    const { queue, request, running, finish } = createStage()
    const release = await queue.enter('a', connected).turn
    const rest = [request('b'), request('c')]
    release()
    release()
    await settled()
    expect(running).toHaveLength(1)
    await finish()
    await Promise.all(rest)
  })

  it('rejects requests while no work has ended for seconds, and accepts them afterwards', async () => {
    const { state, request, finish } = createStage()
    const stuck = request('a')
    await settled()
    state.now += 4_000
    await expect(request('b')).rejects.toMatchObject(rejection)
    await finish()
    await stuck
    const next = request('b')
    await finish()
    expect(await next).toBe('b')
  })

  it('rejects a request that has waited for three times the maximum', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { state, request } = createStage({ maxWaitMs: 1_000 })
    void request('a')
    const late = request('b')
    vi.advanceTimersByTime(2_999)
    expect(state.waiting).toBe(1)
    vi.advanceTimersByTime(1)
    await expect(late).rejects.toMatchObject(rejection)
    expect(state.waiting).toBe(0)
  })
})

describe('createFairQueue in overload', () => {
  it('limits the expected wait to seconds if many clients send one request each', async () => {
    const { state, request, finish, measure } = createStage()
    await measure(100)
    const requests = Array.from({ length: 50 }, (_, number) => request(`client ${number}`))
    const statuses = statusesOf(requests)
    await finish(100)
    const rejected = (await statuses).filter((status) => status === 'rejected')
    expect(rejected.length).toBeGreaterThan(15)
    expect(rejected.length).toBe(state.rejected)
    expect(Math.max(...state.waits)).toBeLessThanOrEqual(3)
  })

  it('keeps the line of a flooding client short', async () => {
    const { state, request, requestMany, finish } = createStage()
    const burst = requestMany('a', 128)
    await finish(20, 52)
    await expect(request('a')).rejects.toMatchObject(rejection)
    await finish(20, 60)
    expect(state.waiting).toBeLessThan(20)
    const next = request('a')
    await finish(20)
    expect(await Promise.all([...burst, next])).toHaveLength(129)
  })

  it('rejects a flooding client before its request is parsed, but no other client', async () => {
    const { state, queue, finish, requestMany } = createStage()
    const page = requestMany('a', 128)
    await settled()
    // A page with many charts may send more requests that the caches answer.
    expect(() => queue.rejectEarly('a')).not.toThrow()
    await finish(20, 52)
    expect(() => queue.rejectEarly('a')).toThrow(expect.objectContaining(rejection))
    expect(() => queue.rejectEarly('b')).not.toThrow()
    expect(state).toMatchObject({ rejected: 1 })
    await finish(20)
    await Promise.all(page)
    expect(() => queue.rejectEarly('a')).not.toThrow()
  })

  it('gives a flooding client one slot with pauses while another client sends requests, and its slots afterwards', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { state, running, request, requestMany, finish } = createStage({ slots: 8, slotsPerClient: 4 })
    const count = () => ['a', 'b'].map((name) => running.filter(({ client }) => client === name).length)
    const flood = requestMany('a', 128)
    await finish(100, 21)
    expect(count()).toEqual([4, 0])
    const second = request('b')
    await finish(100, 4)
    expect(count()).toEqual([0, 1])
    vi.advanceTimersByTime(1_000)
    await settled()
    expect(count()).toEqual([1, 1])
    state.now += 1_000
    await finish(0, 1)
    expect(count()).toEqual([4, 0])
    await finish()
    await Promise.all([...flood, second])
  })

  it('gives all slots to flooding clients if there are no others', async () => {
    const { running, requestMany, finish } = createStage({ slots: 8, slotsPerClient: 4 })
    const floods = ['a', 'b'].flatMap((client) => requestMany(client, 100))
    await finish(50, 40)
    expect(running).toHaveLength(8)
    await finish()
    await Promise.all(floods)
  })

  it('does not reject a client that waits for its answers, however slow they are', async () => {
    const { state, request, finish, measure } = createStage({ slots: 2 })
    await measure(500)
    const requests: Promise<string>[] = []
    for (let sent = 0; sent < 40; sent += 1) {
      for (let free = 15 - state.waiting; free > 0; free -= 1) requests.push(request('a'))
      await finish(500, 1)
    }
    await finish(500)
    await Promise.all(requests)
    expect(state.rejected).toBe(0)
  })

  it('accepts a page with a hundred charts again after the load', async () => {
    const { state, requestMany, finish } = createStage({ slots: 2 })
    const flood = statusesOf(requestMany('a', 300))
    await finish(100)
    await flood
    const { rejected } = state
    const page = requestMany('a', 100)
    await finish(100)
    expect(await Promise.all(page)).toHaveLength(100)
    expect([state.rejected, state.waiting]).toEqual([rejected, 0])
  })
})
