import { describe, expect, it } from 'vitest'
import { toResult } from '../../web/pages/result.ts'

const BALLOT = ['For', 'Against', 'Abstain']
const vote = (scores: readonly number[], more: object = {}) => ({
  ...{ choices: BALLOT, scores: [...scores], scoresTotal: scores.reduce((sum, one) => sum + one, 0) },
  ...{ quorum: 100, state: 'closed' as const, source: 'snapshot', outcome: null },
  ...more,
})

describe('the result of a vote', () => {
  it.each([
    ['has more votes For', vote([120, 30, 0]), 'passed'],
    ['has more votes Against', vote([30, 120, 0]), 'failed'],
    ['is a tie', vote([60, 60, 0]), 'failed'],
    ['has mostly Abstain, and more For than Against', vote([40, 10, 400]), 'passed'],
    ['has mostly Abstain, and more Against than For', vote([10, 40, 400]), 'failed'],
    ['is below the quorum', vote([50, 20, 10]), 'noQuorum'],
    ['has no quorum to reach', vote([2, 1, 0], { quorum: 0 }), 'passed'],
    ['is canceled', vote([120, 30, 0], { outcome: 'canceled' }), 'canceled'],
    [
      'was queued on its chain, by rules of the chain',
      vote([20, 30, 0], { outcome: 'queued', quorum: null }),
      'passed',
    ],
    ['expired in the timelock after it passed', vote([120, 0, 0], { outcome: 'expired' }), 'passed'],
    ['has no votes', vote([0, 0, 0]), 'unknown'],
  ])('that %s', (_, proposal, kind) => {
    expect(toResult(proposal)).toMatchObject({ kind })
  })

  it('is only a leading choice while the vote is open or not counted completely', () => {
    for (const state of ['active', 'unsettled', 'pending'] as const)
      expect(toResult(vote([1, 5, 0], { state }))).toEqual({ kind: 'leading', choice: 'Against' })
  })

  it('on a governor is unknown if the votes For alone are below the quorum', () => {
    const governor = { source: 'governor' }
    expect(toResult(vote([120, 30, 0], governor)).kind).toBe('passed')
    expect(toResult(vote([80, 30, 60], governor))).toEqual({ kind: 'chosen', choice: 'For', isQuorumKnown: false })
    expect(toResult(vote([20, 30, 10], governor)).kind).toBe('noQuorum')
    expect(toResult(vote([120, 30, 0], { ...governor, quorum: null }))).toMatchObject({ isQuorumKnown: false })
    expect(toResult(vote([30, 120, 0], { ...governor, quorum: null })).kind).toBe('failed')
  })

  it('is the chosen one of several choices', () => {
    const choices = ['A', 'B', 'None of them']
    expect(toResult(vote([10, 120, 30], { choices }))).toEqual({ kind: 'chosen', choice: 'B', isQuorumKnown: true })
    expect(toResult(vote([10, 20, 30], { choices })).kind).toBe('noQuorum')
    expect(toResult(vote([90, 20, 0], { choices: ['YES ', 'no', 'maybe'] }))).toMatchObject({ kind: 'chosen' })
    expect(toResult(vote([90, 20], { choices: ['YES ', 'no'] })).kind).toBe('passed')
  })
})
