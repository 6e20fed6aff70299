import { describe, expect, it } from 'vitest'
import { countHalf, findBlocs, toEntropies, type Vector } from '../../api/governance/blocs.ts'

const { signal } = new AbortController()

/** Voters a to f: choices on five proposals, and power. */
const VOTERS: readonly (readonly [string, number])[] = [
  ['11121', 40],
  ['11121', 10],
  ['11120', 10],
  ['22112', 25],
  ['22112', 10],
  ['30213', 5],
]

const toVector = ([choices, power]: readonly [string, number], voters = 1): Vector => ({
  choices: Uint32Array.from(choices, Number),
  ...{ power, voters },
})

const find = (vectors: readonly Vector[]) => findBlocs(vectors, 5, signal)
const byPower = (found: readonly { power: number }[]) => toEntropies(found.map(({ power }) => power))

describe('voting blocs', () => {
  it('of six voters are three, with these entropies', async () => {
    const found = await find(VOTERS.map((one) => toVector(one)))
    expect(found.map(({ vectors, power }) => [vectors, power])).toEqual([
      [[0, 1, 2], 60],
      [[3, 4], 35],
      [[5], 5],
    ])
    expect(byPower(found).min).toBeCloseTo(0.736966, 6)
    expect(byPower(found).shannon).toBeCloseTo(1.188376, 6)
    const byVoters = toEntropies(found.map(({ voters }) => voters))
    expect(byVoters.min).toBeCloseTo(1, 6)
    expect(byVoters.shannon).toBeCloseTo(1.459148, 6)
    const single = toEntropies(VOTERS.map(([, power]) => power))
    expect(single.min).toBeCloseTo(1.321928, 6)
    expect(single.shannon).toBeCloseTo(2.241446, 6)
    expect([countHalf(found.map(({ power }) => power)), countHalf(VOTERS.map(([, power]) => power))]).toEqual([1, 2])
  })

  it('have the same entropies by power when a holder splits into 1,000 voters, in any order', async () => {
    const whole = await find(VOTERS.map((one) => toVector(one)))
    const parts = Array.from({ length: 1_000 }, () => toVector(['11121', 40 / 1_000]))
    const split = await find([...VOTERS.slice(1).map((one) => toVector(one)), ...parts].reverse())
    expect(split).toHaveLength(3)
    expect(byPower(split).min).toBeCloseTo(byPower(whole).min ?? Number.NaN, 9)
    expect(byPower(split).shannon).toBeCloseTo(byPower(whole).shannon ?? Number.NaN, 9)
  })

  it('are linked by a chain of voters, and vectors without choices are blocs of their own', async () => {
    const chain = await find(['11111', '11112', '11122', '11222', '12222'].map((one) => toVector([one, 1])))
    expect(chain).toHaveLength(1)
    const other = await find([toVector(['11111', 1]), { choices: null, power: 2, voters: 3 }])
    expect(other.map(({ power, voters }) => [power, voters])).toEqual([
      [2, 3],
      [1, 1],
    ])
    expect(await find([toVector(['11111', 1]), toVector(['11122', 1])])).toHaveLength(2)
  })

  it('have no entropy without power, and none if all vote alike', () => {
    expect(toEntropies([])).toEqual({ min: null, shannon: null })
    expect(toEntropies([0, 0])).toEqual({ min: null, shannon: null })
    expect(toEntropies([7])).toEqual({ min: 0, shannon: 0 })
    expect([countHalf([0]), countHalf([1, 1, 1, 1])]).toEqual([null, 2])
  })

  it('stop when the request ends', async () => {
    const vectors = Array.from({ length: 3_000 }, (_, at) => ({
      ...{ choices: Uint32Array.from({ length: 400 }, (__, place) => (at * (place + 7)) % 5), power: 1, voters: 1 },
    }))
    const aborted = AbortSignal.abort(new Error('the client left'))
    await expect(findBlocs(vectors, 400, aborted)).rejects.toThrow('the client left')
  })
})
