import type { AbiFunction } from 'viem'
import { decodeAbiParameters, formatUnits, parseAbiItem, toFunctionSelector } from 'viem/utils'
import { describe, expect, it } from 'vitest'
import { type GovernorsRow, governorsRow } from '../../shared/datasets/governors.ts'
import { GOVERNOR_FAMILIES } from '../../shared/registry/schema.ts'
import { familyOf } from '../../workers/providers/evm/governors/families.ts'
import type { GovernorEvent, ProposalEvent } from '../../workers/providers/evm/governors/family.ts'
import { type OwnedGovernor, toRows } from '../../workers/providers/evm/governors/rows.ts'
import { countCases, SEED } from '../support/cases.ts'
import {
  createDescription,
  createHostileCall,
  createHostileVote,
  encodeHostileProposal,
  encodeHostileVote,
  type HostileCall,
  hasCalls,
  hasText,
  spoil,
} from '../support/hostile-governors.ts'
import { createRandom } from '../support/random.ts'

/** Proposals and votes of each governor. */
const CASES = countCases(60)

const SPACE = `eip155:1:0x${'1'.repeat(40)}`
const GOVERNOR = {
  ...{ dao: 1, chain: 'ethereum', address: `0x${'1'.repeat(40)}`, fromBlock: 0 },
  ...{ space: SPACE, proposalSpace: SPACE, decimals: 18 },
}
const LOG = {
  ...{ address: GOVERNOR.address, topics: [], data: '0x', blockNumber: 1, logIndex: 0 },
  ...{ transactionHash: `0x${'2'.repeat(64)}`, blockTimestamp: 1_700_000_000, removed: false },
}
const GOVERNORS: OwnedGovernor[] = [
  ...GOVERNOR_FAMILIES.map((family) => ({ ...GOVERNOR, family })),
  { ...GOVERNOR, family: 'openzeppelin', counting: 'fractional' },
]
const KINDS = GOVERNORS.map((governor) => [`${governor.family} ${governor.counting ?? 'plain'}`, governor] as const)

const toStored = (governor: OwnedGovernor, events: readonly GovernorEvent[]): GovernorsRow[] =>
  toRows(events.filter(isOfProposal).map((event) => ({ governor, event, log: LOG, time: 1_700_000_000 }))).map((row) =>
    governorsRow.parse(row),
  )

const isOfProposal = (event: GovernorEvent): event is ProposalEvent => event.kind !== 'timelock'

type VoteRow = Extract<GovernorsRow, { kind: 'vote' }>
type ProposalRow = Extract<GovernorsRow, { kind: 'proposal' }>
type Action = ProposalRow['actions'][number]

function checkVote(row: VoteRow, weight: bigint, choices: number): void {
  if (row.power_exact === null) {
    expect(row).toMatchObject({ choice: 'null', voting_power: null, choice_powers: [] })
    return
  }
  const power = BigInt(row.power_exact)
  expect(power).toBeLessThanOrEqual(weight)
  expect(row.choice_powers.reduce((sum, part) => sum + BigInt(part), 0n)).toBe(power)
  expect(row.choice_powers.length).toBeLessThanOrEqual(choices)
  expect(row.voting_power).toBe(Number(formatUnits(power, 18)))
  const choice: unknown = JSON.parse(row.choice)
  const chosen = typeof choice === 'object' && choice !== null ? Object.keys(choice).map(Number) : [Number(choice)]
  const counted = row.choice_powers.flatMap((part, at) => (part === '0' ? [] : [at + 1]))
  expect(chosen).toEqual(expect.arrayContaining(counted))
}

/** The arguments as the library decodes them, as texts. */
function toText(value: unknown, isNested = false): string {
  if (Array.isArray(value)) return `[${value.map((one) => toText(one, true)).join(',')}]`
  if (typeof value === 'bigint' || typeof value === 'number') return isNested ? `"${value}"` : String(value)
  const text = typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value) ? value.toLowerCase() : value
  return isNested ? JSON.stringify(text) : String(text)
}

/** Returns undefined if an empty value ends the data: contracts accept it, and the library does not. */
function decodeByLibrary(inputs: AbiFunction['inputs'], data: `0x${string}`): readonly unknown[] | undefined {
  try {
    return decodeAbiParameters(inputs, data)
  } catch (error) {
    if (error instanceof Error && error.name === 'PositionOutOfBoundsError') return undefined
    throw error
  }
}

function checkAction(action: Action, call: HostileCall): void {
  expect(action.calldata).toBe(call.executed)
  const values = action.arguments.map(({ value }) => value)
  const size = values.reduce((sum, value) => sum + Buffer.byteLength(value), 0)
  expect(size).toBeLessThanOrEqual(8 * (call.executed.length / 2 - 1))
  if (action.function === null) {
    expect(action).toMatchObject({
      signature: call.signature.length === 0 ? null : call.signature.toString(),
      arguments: [],
    })
    return
  }
  expect(toFunctionSelector(action.signature ?? '')).toBe(call.executed.slice(0, 10))
  if (call.signature.length > 0) expect(action.signature).toBe(call.signature.toString('latin1'))
  // The library drops some characters of texts.
  if (action.signature?.includes('string') === true) return
  const { inputs } = parseAbiItem(`function ${action.signature}` as 'function f()') as AbiFunction
  if (inputs.length === 0) return
  const decoded = decodeByLibrary(inputs, `0x${call.executed.slice(10)}`)
  if (decoded !== undefined) expect(values).toEqual(decoded.map((value) => toText(value)))
}

describe.each(KINDS)('hostile logs of a governor: %s', (kind, governor) => {
  const family = familyOf(governor)
  const random = createRandom(SEED * 1000 + KINDS.findIndex(([name]) => name === kind))

  it('have votes with at most their weight, and parts that add up to it', () => {
    for (let n = 0; n < CASES; n += 1) {
      const voter = `0x${(n % 7).toString(16).repeat(40)}`
      const parts = Array.from({ length: random.pick([1, 1, 1, 3]) }, () => createHostileVote(random, voter))
      const events = parts.map((vote) => family.decode(encodeHostileVote(governor.family, 7n, vote)))
      const votes = events.filter((event) => event?.kind === 'vote')
      expect(votes).toHaveLength(parts.length)
      const [row, ...more] = toStored(governor, votes)
      expect(more).toEqual([])
      if (row?.kind !== 'vote') throw new Error('no vote')
      const [last] = parts.slice(-1)
      const weight = parts.reduce((sum, part) => sum + part.weight, 0n)
      checkVote(row, family.isReplaced ? (last?.weight ?? 0n) : weight, family.choices.length)
      if (governor.counting === undefined && parts.length === 1 && row.power_exact !== null)
        expect(row.power_exact).toBe(String(weight))
    }
  })

  it.runIf(hasCalls(governor.family))('show the calls that the contract executes, in bounded texts', () => {
    let decoded = 0
    for (let n = 0; n < CASES; n += 1) {
      const calls = Array.from({ length: random.below(5) }, () => createHostileCall(random))
      const log = encodeHostileProposal(governor.family, 7n, { description: createDescription(random), calls })
      const event = family.decode(log)
      if (event?.kind !== 'created') throw new Error('no proposal')
      const [row] = toStored(governor, [event])
      if (row?.kind !== 'proposal') throw new Error('no proposal')
      expect(row.actions).toHaveLength(calls.length)
      for (const [at, action] of row.actions.entries()) checkAction(action, calls[at] as HostileCall)
      decoded += row.actions.filter((action) => action.function !== null).length
    }
    expect(decoded).toBeGreaterThan(0)
  })

  it.runIf(hasText(governor.family))('have titles of one line with at most 256 characters', () => {
    for (let n = 0; n < CASES; n += 1) {
      const event = family.decode(
        encodeHostileProposal(governor.family, 7n, { description: createDescription(random), calls: [] }),
      )
      const [row] = toStored(governor, event === undefined ? [] : [event])
      if (row?.kind !== 'proposal') throw new Error('no proposal')
      expect([...row.title].length).toBeLessThanOrEqual(256)
      expect(row.title).not.toMatch(/[\n\r\v\f\u0085\u2028\u2029]/)
    }
  })

  it('are decoded to valid rows or not at all if bytes are changed', () => {
    for (let n = 0; n < CASES; n += 1) {
      const vote = encodeHostileVote(governor.family, 7n, createHostileVote(random, GOVERNOR.address))
      const calls = [createHostileCall(random)]
      const proposal = encodeHostileProposal(governor.family, 7n, { description: createDescription(random), calls })
      for (const log of [spoil(vote, random), spoil(proposal, random)]) {
        const event = family.decode(log)
        for (const row of toStored(governor, event === undefined ? [] : [event])) {
          if (row.kind === 'vote') checkVote(row, event?.kind === 'vote' ? event.weight : 0n, family.choices.length)
          for (const action of row.kind === 'proposal' ? row.actions : [])
            if (action.function !== null)
              expect(toFunctionSelector(action.signature ?? '')).toBe(action.calldata.slice(0, 10))
        }
      }
    }
  })
})
