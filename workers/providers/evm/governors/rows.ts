import type { GovernorsRow } from '../../../../shared/datasets/governors.ts'
import { groupBy } from '../../../../shared/group-by.ts'
import type { Governor } from '../../../../shared/registry/entities.ts'
import type { Candidate } from '../../../job/define-job.ts'
import { toIso } from '../../answer.ts'
import { toTokenUnits } from '../../token-units.ts'
import type { RpcLog } from '../logs/node.ts'
import type { GovernorEvent } from './events.ts'

/** A governor and the key of its DAO. */
export interface OwnedGovernor extends Governor {
  readonly dao: number
}

/** An event with its governor, its log and its time in Unix seconds. */
export interface Happened {
  readonly governor: OwnedGovernor
  readonly event: GovernorEvent
  readonly log: RpcLog
  readonly time: number
}

const FOR = 1
const AGAINST = 2
const ABSTAIN = 3
const CHOICES = ['For', 'Against', 'Abstain']
/** Choice numbers by the contracts' support value. */
const NUMBERS: readonly number[] = [AGAINST, FOR, ABSTAIN]

/** Compound's first governor (`alpha`) has no abstain. */
const toChoices = ({ family }: Governor) => (family === 'alpha' ? CHOICES.slice(0, ABSTAIN - 1) : CHOICES)

/** Block explorer URLs of transactions. */
const EXPLORERS: Readonly<Record<string, string>> = {
  ethereum: 'https://etherscan.io',
  arbitrum: 'https://arbiscan.io',
  optimism: 'https://optimistic.etherscan.io',
  base: 'https://basescan.org',
  polygon: 'https://polygonscan.com',
  bnb: 'https://bscscan.com',
}

/** Returns a proposal id that is unique across governors, because each governor numbers its own proposals. */
export const toProposalId = ({ space }: Governor, id: bigint): string => `${space}/${id}`

/** Maximum title length in characters, the same as the Snapshot hub's limit. */
const MOST_CHARACTERS = 256

/** Truncates a title. A character has one or two UTF-16 units, so a slice of twice the limit suffices. */
function toCapped(title: string): string {
  const characters = [...title.slice(0, 2 * MOST_CHARACTERS + 1)]
  if (characters.length <= MOST_CHARACTERS) return title
  return `${characters
    .slice(0, MOST_CHARACTERS - 1)
    .join('')
    .trimEnd()}…`
}

/**
 * Returns the first non-empty line without heading marks. Anyone may write a description of any length, so no pattern
 * here scans a text more than once. Otherwise a single line of blanks could block the reading of its chain.
 */
function toTitle(description: string): string {
  const lines = description.split(/[\n\r\u2028\u2029]/).map((line) => line.replace(/^[\s#]+/, '').trimEnd())
  const line = lines.find((text) => text !== '') ?? ''
  let end = line.length
  while (line[end - 1] === '#') end -= 1
  return toCapped(line.slice(0, end).trimEnd())
}

type CastVote = Extract<GovernorEvent, { kind: 'vote' }>
type Vote = Happened & { readonly event: CastVote }

const isVote = (one: Happened): one is Vote => one.event.kind === 'vote'

/**
 * Returns the rows of events. With fractional counting, a voter casts power in parts, and each part counts. Parts of
 * the same second are merged into one vote, because a vote is identified by voter and time.
 */
export function toRows(happened: readonly Happened[]): Candidate<GovernorsRow>[] {
  const votes = groupBy(
    happened.filter(isVote),
    ({ governor, event, time }) => `${toProposalId(governor, event.id)} ${event.voter} ${time}`,
  )
  return [...happened.flatMap(toEventRows), ...[...votes.values()].flatMap(toVoteRows)]
}

const toPlace = ({ governor, event, time }: Happened) => ({
  dao: governor.dao,
  space: governor.space,
  proposal: toProposalId(governor, event.id),
  at: toIso(time * 1000),
})

/**
 * Returns the row of an event other than a vote. An extension has no row, because it only changes the end of a
 * proposal.
 */
function toEventRows(one: Happened): Candidate<GovernorsRow>[] {
  const { governor, event, log } = one
  switch (event.kind) {
    case 'created': {
      const explorer = EXPLORERS[governor.chain]
      const url = explorer === undefined ? null : `${explorer}/tx/${log.transactionHash}`
      const about = { address: event.proposer, title: toTitle(event.description), choices: toChoices(governor), url }
      return [{ ...toPlace(one), kind: 'proposal', ...about }]
    }
    case 'vote':
    case 'extended':
      return []
    default:
      return [{ ...toPlace(one), kind: event.kind }]
  }
}

/** Returns the row of all parts of one vote, for one choice or split among several. */
function toVoteRows(parts: readonly Vote[]): Candidate<GovernorsRow>[] {
  const [first] = parts
  if (first === undefined) return []
  const { decimals } = first.governor
  const powers = new Map<number | null, bigint>()
  for (const [choice, power] of parts.flatMap(({ event }) => toPowers(event)))
    powers.set(choice, (powers.get(choice) ?? 0n) + power)
  const sum = [...powers.values()].reduce((all, power) => all + power, 0n)
  const [only = null] = powers.keys()
  const isSplit = powers.size > 1 || parts.some(({ event }) => SPLIT.test(event.params))
  const split = [...powers].flatMap(([choice, power]) => (choice === null ? [] : [[choice, toPower(power, decimals)]]))
  const choice = JSON.stringify(isSplit ? Object.fromEntries(split) : only)
  return [{ ...toPlace(first), kind: 'vote', address: first.event.voter, choice, voting_power: toPower(sum, decimals) }]
}

/** Three 128-bit numbers: the parts of a split vote for against, for and abstain. */
const SPLIT = /^0x([0-9a-f]{32})([0-9a-f]{32})([0-9a-f]{32})$/i

/** Returns the power per choice of a vote; null is a choice that the contract does not have. */
function toPowers({ support, weight, params }: CastVote): (readonly [choice: number | null, power: bigint])[] {
  const [, ...parts] = SPLIT.exec(params) ?? []
  if (parts.length === 0) return [[NUMBERS[support] ?? null, weight]]
  const powers = parts.map((part, at) => [NUMBERS[at] ?? null, BigInt(`0x${part}`)] as const)
  return powers.filter(([, power]) => power > 0n)
}

const toPower = (weight: bigint, decimals: number) => toTokenUnits(String(weight), decimals)
