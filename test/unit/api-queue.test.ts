import { describe, expect, it } from 'vitest'
import { createFlights } from '../../api/serving/flight.ts'
import { createQueueStage, names, settled } from '../support/queue-stage.ts'

describe('the queue of answers', () => {
  it('does so much at once and all of it in the end', async () => {
    const { state, board, begun, finish } = createQueueStage({ places: 4 })
    const answers = names('a', 100).map((name) => board('a', 'r', name))
    await settled()
    expect([begun.length, state.waiting]).toEqual([4, 96])
    await finish()
    expect(await Promise.all(answers)).toEqual(names('a', 100))
    expect([state.waiting, state.refused, state.waits.length]).toEqual([0, 0, 100])
  })

  it('takes turns between clients, and between the routes of each', async () => {
    const { board, begun, finish } = createQueueStage()
    const floods = names('a', 20).map((name) => board('a', 'charts', name))
    const others = [board('b', 'charts', 'b0'), board('b', 'charts', 'b1'), board('a', 'lists', 'other route')]
    await finish()
    await Promise.all([...floods, ...others])
    expect(begun.slice(0, 6)).toEqual(['a0', 'a1', 'b0', 'other route', 'b1', 'a2'])
    expect(begun).toHaveLength(23)
  })

  it('keeps a place for others beside a flood, and for who wants the same as the flood', async () => {
    const { board, begun, finish } = createQueueStage({ places: 3, perClient: 2 })
    const flood = names('a', 6).map((name) => board('a', 'r', name))
    await settled()
    expect(begun).toEqual(['a0', 'a1'])
    const other = board('b', 'r', 'b0')
    await settled()
    expect(begun).toEqual(['a0', 'a1', 'b0'])
    await finish(0, 3)
    // The place that b has left is free, and its next one is a's work.
    const same = board('b', 'r', 'a5')
    await settled()
    expect(begun).toEqual(['a0', 'a1', 'b0', 'a2', 'a3', 'a5'])
    await finish()
    expect(await Promise.all([...flood, other, same])).toHaveLength(8)
  })

  it('has nobody overtake its own line when there are more places for it', async () => {
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

  it('refuses at once who would make it longer than it may be, and the flood before anybody else', async () => {
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

  it('does nothing for who has left before the turn', async () => {
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

  it('does what several want at the turn of the first of them, unless all have left', async () => {
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

  it('waits for nobody when nothing goes on any more', async () => {
    const { state, board, finish } = createQueueStage()
    const stuck = board('a', 'r', 'stuck')
    await settled()
    state.now += 6_000
    await expect(board('b', 'r', 'next')).rejects.toMatchObject({ code: 'unavailable' })
    await finish()
    await stuck
    expect(await Promise.all([board('b', 'r', 'later'), finish()])).toContain('later')
  })

  it('goes on after work that fails', async () => {
    const { queue } = createQueueStage()
    const flights = createFlights<string>(queue)
    const fails = flights.board('x', () => Promise.reject(new Error('no')), { client: 'a', route: 'r' }).flight.join()
    const next = flights.board('y', async () => 'made', { client: 'a', route: 'r' }).flight.join()
    await expect(fails).rejects.toThrow('no')
    expect(await next).toBe('made')
  })
})
