import { describe, expect, it } from 'vitest'
import { createFlights } from '../../api/cache/flight.ts'
import { createQueueStage, names, settled } from '../support/queue-stage.ts'

describe('createQueue', () => {
  it('runs at most `places` tasks at a time and finishes all of them', async () => {
    const { state, board, begun, finish } = createQueueStage({ places: 4 })
    const answers = names('a', 100).map((name) => board('a', 'r', name))
    await settled()
    expect([begun.length, state.waiting]).toEqual([4, 96])
    await finish()
    expect(await Promise.all(answers)).toEqual(names('a', 100))
    expect([state.waiting, state.refused, state.waits.length]).toEqual([0, 0, 100])
  })

  it('alternates between clients, and between the routes of each client', async () => {
    const { board, begun, finish } = createQueueStage()
    const floods = names('a', 20).map((name) => board('a', 'charts', name))
    const others = [board('b', 'charts', 'b0'), board('b', 'charts', 'b1'), board('a', 'lists', 'other route')]
    await finish()
    await Promise.all([...floods, ...others])
    expect(begun.slice(0, 6)).toEqual(['a0', 'a1', 'b0', 'other route', 'b1', 'a2'])
    expect(begun).toHaveLength(23)
  })

  it('reserves a place for other clients during a flood, also for a task that the flood has queued', async () => {
    const { board, begun, finish } = createQueueStage({ places: 3, perClient: 2 })
    const flood = names('a', 6).map((name) => board('a', 'r', name))
    await settled()
    expect(begun).toEqual(['a0', 'a1'])
    const other = board('b', 'r', 'b0')
    await settled()
    expect(begun).toEqual(['a0', 'a1', 'b0'])
    await finish(0, 3)
    // The place freed by b is idle, and the next task of b is also queued by a.
    const same = board('b', 'r', 'a5')
    await settled()
    expect(begun).toEqual(['a0', 'a1', 'b0', 'a2', 'a3', 'a5'])
    await finish()
    expect(await Promise.all([...flood, other, same])).toHaveLength(8)
  })

  it("keeps the order of a client's tasks when it gets more places", async () => {
    const { state, board, begun, finish } = createQueueStage({ places: 4, perClient: 2, perFlood: 1, modest: 2 })
    const flood = names('a', 8).map((name) => board('a', 'r', name))
    const other = board('b', 'r', 'b0')
    await finish(0, 2)
    expect(begun).toEqual(['a0', 'a1', 'b0', 'a2'])
    state.now += 1_000
    const late = board('a', 'r', 'late')
    await settled()
    expect(begun.slice(4)).toEqual(['a3'])
    await finish()
    expect(await Promise.all([...flood, other, late])).toHaveLength(10)
    expect(begun.at(-1)).toBe('late')
  })

  it('rejects a task if the queue is full, and drops tasks of a flood first', async () => {
    const { state, board, finish } = createQueueStage({ most: 10 })
    const [first, ...flood] = names('a', 11).map((name) => board('a', 'charts', name))
    await expect(board('a', 'charts', 'one more')).rejects.toMatchObject({ code: 'unavailable' })
    const others = [board('b', 'charts', 'b0'), board('a', 'lists', 'other route')]
    const outcomes = Promise.allSettled([first, ...flood])
    await finish()
    expect(await Promise.all(others)).toEqual(['b0', 'other route'])
    expect((await outcomes).map(({ status }) => status)).toEqual([
      ...Array(9).fill('fulfilled'),
      'rejected',
      'rejected',
    ])
    expect(state.refused).toBe(3)
  })

  it('does not run a queued task after its client disconnects', async () => {
    const { state, board, begun, finish } = createQueueStage()
    const leaves = new AbortController()
    const [one, two, three] = [board('a', 'r', 'one'), board('a', 'r', 'two', leaves.signal), board('a', 'r', 'three')]
    leaves.abort(new Error('left'))
    await expect(two).rejects.toThrow('left')
    expect(state.waiting).toBe(1)
    await finish()
    expect(await Promise.all([one, three])).toEqual(['one', 'three'])
    expect(begun).toEqual(['one', 'three'])
  })

  it('runs a shared task at the earliest turn of its clients, also after one of them disconnects', async () => {
    const { board, begun, finish } = createQueueStage()
    const flood = names('a', 10).map((name) => board('a', 'r', name))
    const leaves = new AbortController()
    const left = board('b', 'r', 'a9', leaves.signal)
    leaves.abort(new Error('left'))
    await expect(left).rejects.toThrow('left')
    await finish()
    await Promise.all(flood)
    expect(begun.slice(0, 3)).toEqual(['a0', 'a1', 'a9'])
  })

  it('rejects tasks if no task has finished for 6 seconds', async () => {
    const { state, board, finish } = createQueueStage()
    const stuck = board('a', 'r', 'stuck')
    await settled()
    state.now += 6_000
    await expect(board('b', 'r', 'next')).rejects.toMatchObject({ code: 'unavailable' })
    await finish()
    await stuck
    expect(await Promise.all([board('b', 'r', 'later'), finish()])).toContain('later')
  })

  it('continues after a failed task', async () => {
    const { queue } = createQueueStage()
    const flights = createFlights<string>(queue)
    const fails = flights.board('x', () => Promise.reject(new Error('no')), { client: 'a', route: 'r' }).flight.join()
    const next = flights.board('y', async () => 'made', { client: 'a', route: 'r' }).flight.join()
    await expect(fails).rejects.toThrow('no')
    expect(await next).toBe('made')
  })
})
