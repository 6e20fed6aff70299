import { parseAbi } from 'viem/utils'
import type { DelegatingDao, DelegationsRow } from '../../../shared/datasets/delegations.ts'
import { DataError } from '../../../shared/errors.ts'
import { groupBy } from '../../../shared/group-by.ts'
import type { VotingToken } from '../../../shared/registry/entities.ts'
import type { Candidate, Provider } from '../../job/define-job.ts'
import { toIso } from '../answer.ts'
import type { DelegationSource, FollowRequest } from '../contracts/governors.ts'
import { readLogTimes } from './logs/block-times.ts'
import { holdBack, resume } from './logs/cursors.ts'
import { createEventDecoder } from './logs/events.ts'
import {
  type ChainReading,
  type Followed,
  followContracts,
  openReaders,
  type Readers,
  readTurns,
  requireReader,
  toReading,
} from './logs/follow.ts'
import { type Node, type RpcLog, toLag } from './logs/node.ts'
import type { Gap } from './logs/turns.ts'
import { NODE_COST } from './rpc/json-rpc.ts'

/** The events of Compound's token, of OpenZeppelin's votes and of Nouns' token (docs/providers.md, section 10). */
const events = createEventDecoder(
  parseAbi([
    'event DelegateChanged(address indexed delegator, address indexed fromDelegate, address indexed toDelegate)',
    'event DelegateVotesChanged(address indexed delegate, uint256 previousBalance, uint256 newBalance)',
  ]),
)

/** A token and the key of its DAO. */
type OwnedToken = VotingToken & Followed

/** Delegations from the JSON-RPC node of each chain in RPC_URLS. Only final blocks are read. */
export const ethereum: Provider<DelegationSource, DelegatingDao> = {
  name: 'ethereum',
  cost: NODE_COST,
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
  const resumed = await resume(state, chain, { contracts: tokens, head: head.number }, async () => {
    const starts = new Map(tokens.map(({ address, fromBlock }) => [address, fromBlock]))
    return (address) => starts.get(address) ?? 0
  })
  const taken = await readTurns(
    node,
    tokens,
    { resumed, to: head.number, most: mostPerRun, topics: events.topics },
    signal,
  )
  const { rows, gaps } = await toRows(node, taken.logs, tokens, signal)
  const { turns, omitted } = await holdBack(state, chain, { turns: taken, gaps, slot })
  resumed.note(turns)
  log.info({ chain, logs: turns.logs.length, unread: gaps.length, leftOut: omitted.length }, 'delegations read')
  const { complete, ...reading } = toReading(tokens, turns, toLag(node.rpc, head.timestamp, slot))
  const readings = complete.map(({ dao, space }) => ({ dao, space, kind: 'reading', at: toIso(slot) }) as const)
  return { ...reading, rows: [...rows, ...readings], isBusy: turns.logs.length > mostPerRun / 2 }
}

/** Decodes the logs, and returns unreadable ones as gaps. Logs removed by the node are dropped. */
async function toRows(node: Node, logs: readonly RpcLog[], tokens: readonly OwnedToken[], signal: AbortSignal) {
  const byAddress = new Map(tokens.map((one) => [one.address, one]))
  const gaps: Gap[] = []
  const timeOf = await readLogTimes(
    node,
    logs.filter(({ fault }) => fault === undefined),
    signal,
  )
  const decoded = logs.flatMap((log) => {
    const token = byAddress.get(log.address)
    if (log.removed || token === undefined) return []
    const event = log.fault === undefined ? events.decode(log) : undefined
    const fault =
      log.fault ?? (event === undefined && events.isCut(log) ? `the data of ${log.transactionHash} is cut` : undefined)
    const time =
      fault === undefined ? timeOf(log.blockNumber) : new DataError('provider_malformed', `${node.rpc.name}: ${fault}`)
    if (time instanceof DataError) gaps.push({ log, reason: time })
    return event === undefined || time instanceof DataError ? [] : [{ log, token, event, time }]
  })
  const byTransaction = groupBy(decoded, ({ log }) => `${log.address} ${log.transactionHash}`)
  const rows = [...byTransaction.values()].flatMap(toTransactionRows)
  return { rows, gaps }
}

type Decoded = {
  readonly log: RpcLog
  readonly token: OwnedToken
  readonly event: NonNullable<ReturnType<typeof events.decode>>
  readonly time: number
}

const NOBODY = `0x${'0'.repeat(40)}`
const toDelegate = (address: string) => (address === NOBODY ? '' : address.toLowerCase())

/** A change of power is caused by the delegation of the same transaction that names the delegate, else by a transfer. */
function toTransactionRows(own: readonly Decoded[]): Candidate<DelegationsRow>[] {
  const delegates = new Set(
    own.flatMap(({ event }) =>
      event.eventName === 'DelegateChanged'
        ? [event.args.fromDelegate.toLowerCase(), event.args.toDelegate.toLowerCase()]
        : [],
    ),
  )
  return own.map(({ log, token, event, time }): Candidate<DelegationsRow> => {
    const place = { dao: token.dao, space: token.space, at: toIso(time * 1000) }
    const where = { ...place, block_number: log.blockNumber, log_index: log.logIndex, tx: log.transactionHash }
    if (event.eventName === 'DelegateChanged') {
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
