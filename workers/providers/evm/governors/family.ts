import type { AbiEvent } from 'viem'
import { type DecodeEventLogReturnType, parseAbi } from 'viem/utils'
import { createEventDecoder } from '../logs/events.ts'
import type { RpcLog } from '../logs/node.ts'
import { createTextReader, type GovernorAction, isText, withSignature } from './text-bytes.ts'

/** A decoded log of a governor about one of its proposals. */
export type ProposalEvent =
  | {
      readonly kind: 'created'
      readonly id: bigint
      readonly proposer: string
      /**
       * Start and end in the governor's clock: blocks, Unix seconds or rounds. `immediate` if the vote starts with the
       * event, and lasts as long as the registry states. `later` if the event `started` has them.
       */
      readonly period: { readonly start: bigint; readonly end: bigint } | 'immediate' | 'later'
      readonly description: string
      /** The bytes of a description that the text does not have. */
      readonly descriptionBytes?: `0x${string}`
      readonly actions: readonly GovernorAction[]
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
  | { readonly kind: 'canceled' | 'executed'; readonly id: bigint }
  /** `eta`: when it can be executed, in Unix seconds; undefined if the event does not have it. */
  | { readonly kind: 'queued'; readonly id: bigint; readonly eta: bigint | undefined }
  /** The vote has opened, until `end`, in Unix seconds. */
  | { readonly kind: 'started'; readonly id: bigint; readonly start: bigint; readonly end: bigint }
  | { readonly kind: 'extended'; readonly id: bigint; readonly end: bigint }
  /** The author replaced the text or the actions before the vote; undefined is unchanged. */
  | {
      readonly kind: 'updated'
      readonly id: bigint
      readonly description: string | undefined
      readonly actions: readonly GovernorAction[] | undefined
    }

/** A decoded log of a governor. `timelock`: the contract in which it queues its proposals from now on. */
export type GovernorEvent = ProposalEvent | { readonly kind: 'timelock'; readonly address: string }

/** Events of one kind of contract, and their meaning. */
export interface GovernorFamily {
  /** The events' first topics (docs/providers.md, section 10). */
  readonly topics: readonly string[]
  /** In the order of their numbers; the contracts count against, for, abstain. */
  readonly choices: readonly string[]
  /** Whether a vote replaces the voter's earlier votes on the proposal. Otherwise, they are parts of its power. */
  readonly isReplaced: boolean
  /** Returns undefined for any other log, for an event without a meaning, and for a log with a fault. */
  decode(log: Pick<RpcLog, 'topics' | 'data'>): GovernorEvent | undefined
  /** Returns why a log of one of these events cannot be decoded; undefined for any other log. */
  faultOf(log: Pick<RpcLog, 'topics' | 'data'>): string | undefined
}

export const FOR_AGAINST = ['For', 'Against']
export const WITH_ABSTAIN = [...FOR_AGAINST, 'Abstain']

interface FamilyDefinition<Events extends readonly AbiEvent[]> {
  readonly events: Events
  readonly choices: readonly string[]
  readonly isReplaced?: boolean
  /** Undefined for an event without a meaning here. */
  toEvent(event: DecodeEventLogReturnType<Events>): GovernorEvent | undefined
}

export function defineFamily<const Events extends readonly AbiEvent[]>({
  events,
  choices,
  isReplaced = false,
  toEvent,
}: FamilyDefinition<Events>): GovernorFamily {
  const decoder = createEventDecoder(events)
  const readTexts = createTextReader(events)
  return {
    topics: decoder.topics,
    faultOf: decoder.faultOf,
    ...{ choices, isReplaced },
    decode: (log) => {
      const decoded = decoder.decode(log)
      const event = decoded && toEvent(decoded)
      if (event === undefined || !('actions' in event)) return event
      const { signatures, description } = readTexts(log)
      const actions = event.actions?.map((action, at) => withSignature(action, signatures?.[at]))
      if (event.kind === 'updated') return { ...event, actions }
      const isWhole = description === undefined || isText(event.description, description)
      return { ...event, actions: actions ?? [], ...(isWhole ? {} : { descriptionBytes: description }) }
    },
  }
}

/** The members of an event that creates a proposal with calls. */
interface Proposed {
  readonly id: bigint
  readonly proposer: string
  readonly targets: readonly string[]
  readonly values: readonly bigint[]
  readonly signatures: readonly string[]
  readonly calldatas: readonly string[]
  readonly start: bigint
  readonly end: bigint
  readonly description: string
}

export const toActions = ({
  targets,
  values,
  signatures,
  calldatas,
}: Omit<Proposed, 'id' | 'proposer' | 'start' | 'end' | 'description'>): GovernorAction[] =>
  targets.map((target, at) => ({
    target: target.toLowerCase(),
    value: values[at] ?? 0n,
    signature: signatures[at] ?? '',
    calldata: calldatas[at] ?? '0x',
  }))

export function toCreated(proposed: Proposed): ProposalEvent {
  const { id, proposer, start, end, description } = proposed
  const actions = toActions(proposed)
  return { kind: 'created', id, proposer: proposer.toLowerCase(), period: { start, end }, description, actions }
}

/** Compound's governors and OpenZeppelin's share these events. */
export const COMMON_EVENTS = parseAbi([
  'event ProposalCreated(uint256 id, address proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, uint256 start, uint256 end, string description)',
  'event ProposalCanceled(uint256 id)',
  'event ProposalQueued(uint256 id, uint256 eta)',
  'event ProposalExecuted(uint256 id)',
])

export function toCommonEvent(event: DecodeEventLogReturnType<typeof COMMON_EVENTS>): ProposalEvent {
  switch (event.eventName) {
    case 'ProposalCreated':
      return toCreated(event.args)
    case 'ProposalQueued':
      return { kind: 'queued', id: event.args.id, eta: event.args.eta }
    case 'ProposalCanceled':
      return { kind: 'canceled', id: event.args.id }
    case 'ProposalExecuted':
      return { kind: 'executed', id: event.args.id }
  }
}

/** OpenZeppelin's governors with a timelock log it when they are created, and when they get another one. */
export const TIMELOCK_EVENTS = parseAbi(['event TimelockChange(address oldTimelock, address newTimelock)'])

export const toTimelock = ({ newTimelock }: { readonly newTimelock: string }): GovernorEvent => ({
  ...{ kind: 'timelock', address: newTimelock.toLowerCase() },
})

interface Cast {
  readonly id: bigint
  readonly voter: string
  readonly support: number | boolean
  readonly weight: bigint
  readonly params?: string
}

export const toVote = ({ id, voter, support, weight, params = '0x' }: Cast): ProposalEvent => ({
  ...{ kind: 'vote', id, voter: voter.toLowerCase(), support: Number(support), weight, params },
})
