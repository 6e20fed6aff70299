import { parseAbi } from 'viem/utils'
import { nodesDeclaration } from '../../../shared/config/providers/nodes.ts'
import type { DelegatingDao, DelegationsRow } from '../../../shared/datasets/delegations.ts'
import { groupBy } from '../../../shared/group-by.ts'
import type { VotingToken } from '../../../shared/registry/entities.ts'
import { type Candidate, OMITTED, type Provider } from '../../job/define-job.ts'
import { toIso } from '../answer.ts'
import type { DelegationSource, FollowRequest } from '../contracts/governors.ts'
import { holdBack, resumeRegistered } from './logs/cursors.ts'
import { createEventDecoder } from './logs/events.ts'
import {
  type ChainReading,
  type ContractEvent,
  decodeLogs,
  type Followed,
  findOmitted,
  followContracts,
  type LogDecoder,
  openReaders,
  type Readers,
  readTurns,
  requireReader,
  toReading,
} from './logs/follow.ts'
import { toLag } from './logs/node.ts'

/**
 * `votes`: Compound's token, OpenZeppelin's votes and Nouns' token (docs/providers.md, section 10). Venus' vault had
 * these events too, until it dropped all delegations and began again with a second version.
 */
const FAMILIES = {
  votes: createEventDecoder(
    parseAbi([
      'event DelegateChanged(address indexed delegator, address indexed fromDelegate, address indexed toDelegate)',
      'event DelegateVotesChanged(address indexed delegate, uint256 previousBalance, uint256 newBalance)',
    ]),
  ),
  'xvs-vault': createEventDecoder(
    parseAbi([
      'event DelegateChangedV2(address indexed delegator, address indexed fromDelegate, address indexed toDelegate)',
      'event DelegateVotesChangedV2(address indexed delegate, uint256 previousBalance, uint256 newBalance)',
    ]),
  ),
} as const

const TOPICS = Object.values(FAMILIES).flatMap(({ topics }) => topics)
type DelegationEvent = NonNullable<ReturnType<(typeof FAMILIES)[VotingToken['family']]['decode']>>
const decoderOf = ({ family }: VotingToken): LogDecoder<DelegationEvent> => FAMILIES[family]

/** A token and the key of its DAO. */
type OwnedToken = VotingToken & Followed

/** Delegations from the JSON-RPC node of each chain in RPC_URLS. Only final blocks are read. */
export const ethereum: Provider<DelegationSource, DelegatingDao> = {
  name: 'ethereum',
  cost: nodesDeclaration.cost,
  hostPerChain: true,
  // Also covers chains without a node: the error then names the chain.
  covers: () => true,
  connect(context) {
    const readers = openReaders(context)
    return {
      fetchNew: (request) =>
        followContracts(
          request,
          ({ votingToken, key }) => [{ ...votingToken, dao: key }],
          (chain, tokens) => readTokens(readers, chain, tokens, request),
        ),
    }
  },
}

async function readTokens(
  readers: Readers,
  chain: string,
  tokens: readonly OwnedToken[],
  { state, slot, signal, log }: FollowRequest<DelegatingDao>,
): Promise<ChainReading<DelegationsRow>> {
  const { node, mostPerRun } = requireReader(readers, chain)
  const head = await node.finalized(signal)
  // A new quorum changes no row.
  const contracts = tokens.map(({ quorums: _, ...own }) => own)
  const resumed = await resumeRegistered(state, chain, { contracts, head: head.number })
  const taken = await readTurns(node, tokens, { resumed, to: head.number, most: mostPerRun, topics: TOPICS }, signal)
  const decoded = await decodeLogs(node, taken.logs, { contracts: tokens, decoderOf }, signal)
  const byTransaction = groupBy(decoded.events, ({ log }) => `${log.address} ${log.transactionHash}`)
  const rows = [...byTransaction.values()].flatMap(toTransactionRows)
  const { gaps } = decoded
  const { turns, omitted } = await holdBack(state, chain, { turns: taken, gaps, slot })
  resumed.note(turns)
  log.info({ chain, logs: turns.logs.length, unread: gaps.length, leftOut: omitted.length }, 'delegations read')
  const { complete, ...reading } = toReading(tokens, turns, toLag(node.rpc, head.timestamp, slot))
  const readings = complete.map(({ dao, space }) => ({ dao, space, kind: 'reading', at: toIso(slot) }) as const)
  return {
    ...reading,
    rows: [...rows, ...findOmitted(omitted, tokens).map(toOmittedRow), ...readings],
    readTo: head.timestamp * 1000,
    isBusy: turns.logs.length > mostPerRun / 2,
  }
}

type TokenEvent = ContractEvent<OwnedToken, DelegationEvent>

type OmittedLog = ReturnType<typeof findOmitted<OwnedToken>>[number]

/** Returns a row without values for a log that is permanently omitted, so that the row check counts it. */
const toOmittedRow = ({ contract, reason }: OmittedLog): Candidate<DelegationsRow> => ({
  ...{ dao: contract.dao, space: contract.space, kind: 'power', power: null, at: null, [OMITTED]: [reason] },
})

const ZERO_ADDRESS = `0x${'0'.repeat(40)}`
const toDelegate = (address: string) => (address === ZERO_ADDRESS ? '' : address.toLowerCase())

/** A change of power is caused by the delegation of the same transaction that names the delegate, else by a transfer. */
function toTransactionRows(own: readonly TokenEvent[]): Candidate<DelegationsRow>[] {
  const delegates = new Set(
    own.flatMap(({ event }) =>
      'delegator' in event.args ? [event.args.fromDelegate.toLowerCase(), event.args.toDelegate.toLowerCase()] : [],
    ),
  )
  return own.map(({ log, contract: token, event, time }): Candidate<DelegationsRow> => {
    const place = { dao: token.dao, space: token.space, at: toIso(time * 1000) }
    const where = { ...place, block_number: log.blockNumber, log_index: log.logIndex, tx: log.transactionHash }
    if ('delegator' in event.args) {
      const { delegator, fromDelegate, toDelegate: to } = event.args
      const change = { from_delegate: toDelegate(fromDelegate), to_delegate: toDelegate(to) }
      return { ...where, kind: 'delegation', delegator: delegator.toLowerCase(), ...change }
    }
    const { delegate, previousBalance, newBalance } = event.args
    const cause = delegates.has(delegate.toLowerCase()) ? 'delegation' : 'transfer'
    const powers = { previous: String(previousBalance), power: String(newBalance), decimals: token.decimals }
    return { ...where, kind: 'power', delegate: delegate.toLowerCase(), ...powers, cause }
  })
}
