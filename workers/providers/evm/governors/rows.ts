import type { GovernorsRow } from '../../../../shared/datasets/governors.ts'
import { groupBy } from '../../../../shared/group-by.ts'
import type { Governor } from '../../../../shared/registry/entities.ts'
import { type Candidate, OMITTED } from '../../../job/define-job.ts'
import { toIso } from '../../answer.ts'
import { toTokenUnits } from '../../token-units.ts'
import type { RpcLog } from '../logs/node.ts'
import { decodeAction } from './calldata.ts'
import { countVote } from './counting.ts'
import { familyOf } from './families.ts'
import type { ProposalEvent } from './family.ts'
import { toCallKeys, toOperationIds } from './operations.ts'
import { toTitle } from './title.ts'

/** A governor and the key of its DAO. */
export interface OwnedGovernor extends Governor {
  readonly dao: number
}

/** An event with its governor, its log and its time in Unix seconds. */
export interface Happened {
  readonly governor: OwnedGovernor
  readonly event: ProposalEvent
  readonly log: RpcLog
  readonly time: number
}

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
export const toProposalId = ({ proposalSpace }: Governor, id: bigint): string => `${proposalSpace}/${id}`

type Created = Extract<ProposalEvent, { kind: 'created' }>
type Updated = Extract<ProposalEvent, { kind: 'updated' }>
type CastVote = Extract<ProposalEvent, { kind: 'vote' }>
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

/**
 * Unix seconds. No governor is older than EARLIEST, and the time columns end in 2106. A vote that ends after LATEST has
 * no end.
 */
const EARLIEST = Date.parse('2015-07-30') / 1000
const LATEST = Date.parse('2100-01-01') / 1000

/** Returns the time of Unix seconds, or null if no event of a governor can have it. */
export const toTimeOrNull = (at: number) => (at >= EARLIEST && at < LATEST ? toIso(Math.round(at) * 1000) : null)

const toIdentity = ({ governor, event, time }: Happened) => ({
  dao: governor.dao,
  space: governor.proposalSpace,
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
      const about = {
        address: event.proposer,
        ...toTextRow(event.description),
        choices: [...familyOf(governor).choices],
        url,
        actions: event.actions.map(decodeAction),
        operations: toOperationIds(governor.address, event),
        calls: toCallKeys(event.actions),
      }
      return [{ ...toIdentity(one), kind: 'proposal', ...about }, ...toPeriodRows(one, event)]
    }
    case 'updated':
      return toUpdatedRows(one, event)
    case 'vote':
    case 'extended':
      return []
    case 'queued':
      return [{ ...toIdentity(one), kind: 'queued', executable_at: toTimeOrNull(Number(event.eta)) }]
    case 'started': {
      const times = { starts_at: toTimeOrNull(Number(event.start)), ends_at: toTimeOrNull(Number(event.end)) }
      return [{ ...toIdentity(one), kind: 'times', ...times, is_estimated: false }]
    }
    default:
      return [{ ...toIdentity(one), kind: event.kind, tx: log.transactionHash }]
  }
}

const toTextRow = (description: string) => ({ title: toTitle(description), body: description })

/** Text and actions are separate kinds, because an update may have only one of them. */
function toUpdatedRows(one: Happened, { description, actions }: Updated): Candidate<GovernorsRow>[] {
  const identity = toIdentity(one)
  return [
    ...(description === undefined ? [] : [{ ...identity, kind: 'updated', ...toTextRow(description) } as const]),
    ...(actions === undefined
      ? []
      : [{ ...identity, kind: 'actions', actions: actions.map(decodeAction), calls: toCallKeys(actions) } as const]),
  ]
}

/** Returns the voting period of a vote that starts with its event; its end is unknown if the registry has no length. */
function toPeriodRows(one: Happened, { period }: Created): Candidate<GovernorsRow>[] {
  if (period !== 'immediate') return []
  const length = findLength(one)
  const end = length === undefined ? null : toIso((one.time + length) * 1000)
  const { at, ...identity } = toIdentity(one)
  return [{ ...identity, at, kind: 'times', starts_at: at, ends_at: end, is_estimated: false }]
}

/** Returns the length of a vote that starts with the event, in seconds, or undefined if the registry has none. */
function findLength({ governor: { votingSeconds }, log }: Happened): number | undefined {
  if (typeof votingSeconds !== 'object') return votingSeconds
  return votingSeconds.findLast(({ fromBlock }) => fromBlock <= log.blockNumber)?.seconds
}

/** Returns the row of all parts of one vote, for one choice or split among several. */
function toVoteRows(parts: readonly Vote[]): Candidate<GovernorsRow>[] {
  const [first] = parts
  if (first === undefined) return []
  const { governor, event } = first
  const { decimals } = governor
  const { isReplaced, choices } = familyOf(governor)
  const counted = (isReplaced ? parts.slice(-1) : parts).map((part) => countVote(part.event, governor, choices.length))
  const powers = new Map<number, bigint>()
  for (const [choice, power] of counted.flatMap((one) => one.powers))
    powers.set(choice, (powers.get(choice) ?? 0n) + power)
  const isSplit = powers.size > 1 || counted.some((one) => one.isSplit)
  const split = [...powers].map(([choice, power]) => [choice, toPower(power, decimals)])
  const [only = null] = powers.keys()
  const choice = JSON.stringify(isSplit ? Object.fromEntries(split) : only)
  // A vote without a choice counts for nothing, so its power is unknown.
  const sum = choice === 'null' ? null : [...powers.values()].reduce((all, power) => all + power, 0n)
  const byChoice = Array.from({ length: Math.max(0, ...powers.keys()) }, (_, at) => String(powers.get(at + 1) ?? 0n))
  const exact = {
    power_exact: sum === null ? null : String(sum),
    choice_powers: byChoice,
    decimals,
    is_whole: isReplaced,
  }
  const power = sum === null ? null : toPower(sum, decimals)
  const faults = counted.flatMap(({ fault }) => fault ?? [])
  return [
    {
      ...{ ...toIdentity(first), kind: 'vote', address: event.voter, choice, voting_power: power, ...exact },
      ...(faults.length === 0 ? {} : { [OMITTED]: faults }),
    },
  ]
}

const toPower = (weight: bigint, decimals: number) => toTokenUnits(String(weight), decimals)
