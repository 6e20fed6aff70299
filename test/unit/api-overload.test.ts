import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createQueueStage, names, settled } from '../support/queue-stage.ts'

describe('the queue of answers in overload', () => {
  it('has a flood take fewer places while others come, and as many as before once they are gone', async () => {
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

  it('has the place of a flood rest in overload while others come', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { state, board, begun, finish } = createQueueStage({ places: 4, perClient: 2, perFlood: 1, modest: 2 })
    const flood = names('a', 30).map((name) => board('a', 'r', name))
    await finish(150, 14)
    expect([state.now, begun.length]).toEqual([2_100, 16])
    const other = board('b', 'r', 'b0')
    // The two that are under way, which began at 1,950 and at 2,100, and the other one's.
    await finish(50, 3)
    expect(begun.slice(16)).toEqual(['b0'])
    // What took 200 rests for 400, what took 100 for 200: then it has none of its places any more, and may have one.
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

  it('takes on who need not wait long while all that work rest', async () => {
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

  it('leaves no place idle between floods that nobody else is beside', async () => {
    const { state, board, begun, finish } = createQueueStage({ places: 4, perClient: 2, perFlood: 1, modest: 2 })
    const floods = [...names('a', 10), ...names('b', 10)].map((name) => board(name.slice(0, 1), 'r', name))
    await settled()
    expect(begun).toEqual(['a0', 'a1', 'b0', 'b1'])
    // Since they came as clients like any, both are floods, and more of both come.
    state.now += 1_000
    const more = [...names('a-', 5), ...names('b-', 5)].map((name) => board(name.slice(0, 1), 'r', name))
    await finish(0, 4)
    expect(begun).toHaveLength(8)
    await finish()
    expect(await Promise.all([...floods, ...more])).toHaveLength(30)
  })

  it('takes nobody for company who was a flood until now, and waits for half of that at least', async () => {
    const { state, board, begun, finish } = createQueueStage({ places: 4, perClient: 2, perFlood: 1, modest: 4 })
    const floods = [...names('a', 30), ...names('b', 10)].map((name) => board(name.slice(0, 1), 'r', name))
    await settled()
    // Both came as clients like any.
    state.now += 1_000
    await finish(0, 8)
    expect(begun).toHaveLength(12)
    // Of b four wait, as of a client who asks for little: refusals hold a flood there.
    state.now += 1_000
    const edge = board('b', 'r', 'b at the edge')
    await finish(0, 4)
    expect(begun.slice(12).toSorted()).toEqual(['a6', 'a7', 'b6', 'b7'])
    await finish(0, 5)
    // One of b waits: it asks for little from now on, beside what is left of a.
    const little = board('b', 'r', 'little')
    await finish(0, 4)
    expect(begun.slice(-4).filter((name) => name.startsWith('a'))).toHaveLength(2)
    await finish()
    expect(await Promise.all([...floods, edge, little])).toHaveLength(42)
  })

  it('counts on no more places for a flood than it has', async () => {
    const { state, board, finish } = createQueueStage({ places: 4, perClient: 4, perFlood: 1, modest: 2 })
    const first = board('a', 'r', 'first')
    await finish(50)
    await first
    const others = ['b', 'c', 'd'].map((client) => board(client, 'r', client))
    const flood = names('a', 129).map((name) => board('a', 'r', name))
    // More than a burst: a quarter of 129 times 0.05 seconds would be borne, but it takes turns on its one place.
    await expect(board('a', 'r', 'too late')).rejects.toMatchObject({ code: 'unavailable' })
    const more = board('b', 'r', 'of somebody else')
    await finish(50)
    expect(await Promise.all([...others, ...flood, more])).toHaveLength(133)
    expect(state.refused).toBe(1)
  })

  it('has nobody wait for more than seconds in overload, however many ask for little', async () => {
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
    // Of 50 the 22nd is under way and 28 wait: the first two of these find 2.9 and 3 seconds before them.
    expect((await outcomes).map(({ status }) => status)).toEqual([
      ...Array(2).fill('fulfilled'),
      ...Array(8).fill('rejected'),
    ])
    expect(state.refused).toBe(8)
  })

  it('refuses who would wait for more than seconds, by how fast it goes', async () => {
    const { board, finish } = createQueueStage()
    const first = board('a', 'r', 'first')
    await finish(1_000)
    await first
    // A burst is no matter of time.
    const answers = names('b', 129).map((name) => board('b', 'r', name))
    await expect(board('b', 'r', 'too late')).rejects.toMatchObject({ code: 'unavailable' })
    const other = board('c', 'r', 'of somebody else')
    await finish(1_000)
    expect(await Promise.all([...answers, other])).toHaveLength(130)
  })

  it('is kept short while it has more to do than it can, and takes everybody again as soon as it has not', async () => {
    const { state, board, finish } = createQueueStage({ modest: 5 })
    const first = board('a', 'r', 'first')
    await finish(100)
    await first
    const burst = names('b', 50).map((name) => board('b', 'r', name))
    await finish(100, 25)
    // 24 wait, and have for 2.5 seconds: who comes last to that line finds 2.4 of them before it, who asks for little 0.1 to 0.9.
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

  it('turns a flood away in overload before anything is known of what it asks for, and nobody else', async () => {
    const { state, queue, board, finish } = createQueueStage({ modest: 5 })
    const first = board('a', 'r', 'first')
    await finish(100)
    await first
    const burst = names('b', 50).map((name) => board('b', 'r', name))
    await settled()
    const turnAway = (client: string, route = 'r') => queue.turnAway({ client, route })
    // However many wait: it may be a page with many charts.
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

  it('lets who waits for few wait for seconds in overload too', async () => {
    const { board, finish } = createQueueStage({ modest: 5 })
    const first = board('a', 'r', 'first')
    await finish(250)
    await first
    const burst = names('b', 50).map((name) => board('b', 'r', name))
    await finish(250, 25)
    // Its turn comes after one of the flood's each time: the sixth of them is 2.5 seconds away, and no longer one of few.
    const [sixth, ...few] = names('c', 6)
      .map((name) => board('c', 'r', name))
      .reverse()
    await expect(sixth).rejects.toMatchObject({ code: 'unavailable' })
    await finish(250)
    expect(await Promise.all([...burst, ...few])).toHaveLength(55)
  })
})
