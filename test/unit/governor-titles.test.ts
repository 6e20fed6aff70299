import { describe, expect, it } from 'vitest'
import { type OwnedGovernor, toRows } from '../../workers/providers/evm/governors/rows.ts'

const SPACE = `eip155:1:0x${'1'.repeat(40)}`
const GOVERNOR: OwnedGovernor = {
  ...{ dao: 1, chain: 'ethereum', address: `0x${'1'.repeat(40)}`, fromBlock: 0 },
  ...{ space: SPACE, proposalSpace: SPACE, family: 'bravo' as const, decimals: 18 },
}
const LOG = {
  ...{ address: GOVERNOR.address, topics: [], data: '0x', blockNumber: 1, logIndex: 0 },
  ...{ transactionHash: `0x${'2'.repeat(64)}`, blockTimestamp: 1_700_000_000, removed: false },
}

const REST = { period: { start: 1n, end: 2n }, actions: [] }

function titleOf(description: string): unknown {
  const event = { kind: 'created', id: 1n, proposer: `0x${'3'.repeat(40)}`, description, ...REST } as const
  const [row] = toRows([{ governor: GOVERNOR, event, log: LOG, time: 1_700_000_000 }])
  return row !== undefined && 'title' in row ? row.title : undefined
}

describe('title of a proposal', () => {
  it.each([
    ['', ''],
    ['\n \n', ''],
    ['###', ''],
    ['Raise the cap', 'Raise the cap'],
    ['# Raise the cap\n## Why', 'Raise the cap'],
    ['\r\n  ## Raise the #1 cap ##  \r\nWhy', 'Raise the #1 cap'],
    ['#\nRaise the cap', 'Raise the cap'],
    ['Raise\u2028the cap', 'Raise'],
  ])('is extracted from %j as %j', (description, title) => {
    expect(titleOf(description)).toBe(title)
  })

  it.each(['x', '𝔘'])('has at most 256 characters, like on Snapshot: %s', (character) => {
    expect(titleOf(character.repeat(256))).toBe(character.repeat(256))
    expect(titleOf(character.repeat(257))).toBe(`${character.repeat(255)}…`)
    expect(titleOf(`x${character.repeat(100_000)}`)).toBe(`x${character.repeat(254)}…`)
  })

  const LONG = 50_000
  it.each([
    ['spaces', ' '],
    ['number signs', '#'],
    ['both', ' #'],
  ])('is extracted in linear time from a text of %s', (_, filler) => {
    const middle = filler.repeat(LONG)
    expect(titleOf(`a${middle}b`)).toBe(`${`a${middle}`.slice(0, 255).trimEnd()}…`)
    expect(titleOf(`${middle}\n${'\n'.repeat(LONG)}a`)).toBe('a')
  })
})
