import { describe, expect, it } from 'vitest'
import { isFractional, toQuorumCounts } from '../../workers/providers/evm/governors/counting-modes.ts'

describe('counting modes of governors', () => {
  it.each([
    ['support=bravo&quorum=bravo', 'for', false],
    ['support=bravo&quorum=for,abstain', 'for+abstain', false],
    ['support=bravo,fractional&quorum=for,abstain&params=fractional', 'for+abstain', true],
    ['support=bravo&quorum=against,abstain&quorum=for,abstain&params=fractional', 'larger+abstain', true],
    ['support=bravo&quorum=for,abstain&params=modules', 'for+abstain', false],
    ['support=bravo&quorum=against', undefined, false],
    ['', undefined, false],
  ])('%s', (mode, counts, fractional) => {
    expect([toQuorumCounts(mode), isFractional(mode)]).toEqual([counts, fractional])
  })
})
