import type { GovernorsRow } from '../../../../shared/datasets/governors.ts'
import type { Governor } from '../../../../shared/registry/entities.ts'
import type { Candidate } from '../../../job/define-job.ts'
import { toIso } from '../../answer.ts'
import { toWholeTokens } from '../../whole-tokens.ts'
import type { RpcLog } from '../logs/node.ts'
import type { GovernorEvent } from './events.ts'

/** A governor and the key of the DAO that votes on it. */
export interface OwnedGovernor extends Governor {
  readonly dao: number
}

/** An event, where it happened, and when, in Unix seconds. */
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
/** The numbers of the choices by what the contracts call support. */
const NUMBERS: readonly number[] = [AGAINST, FOR, ABSTAIN]

/** Whoever votes the first of Compound's governors cannot abstain. */
const toChoices = ({ family }: Governor) => (family === 'alpha' ? CHOICES.slice(0, ABSTAIN - 1) : CHOICES)

/** Where a transaction is shown to people. */
const EXPLORERS: Readonly<Record<string, string>> = {
  ethereum: 'https://etherscan.io',
  arbitrum: 'https://arbiscan.io',
  optimism: 'https://optimistic.etherscan.io',
  base: 'https://basescan.org',
  polygon: 'https://polygonscan.com',
  bnb: 'https://bscscan.com',
}

/** The id of a proposal of all governors: each counts its own. */
export const toProposalId = ({ space }: Governor, id: bigint): string => `${space}/${id}`

/** Characters of a title at most, as on Snapshot, whose hub takes no longer ones. */
const MOST_CHARACTERS = 256

/** A character is one or two units of a text, so that no more of it is looked at. */
function toCapped(title: string): string {
  const characters = [...title.slice(0, 2 * MOST_CHARACTERS + 1)]
  if (characters.length <= MOST_CHARACTERS) return title
  return `${characters
    .slice(0, MOST_CHARACTERS - 1)
    .join('')
    .trimEnd()}…`
}

/**
 * The first line that says anything, without the marks of a heading. Anyone may write a description of any length: no pattern
 * here goes over a text more than once, or a single line of blanks would hold up the reading of its chain for ever.
 */
function toTitle(description: string): string {
  const lines = description.split(/[\n\r\u2028\u2029]/).map((line) => line.replace(/^[\s#]+/, '').trimEnd())
  const line = lines.find((text) => text !== '') ?? ''
  let end = line.length
  while (line[end - 1] === '#') end -= 1
  return toCapped(line.slice(0, end).trimEnd())
}

/** The row of an event; none of an extension, which only changes when a proposal ends. */
export function toRows({ governor, event, log, time }: Happened): Candidate<GovernorsRow>[] {
  const { dao, space } = governor
  const where = { dao, space, proposal: toProposalId(governor, event.id), at: toIso(time * 1000) }
  switch (event.kind) {
    case 'created': {
      const explorer = EXPLORERS[governor.chain]
      const url = explorer === undefined ? null : `${explorer}/tx/${log.transactionHash}`
      const about = { address: event.proposer, title: toTitle(event.description), choices: toChoices(governor), url }
      return [{ ...where, kind: 'proposal', ...about }]
    }
    case 'vote':
      return [{ ...where, kind: 'vote', address: event.voter, ...toCast(event, governor.decimals) }]
    case 'extended':
      return []
    default:
      return [{ ...where, kind: event.kind }]
  }
}

/** Three numbers of 128 bits: what a vote that is split gives against, for and to abstain. */
const SPLIT = /^0x([0-9a-f]{32})([0-9a-f]{32})([0-9a-f]{32})$/i

function toCast({ support, weight, params }: Extract<GovernorEvent, { kind: 'vote' }>, decimals: number) {
  const [, ...parts] = SPLIT.exec(params) ?? []
  if (parts.length === NUMBERS.length) {
    const powers = parts.map((part) => BigInt(`0x${part}`))
    const choice = Object.fromEntries(
      powers.flatMap((power, at) => (power === 0n ? [] : [[String(NUMBERS[at]), toPower(power, decimals)]])),
    )
    const sum = powers.reduce((all, power) => all + power, 0n)
    return { choice: JSON.stringify(choice), voting_power: toPower(sum, decimals) }
  }
  return { choice: JSON.stringify(NUMBERS[support] ?? null), voting_power: toPower(weight, decimals) }
}

const toPower = (weight: bigint, decimals: number) => toWholeTokens(String(weight), decimals)
