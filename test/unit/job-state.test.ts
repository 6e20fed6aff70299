import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type JobState, recall } from '../../workers/job/state.ts'
import { createState } from '../support/run.ts'

const schema = z.object({ slot: z.number() })

describe('recall', () => {
  const open = () => {
    const unreadable: string[] = []
    const state: JobState = { ...createState(), onUnreadable: (name) => void unreadable.push(name) }
    return { state, unreadable }
  }

  it('returns what is stored under a name', async () => {
    const { state, unreadable } = open()
    state.set('a', '{"slot":1}')
    expect(await recall(state, 'a', schema)).toEqual({ slot: 1 })
    expect(unreadable).toEqual([])
  })

  it('returns undefined for a name without a value, and for one that was emptied', async () => {
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
