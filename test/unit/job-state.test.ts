import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type JobState, openSlotAllowance, recall } from '../../workers/job/state.ts'
import { readFoundPools } from '../../workers/providers/evm/dex/chain-state.ts'
import { readCursors } from '../../workers/providers/evm/logs/cursors.ts'
import { createState } from '../support/run.ts'

const schema = z.object({ slot: z.number() })

describe('recall', () => {
  const open = () => {
    const unreadable: string[] = []
    const state: JobState = { ...createState(), onUnreadable: (name) => void unreadable.push(name) }
    return { state, unreadable }
  }

  it('returns the stored value of a name', async () => {
    const { state, unreadable } = open()
    state.set('a', '{"slot":1}')
    expect(await recall(state, 'a', schema)).toEqual({ slot: 1 })
    expect(unreadable).toEqual([])
  })

  it('returns undefined for a name without a value or with an emptied value', async () => {
    const { state, unreadable } = open()
    state.set('emptied', '')
    expect([await recall(state, 'never', schema), await recall(state, 'emptied', schema)]).toEqual([
      undefined,
      undefined,
    ])
    expect(unreadable).toEqual([])
  })

  it.each(['no JSON', '{"slot":"1"}', 'null'])('reports %j by its name and returns undefined', async (text) => {
    const { state, unreadable } = open()
    state.set('a', text)
    expect(await recall(state, 'a', schema)).toBeUndefined()
    expect(unreadable).toEqual(['a'])
  })
})

describe('stored value of an unknown form', () => {
  it('is treated as missing for the cursors and pools of its chain', async () => {
    const state = createState()
    for (const name of ['cursors.ethereum', 'unfinished.ethereum', 'pools.ethereum'])
      state.set(name, '["another form", {}]')
    state.set('cursors.polygon', '{"0x1":7}')
    expect(await readCursors(state, 'ethereum')).toEqual(new Map())
    expect(await readFoundPools(state, 'ethereum')).toBeUndefined()
    expect(await readCursors(state, 'polygon')).toEqual(new Map([['0x1', 7]]))
  })

  it('is treated as missing for an allowance, so that the slot has all its calls', async () => {
    const state = createState()
    state.set('moralis.allowance', 'no JSON')
    const allowance = await openSlotAllowance(state, { name: 'moralis', slot: 0, calls: 3 })
    expect(allowance.remaining()).toBe(3)
  })
})
