import { describe, expect, it } from 'vitest'
import { governorsRow } from '../../shared/datasets/governors.ts'
import { OMITTED } from '../../workers/job/define-job.ts'
import type { GovernorEvent } from '../../workers/providers/evm/governors/family.ts'
import { type OwnedGovernor, toRows } from '../../workers/providers/evm/governors/rows.ts'

type Vote = Extract<GovernorEvent, { kind: 'vote' }>

const SPACE = `eip155:42161:0x${'1'.repeat(40)}`
const PLAIN: OwnedGovernor = {
  ...{ dao: 1, chain: 'arbitrum', address: `0x${'1'.repeat(40)}`, fromBlock: 0 },
  ...{ space: SPACE, proposalSpace: SPACE, family: 'openzeppelin' as const, decimals: 18 },
}
const FRACTIONAL: OwnedGovernor = { ...PLAIN, counting: 'fractional' }
const LOG = {
  ...{ address: PLAIN.address, topics: [], data: '0x', blockNumber: 1, logIndex: 0 },
  ...{ transactionHash: `0x${'2'.repeat(64)}`, blockTimestamp: 1_700_000_000, removed: false },
}
const ONE = 10n ** 18n
const ALL_BITS = `0x${'f'.repeat(96)}`
const toParams = (against: bigint, inFavour: bigint, abstain: bigint) =>
  `0x${[against, inFavour, abstain].map((part) => part.toString(16).padStart(32, '0')).join('')}`

/** The row of a vote that was logged in these parts in one block. */
function toRow(governor: OwnedGovernor, ...parts: readonly Partial<Vote>[]) {
  const vote = { kind: 'vote', id: 1001n, voter: `0x${'3'.repeat(40)}`, support: 0, weight: 0n, params: '0x' } as const
  const rows = toRows(parts.map((part) => ({ governor, event: { ...vote, ...part }, log: LOG, time: 1_700_000_000 })))
  expect(rows).toHaveLength(1)
  const [row] = rows
  if (row === undefined) throw new Error('no row')
  expect(governorsRow.parse(row)).toMatchObject({ kind: 'vote' })
  return { ...row, faults: row[OMITTED] ?? [] }
}

describe('vote on a governor with plain counting', () => {
  it.each([
    [0, 7n, ALL_BITS, 2],
    [1, 100n, toParams(0n, 5_000_000n * ONE, 0n), 1],
    [1, 100n, toParams(100n * ONE, 0n, 0n), 1],
    [2, 9n, '0x00', 3],
    [2, 9n, `0x${'f'.repeat(6000)}`, 3],
  ])('ignores parameters: support %i, weight %i, %s', (support, tokens, params, choice) => {
    const weight = tokens * ONE
    const row = toRow(PLAIN, { support, weight, params })
    expect(row).toMatchObject({ choice: String(choice), voting_power: Number(tokens), power_exact: String(weight) })
    expect(row).toMatchObject({ faults: [], choice_powers: [...Array(choice - 1).fill('0'), String(weight)] })
    expect(toRow({ ...PLAIN, counting: 'plain' }, { support, weight, params })).toEqual(row)
    expect(toRow({ ...PLAIN, family: 'agora' }, { support, weight, params })).toEqual(row)
  })

  it('has no power without a choice of the contract, and the row has the reason', () => {
    expect(toRow(PLAIN, { support: 255, weight: 7n * ONE, params: ALL_BITS })).toMatchObject({
      ...{ choice: 'null', voting_power: null, power_exact: null, choice_powers: [] },
      faults: ['support: not a choice of the contract, so the vote counts for none'],
    })
    expect(toRow({ ...PLAIN, family: 'aave-v2' }, { support: 2, weight: ONE })).toMatchObject({ power_exact: null })
  })
})

describe('vote on a governor with fractional counting', () => {
  it('counts its parts up to the weight, whatever its support value', () => {
    const params = toParams(ONE, 5n * ONE, 0n)
    const counted = { voting_power: 6, power_exact: String(6n * ONE), choice_powers: [5n * ONE, ONE].map(String) }
    for (const support of [0, 255])
      for (const weight of [6n * ONE, 9n * ONE])
        expect(toRow(FRACTIONAL, { support, weight, params })).toMatchObject({
          ...{ ...counted, choice: '{"1":5,"2":1}', faults: [] },
        })
  })

  it('counts for its support value without parameters', () => {
    const row = toRow(FRACTIONAL, { support: 1, weight: 2n * ONE })
    expect(row).toMatchObject({ choice: '1', voting_power: 2, faults: [] })
  })

  it.each([
    ['more than the weight', toParams(0n, 7n * ONE, 1n), /exceed the weight/],
    ['all bits', ALL_BITS, /exceed the weight/],
    ['47 bytes', `0x${'0'.repeat(94)}`, /not three parts/],
    ['49 bytes', `0x${'0'.repeat(98)}`, /not three parts/],
  ])('counts for its support value with refused parameters: %s', (_, params, reason) => {
    const row = toRow(FRACTIONAL, { support: 1, weight: 7n * ONE, params })
    expect(row).toMatchObject({ choice: '1', voting_power: 7, choice_powers: [String(7n * ONE)] })
    expect(row.faults).toEqual([expect.stringMatching(reason)])
    expect(toRow(FRACTIONAL, { support: 255, weight: 7n * ONE, params })).toMatchObject({
      ...{ choice: 'null', voting_power: null, power_exact: null, choice_powers: [] },
    })
  })

  it('has no power if all parts are zero', () => {
    expect(toRow(FRACTIONAL, { support: 1, weight: ONE, params: toParams(0n, 0n, 0n) })).toMatchObject({
      ...{ choice: '{}', voting_power: 0, power_exact: '0', choice_powers: [] },
    })
  })

  it('adds up parts of one second, without the part that has no choice', () => {
    const parts = [
      { support: 0, weight: ONE, params: toParams(0n, ONE, 0n) },
      { support: 255, weight: ONE, params: ALL_BITS },
      { support: 2, weight: 4n * ONE },
    ]
    expect(toRow(FRACTIONAL, ...parts)).toMatchObject({
      ...{ choice: '{"1":1,"3":4}', power_exact: String(5n * ONE), choice_powers: [ONE, 0n, 4n * ONE].map(String) },
      faults: [expect.stringMatching(/exceed the weight/)],
    })
  })
})
