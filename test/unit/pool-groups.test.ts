import { describe, expect, it } from 'vitest'
import type { Pool } from '../../workers/providers/evm/dex/pools.ts'
import { toPoolGroups } from '../../workers/providers/evm/dex/stored-pools.ts'
import { toTestToken } from '../samples.ts'

const tokens = ['a', 'b', 'c', 'd', 'e'].map((contractAddress, key) => ({ ...toTestToken(key, {}), contractAddress }))
const pool = (token: string, quote: string): Pool => ({ address: `${token}-${quote}`, exchange: 'x', token, quote })

/** Returns the token addresses and the pools of each group. */
const groupsOf = (pools: readonly Pool[]) =>
  toPoolGroups(tokens, pools).map((group) => [
    group.tokens
      .map(({ contractAddress }) => contractAddress)
      .sort()
      .join(''),
    group.pools.map(({ address }) => address).sort(),
  ])

describe('toPoolGroups', () => {
  it('separates tokens without a common pool, regardless of their quote tokens', () => {
    expect(groupsOf([pool('a', 'dollar'), pool('b', 'dollar'), pool('a', 'ether')])).toEqual([
      ['a', ['a-dollar', 'a-ether']],
      ['b', ['b-dollar']],
      ['c', []],
      ['d', []],
      ['e', []],
    ])
  })

  it('joins tokens with a common pool, also transitively', () => {
    const chained = [pool('d', 'c'), pool('a', 'c'), pool('b', 'dollar'), pool('d', 'e'), pool('e', 'dollar')]
    expect(groupsOf(chained)).toEqual([
      ['acde', ['a-c', 'd-c', 'd-e', 'e-dollar']],
      ['b', ['b-dollar']],
    ])
  })
})
