import { parseAbi } from 'viem/utils'
import { createEventDecoder } from '../logs/events.ts'
import type { RpcLog } from '../logs/node.ts'

/**
 * Compound's two governors and OpenZeppelin's share the event of a new proposal. Their vote events differ: the first
 * governor has a bool for support, the others a number.
 */
const governorEvents = createEventDecoder(
  parseAbi([
    'event ProposalCreated(uint256 id, address proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, uint256 start, uint256 end, string description)',
    'event VoteCast(address voter, uint256 id, bool support, uint256 weight)',
    'event VoteCast(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason)',
    'event VoteCastWithParams(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason, bytes params)',
    'event ProposalCanceled(uint256 id)',
    'event ProposalVetoed(uint256 id)',
    'event ProposalQueued(uint256 id, uint256 eta)',
    'event ProposalExecuted(uint256 id)',
    'event ProposalExtended(uint256 indexed id, uint64 end)',
  ]),
)

/** The events' first topics (docs/providers.md, section 10). */
export const GOVERNOR_TOPICS = governorEvents.topics

/** Returns whether an undecodable log should be one of these events, so its data was truncated or changed. */
export const isCutEvent = governorEvents.isCut

/** A decoded log of a governor. */
export type GovernorEvent =
  | {
      readonly kind: 'created'
      readonly id: bigint
      readonly proposer: string
      /** Blocks or Unix seconds, depending on the governor's clock. */
      readonly start: bigint
      readonly end: bigint
      readonly description: string
    }
  | {
      readonly kind: 'vote'
      readonly id: bigint
      readonly voter: string
      /** The contract's value: 0 against, 1 for, 2 abstain. */
      readonly support: number
      readonly weight: bigint
      /** Parameters of a custom counting module; empty otherwise. */
      readonly params: string
    }
  | { readonly kind: 'canceled' | 'queued' | 'executed'; readonly id: bigint }
  | { readonly kind: 'extended'; readonly id: bigint; readonly end: bigint }

/** A veto is a permanent cancellation. */
const ENDS = {
  ProposalCanceled: 'canceled',
  ProposalVetoed: 'canceled',
  ProposalQueued: 'queued',
  ProposalExecuted: 'executed',
} as const

/** Returns undefined for any other log, even if its first topic matches. */
export function decodeGovernorEvent(log: Pick<RpcLog, 'topics' | 'data'>): GovernorEvent | undefined {
  const event = governorEvents.decode(log)
  if (event === undefined) return undefined
  const { eventName, args } = event
  switch (eventName) {
    case 'ProposalCreated': {
      const { id, proposer, start, end, description } = args
      return { kind: 'created', id, proposer: proposer.toLowerCase(), start, end, description }
    }
    case 'VoteCast':
    case 'VoteCastWithParams': {
      const { id, voter, support, weight } = args
      const params = 'params' in args ? args.params : '0x'
      return { kind: 'vote', id, voter: voter.toLowerCase(), support: Number(support), weight, params }
    }
    case 'ProposalExtended':
      return { kind: 'extended', id: args.id, end: args.end }
    default:
      return { kind: ENDS[eventName], id: args.id }
  }
}
