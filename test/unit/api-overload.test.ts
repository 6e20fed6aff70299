import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createQueueStage, names, settled } from '../support/queue-stage.ts'

describe('createQueue in overload', () => {
  it('gives a flood fewer places while another client is active, and all of its places afterwards', async () => {
    const { state, board, begun, finish } = createQueueStage({ places: 4, perClient: 2, perFlood: 1, modest: 2 })
    const flood = names('a', 12).map((name) => board('a', 'r', name))
    await settled()
    expect(begun).toEqual(['a0', 'a1'])
    const other = board('b', 'r', 'b0')
    await finish(0, 2)
    expect(begun).toEqual(['a0', 'a1', 'b0', 'a2'])
    await finish(0, 2)
    expect(begun.slice(4)).toEqual(['a3'])
    state.now += 1_000
    await finish(0, 1)
    expect(begun.slice(5)).toEqual(['a4', 'a5'])
    await finish()
    expect(await Promise.all([...flood, other])).toHaveLength(13)
  })

  it('pauses the place of a flood in overload while another client is active', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { state, board, begun, finish } = createQueueStage({ places: 4, perClient: 2, perFlood: 1, modest: 2 })
    const flood = names('a', 30).map((name) => board('a', 'r', name))
    await finish(150, 14)
    expect([state.now, begun.length]).toEqual([2_100, 16])
    const other = board('b', 'r', 'b0')
    // Three tasks are running: two of the flood, started at 1,950 and 2,100, and one of the other client.
    await finish(50, 3)
    expect(begun.slice(16)).toEqual(['b0'])
    // A task of 200 ms pauses the flood for 400 ms, one of 100 ms for 200 ms. The flood then has no running task and
    // may start one.
    vi.advanceTimersByTime(399)
    await settled()
    expect(begun).toHaveLength(17)
    vi.advanceTimersByTime(1)
    await settled()
    expect(begun.slice(17)).toEqual(['a16'])
    state.now += 1_000
    await finish()
    expect(await Promise.all([...flood, other])).toHaveLength(31)
  })

  it('accepts a task with a short expected wait while all places of the flood are paused', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { board, begun, finish } = createQueueStage({ places: 4, perClient: 2, perFlood: 1, modest: 2 })
    const flood = names('a', 206).map((name) => board('a', 'r', name))
    await finish(10, 201)
    const other = board('b', 'r', 'b0')
    await finish(10, 3)
    expect(begun).toHaveLength(204)
    const late = board('a', 'r', 'late')
    await settled()
    for (let rests = 0; rests < 9; rests += 1) {
      vi.advanceTimersByTime(30)
      await finish(10)
    }
    expect(await Promise.all([...flood, other, late])).toHaveLength(208)
  })

  it('uses all places if only floods are active', async () => {
    const { state, board, begun, finish } = createQueueStage({ places: 4, perClient: 2, perFlood: 1, modest: 2 })
    const floods = [...names('a', 10), ...names('b', 10)].map((name) => board(name.slice(0, 1), 'r', name))
    await settled()
    expect(begun).toEqual(['a0', 'a1', 'b0', 'b1'])
    // Clients a and b started as normal clients and are floods by now. They send more.
    state.now += 1_000
    const more = [...names('a-', 5), ...names('b-', 5)].map((name) => board(name.slice(0, 1), 'r', name))
    await finish(0, 4)
    expect(begun).toHaveLength(8)
    await finish()
    expect(await Promise.all([...floods, ...more])).toHaveLength(30)
  })

  it('treats a client as a flood until at most half of `modest` tasks wait', async () => {
    const { state, board, begun, finish } = createQueueStage({ places: 4, perClient: 2, perFlood: 1, modest: 4 })
    const floods = [...names('a', 30), ...names('b', 10)].map((name) => board(name.slice(0, 1), 'r', name))
    await settled()
    // Clients a and b started as normal clients.
    state.now += 1_000
    await finish(0, 8)
    expect(begun).toHaveLength(12)
    // Four tasks of b wait, at the limit of a modest client. Rejections can keep a flood at this limit.
    state.now += 1_000
    const edge = board('b', 'r', 'b at the edge')
    await finish(0, 4)
    expect(begun.slice(12).toSorted()).toEqual(['a6', 'a7', 'b6', 'b7'])
    await finish(0, 5)
    // Client b has one waiting task, so it counts as modest next to the rest of a.
    const little = board('b', 'r', 'little')
    await finish(0, 4)
    expect(begun.slice(-4).filter((name) => name.startsWith('a'))).toHaveLength(2)
    await finish()
    expect(await Promise.all([...floods, edge, little])).toHaveLength(42)
  })

  it('computes the wait of a flood from the places it really has', async () => {
    const { state, board, finish } = createQueueStage({ places: 4, perClient: 4, perFlood: 1, modest: 2 })
    const first = board('a', 'r', 'first')
    await finish(50)
    await first
    const others = ['b', 'c', 'd'].map((client) => board(client, 'r', client))
    const flood = names('a', 129).map((name) => board('a', 'r', name))
    // More than a burst. A quarter of 129 * 0.05 s would be acceptable, but the flood has only one place.
    await expect(board('a', 'r', 'too late')).rejects.toMatchObject({ code: 'unavailable' })
    const more = board('b', 'r', 'of somebody else')
    await finish(50)
    expect(await Promise.all([...others, ...flood, more])).toHaveLength(133)
    expect(state.refused).toBe(1)
  })

  it('limits the wait to seconds in overload, also with many modest clients', async () => {
    const { state, board, finish } = createQueueStage({ modest: 64 })
    const first = board('a', 'r', 'first')
    await finish(100)
    await first
    const clients = names('c', 50).map((client) => board(client, 'r', client))
    await finish(100, 21)
    const late = names('d', 10).map((client) => board(client, 'r', client))
    const outcomes = Promise.allSettled(late)
    await finish(100)
    await Promise.all(clients)
    // The 22nd of 50 tasks is running and 28 wait. The first two late tasks expect 2.9 and 3 seconds.
    expect((await outcomes).map(({ status }) => status)).toEqual([
      ...Array(2).fill('fulfilled'),
      ...Array(8).fill('rejected'),
    ])
    expect(state.refused).toBe(8)
  })

  it('rejects a task with an expected wait of several seconds at the current speed', async () => {
    const { board, finish } = createQueueStage()
    const first = board('a', 'r', 'first')
    await finish(1_000)
    await first
    // The size of a burst does not depend on the speed.
    const answers = names('b', 129).map((name) => board('b', 'r', name))
    await expect(board('b', 'r', 'too late')).rejects.toMatchObject({ code: 'unavailable' })
    const other = board('c', 'r', 'of somebody else')
    await finish(1_000)
    expect(await Promise.all([...answers, other])).toHaveLength(130)
  })

  it('is kept short in overload, and accepts all clients again afterwards', async () => {
    const { state, board, finish } = createQueueStage({ modest: 5 })
    const first = board('a', 'r', 'first')
    await finish(100)
    await first
    const burst = names('b', 50).map((name) => board('b', 'r', name))
    await finish(100, 25)
    // 24 tasks have waited for 2.5 seconds. A new client of that class expects 2.4 seconds, a modest client 0.1 to 0.9.
    const late = Promise.allSettled(names('c', 4).map((name) => board('b', 'r', name)))
    const modest = names('d', 5).map((name) => board('d', 'r', name))
    expect((await late).map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
    await finish(100)
    expect(await Promise.all([...burst, ...modest])).toHaveLength(55)
    expect(state).toMatchObject({ waiting: 0, refused: 4 })
    const after = names('e', 30).map((name) => board('e', 'r', name))
    await finish(100)
    expect(await Promise.all(after)).toHaveLength(30)
  })

  it('turnAway() rejects only a flood in overload, before its request is parsed', async () => {
    const { state, queue, board, finish } = createQueueStage({ modest: 5 })
    const first = board('a', 'r', 'first')
    await finish(100)
    await first
    const burst = names('b', 50).map((name) => board('b', 'r', name))
    await settled()
    const turnAway = (client: string, route = 'r') => queue.turnAway({ client, route })
    // A page with many charts may send this many requests.
    expect(() => turnAway('b')).not.toThrow()
    await finish(100, 25)
    expect(() => turnAway('b')).toThrow(expect.objectContaining({ code: 'unavailable' }))
    expect(() => turnAway('b', 'other')).not.toThrow()
    expect(() => turnAway('c')).not.toThrow()
    expect(state).toMatchObject({ waiting: 24, refused: 1 })
    await finish(100)
    expect(await Promise.all(burst)).toHaveLength(50)
    expect(() => turnAway('b')).not.toThrow()
  })

  it('lets modest clients wait for seconds in overload', async () => {
    const { board, finish } = createQueueStage({ modest: 5 })
    const first = board('a', 'r', 'first')
    await finish(250)
    await first
    const burst = names('b', 50).map((name) => board('b', 'r', name))
    await finish(250, 25)
    // Tasks alternate with those of the flood. The sixth expects 2.5 seconds and exceeds the limit of a modest client.
    const [sixth, ...few] = names('c', 6)
      .map((name) => board('c', 'r', name))
      .reverse()
    await expect(sixth).rejects.toMatchObject({ code: 'unavailable' })
    await finish(250)
    expect(await Promise.all([...burst, ...few])).toHaveLength(55)
  })
})
