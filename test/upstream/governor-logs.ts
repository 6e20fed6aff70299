import type { AbiEvent, EncodeEventTopicsParameters } from 'viem'
import { encodeAbiParameters, encodeEventTopics, parseAbi, parseAbiItem, toFunctionSelector } from 'viem/utils'
import type { ChainLog } from './chain.ts'

/** The events as declared by the contracts: Compound's Governor Alpha and Bravo, and OpenZeppelin's Governor. */
const created = parseAbiItem(
  'event ProposalCreated(uint256 id, address proposer, address[] targets, uint256[] values, string[] signatures, bytes[] calldatas, uint256 startBlock, uint256 endBlock, string description)',
)
const alphaVote = parseAbiItem('event VoteCast(address voter, uint256 proposalId, bool support, uint256 votes)')
const vote = parseAbiItem(
  'event VoteCast(address indexed voter, uint256 proposalId, uint8 support, uint256 votes, string reason)',
)
const voteWithParams = parseAbiItem(
  'event VoteCastWithParams(address indexed voter, uint256 proposalId, uint8 support, uint256 weight, string reason, bytes params)',
)
const extended = parseAbiItem('event ProposalExtended(uint256 indexed proposalId, uint64 extendedDeadline)')
const queued = parseAbiItem('event ProposalQueued(uint256 id, uint256 eta)')
const outcomes = parseAbi(['event ProposalCanceled(uint256 id)', 'event ProposalExecuted(uint256 id)'])

type Address = `0x${string}`
type Encoded = Pick<ChainLog, 'topics' | 'data'>

const topicsOf = (topics: readonly unknown[]): string[] => topics.map(String)
const asVoter = (voter: string) => voter as Address

export interface NewProposal {
  readonly id: bigint
  readonly proposer: string
  readonly start: bigint
  readonly end: bigint
  readonly description: string
  /** By default one call that sets a delay. */
  readonly calls?: readonly ProposedCall[]
}

/** A call as Compound's governors have it: the signature, and its arguments without selector. */
export interface ProposedCall {
  readonly target: string
  /** Empty if `data` begins with the selector, as in OpenZeppelin's governors. */
  readonly signature: string
  readonly data: Address
}

/** Encodes a call by its signature; `hasSelector` as OpenZeppelin's governors have it. */
export function encodeCall(
  signature: string,
  values: readonly unknown[],
  hasSelector: boolean,
): Omit<ProposedCall, 'target'> {
  const { inputs } = parseAbiItem(`function ${signature}` as 'function one(uint256)')
  const data = encodeAbiParameters(inputs, values as never)
  return hasSelector
    ? { signature: '', data: `${toFunctionSelector(signature)}${data.slice(2)}` as Address }
    : { signature, data }
}

/** Encodes any event from its declaration, with its values in the order of its members. */
export function encodeEvent(declaration: string, values: readonly unknown[]): Encoded {
  const [event] = parseAbi([declaration] as readonly string[]) as readonly AbiEvent[]
  if (event === undefined) throw new Error(`no event: ${declaration}`)
  const isIndexed = (at: number) => event.inputs[at]?.indexed === true
  const args = values.filter((_, at) => isIndexed(at))
  const others = event.inputs.filter((_, at) => !isIndexed(at))
  return {
    topics: topicsOf(encodeEventTopics({ abi: [event], eventName: event.name, args } as EncodeEventTopicsParameters)),
    data: encodeAbiParameters(others, values.filter((_, at) => !isIndexed(at)) as never),
  }
}

const DELEGATE_CHANGED =
  'event DelegateChanged(address indexed delegator, address indexed fromDelegate, address indexed toDelegate)'
const POWER_CHANGED =
  'event DelegateVotesChanged(address indexed delegate, uint256 previousBalance, uint256 newBalance)'
export const ZERO_ADDRESS = `0x${'0'.repeat(40)}`

export const encodeDelegation = (delegator: string, from: string, to: string) =>
  encodeEvent(DELEGATE_CHANGED, [delegator, from, to])

export const encodePower = (delegate: string, before: bigint, after: bigint) =>
  encodeEvent(POWER_CHANGED, [delegate, before, after])

const DELAY_OF_2_DAYS = `0x${(172_800).toString(16).padStart(64, '0')}` as const
const SET_DELAY: ProposedCall = {
  target: `0x${'7'.repeat(40)}`,
  signature: 'setDelay(uint256)',
  data: DELAY_OF_2_DAYS,
}

/** Contains at least one contract call, like a real proposal. */
export const proposalValues = ({ id, proposer, start, end, description, calls = [SET_DELAY] }: NewProposal) =>
  [
    ...([id, asVoter(proposer), calls.map(({ target }) => asVoter(target)), calls.map(() => 0n)] as const),
    ...([calls.map(({ signature }) => signature), calls.map(({ data }) => data)] as const),
    ...([start, end, description] as const),
  ] as const

export function encodeProposal(proposal: NewProposal): Encoded {
  return {
    topics: topicsOf(encodeEventTopics({ abi: [created], eventName: 'ProposalCreated' })),
    data: encodeAbiParameters(created.inputs, proposalValues(proposal)),
  }
}

export function encodeAlphaVote(voter: string, id: bigint, support: boolean, weight: bigint): Encoded {
  return {
    topics: topicsOf(encodeEventTopics({ abi: [alphaVote], eventName: 'VoteCast' })),
    data: encodeAbiParameters(alphaVote.inputs, [asVoter(voter), id, support, weight]),
  }
}

export function encodeVote(voter: string, id: bigint, support: number, weight: bigint, reason = ''): Encoded {
  const [, ...rest] = vote.inputs
  return {
    topics: topicsOf(encodeEventTopics({ abi: [vote], eventName: 'VoteCast', args: { voter: asVoter(voter) } })),
    data: encodeAbiParameters(rest, [id, support, weight, reason]),
  }
}

export function encodeVoteWithParams(
  voter: string,
  id: bigint,
  { support, weight, params }: { support: number; weight: bigint; params: string },
): Encoded {
  const [, ...rest] = voteWithParams.inputs
  const args = { voter: asVoter(voter) }
  return {
    topics: topicsOf(encodeEventTopics({ abi: [voteWithParams], eventName: 'VoteCastWithParams', args })),
    data: encodeAbiParameters(rest, [id, support, weight, '', params as Address]),
  }
}

export function encodeExtension(id: bigint, end: bigint): Encoded {
  const [, deadline] = extended.inputs
  return {
    topics: topicsOf(encodeEventTopics({ abi: [extended], eventName: 'ProposalExtended', args: { proposalId: id } })),
    data: encodeAbiParameters([deadline], [end]),
  }
}

/** With `hasIndexedId` the id is a topic, as in the events of Tornado Cash and Aave v3. */
export function encodeOutcome(
  kind: 'ProposalCanceled' | 'ProposalQueued' | 'ProposalExecuted',
  id: bigint,
  hasIndexedId = false,
): Encoded {
  if (kind === 'ProposalQueued') {
    const topics = topicsOf(encodeEventTopics({ abi: [queued], eventName: kind }))
    return { topics, data: encodeAbiParameters(queued.inputs, [id, 1_700_000_000n]) }
  }
  const topics = topicsOf(encodeEventTopics({ abi: outcomes, eventName: kind }))
  const data = encodeAbiParameters(outcomes[0].inputs, [id])
  return hasIndexedId ? { topics: [...topics, data], data: '0x' } : { topics, data }
}
