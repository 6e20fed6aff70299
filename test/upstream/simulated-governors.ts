import { createHash } from 'node:crypto'
import type { Dao, Governor, VotingToken } from '../../shared/registry/entities.ts'
import type { Chain, ChainLog } from './chain.ts'
import { type Electorate, inventElectorate } from './electorate.ts'
import { callGovernor, type StatedGovernor } from './governor-calls.ts'
import {
  encodeAlphaVote,
  encodeCall,
  encodeDelegation,
  encodeOutcome,
  encodePower,
  encodeProposal,
  encodeVote,
  ZERO_ADDRESS,
} from './governor-logs.ts'
import { toNoiseKey, unit } from './noise.ts'
import { type Proposer, writeProposal } from './proposal-texts.ts'
import {
  encodeCallExecuted,
  encodeCancelled,
  encodeQueued,
  encodeScheduled,
  encodeTimelockChange,
  encodeTransaction,
  hashOperationBatch,
  type QueuedCall,
  toSalt,
} from './timelock-logs.ts'
import { toWorth } from './token-facts.ts'
import type { WorldRegistry } from './world.ts'

const BLOCKS_A_DAY = 7_200
const SECONDS_PER_BLOCK = 12
const DELAY = 2 * BLOCKS_A_DAY
const LENGTH = 3 * BLOCKS_A_DAY
/** Voters of a governor: a part of the DAO's, the most powerful ones. */
const VOTER_SHARE = 0.15
const FEWEST_VOTERS = 16
const MOST_VOTERS = 160
/** Delegates of a voting token, and accounts that delegate to each. */
const MOST_DELEGATES = 60
const DELEGATORS = 4
/** Delegations end after this many years. */
const DELEGATION_YEARS = 8

/** Encoded proposals of all worlds of a process, cached because many pages contain each of them. */
const encodedProposals = new Map<string, ChainLog[]>()
const encodedDelegations = new Map<string, readonly ChainLog[]>()

const toHex = (text: string, digits: number) => createHash('sha256').update(text).digest('hex').slice(0, digits)

/** A DAO on a chain, with its voters. */
interface GovernedDao {
  readonly dao: Dao
  readonly proposer: Proposer
  readonly electorate: Electorate
}

/** A governor and the first block of its successor. */
interface InUse extends Governor {
  readonly owner: GovernedDao
  readonly key: number
  readonly until: number
}

/**
 * Adds governors to a chain: each has a proposal every few weeks, on which a part of its voters votes. Events are a
 * function of the seed, the governor and a proposal's number, so that any range can be requested.
 */
export function withGovernors(chain: Chain, slug: string, { daos, tokens }: WorldRegistry, seed: number): Chain {
  const symbols = new Map(tokens.map(({ id, symbol }) => [id, symbol]))
  const toGoverned = (dao: Dao): GovernedDao => {
    const symbol = dao.token === null ? undefined : symbols.get(dao.token)
    const proposer = { name: dao.name, symbol: symbol ?? dao.name, worth: toWorth(symbol) }
    return { dao, proposer, electorate: inventElectorate(seed, dao.slug, symbol) }
  }
  const governed = daos
    .filter((dao) => [...dao.governors, dao.votingToken].some((one) => one?.chain === slug))
    .map(toGoverned)
  const governors = governed.flatMap((owner) => {
    const own = owner.dao.governors.filter((one) => one.chain === slug)
    return own.map((one, at): InUse => {
      const key = toNoiseKey(seed, `governor ${one.address}`)
      return { ...one, owner, key, until: own[at + 1]?.fromBlock ?? Number.POSITIVE_INFINITY }
    })
  })
  const votingTokens = governed.flatMap(({ dao: { votingToken }, electorate }) =>
    votingToken?.chain === slug ? [{ votingToken, electorate }] : [],
  )
  const timeOf = (block: number) => chain.timeOf(block) ?? 0
  const byAddress = new Map(governors.map((one) => [one.address, toStated(one)]))
  return {
    ...chain,
    governorCall: (call) => {
      const governor = byAddress.get(call.contract)
      return governor === undefined ? chain.governorCall?.(call) : callGovernor(governor, call)
    },
    logs: (from, to, addresses) => {
      const found = governors
        .filter((one) => addresses.has(one.address) || addresses.has(toTimelock(one) ?? ''))
        .flatMap((governor) => toLogs(governor, timeOf, from, to))
        .filter(({ address }) => addresses.has(address))
      for (const { votingToken, electorate } of votingTokens) {
        if (!addresses.has(votingToken.address)) continue
        for (const log of toDelegationLogs(votingToken, electorate, seed))
          if (log.blockNumber >= from && log.blockNumber <= to) found.push(log)
      }
      if (found.length === 0) return chain.logs(from, to, addresses)
      return [...chain.logs(from, to, addresses), ...found].sort((a, b) => a.blockNumber - b.blockNumber)
    },
  }
}

/** Amount and delegate of an account. */
interface Delegated {
  readonly to: string
  readonly amount: bigint
}

/**
 * The history of delegations: accounts delegate to the most powerful voters, later change their balance, and some of them
 * move to another delegate. The power of a delegate is always the sum of what is delegated to it.
 */
function toDelegationLogs(token: VotingToken, electorate: Electorate, seed: number): readonly ChainLog[] {
  const { address, fromBlock, decimals } = token
  const name = [address, fromBlock, seed, electorate.length].join(' ')
  const known = encodedDelegations.get(name)
  if (known !== undefined) return known
  const key = toNoiseKey(seed, `delegations ${address}`)
  const delegates = electorate.slice(0, MOST_DELEGATES)
  const changes = delegates
    .flatMap(({ address: delegate, power }, rank) =>
      Array.from({ length: 2 * DELEGATORS }, (_, at) => {
        const own = key ^ (rank * 64 + at)
        const member = at % DELEGATORS
        const isMove = at >= DELEGATORS && unit(own, 1) < 0.3
        const to = isMove ? (delegates[(rank + 1) % delegates.length]?.address ?? delegate) : delegate
        const day = DELEGATION_YEARS * 365 * unit(own, 2) ** (at < DELEGATORS ? 3 : 1)
        return {
          // The first account of a delegate is its own.
          account: member === 0 ? delegate : `0x${toHex(`delegator ${delegate} ${member}`, 40)}`,
          to: member === 0 ? delegate : to,
          amount: toUnits(power * (0.1 + 0.3 * unit(own, 3)), decimals),
          block: fromBlock + 1_000 + Math.floor(day * BLOCKS_A_DAY),
          name: `${delegate} ${at}`,
        }
      }),
    )
    .sort((a, b) => a.block - b.block)
  const accounts = new Map<string, Delegated>()
  const powers = new Map<string, bigint>()
  const logs: ChainLog[] = []
  for (const { account, to, amount, block, name: change } of changes) {
    const transactionHash = `0x${toHex(`delegation ${address} ${change}`, 64)}`
    let logIndex = 6_000 + 4 * (logs.length % 500)
    const addLog = (event: Pick<ChainLog, 'topics' | 'data'>) => {
      logs.push({ address, transactionIndex: 0, ...event, blockNumber: block, transactionHash, logIndex })
      logIndex += 1
    }
    const addPower = (delegate: string, more: bigint) => {
      const before = powers.get(delegate) ?? 0n
      powers.set(delegate, before + more)
      addLog(encodePower(delegate, before, before + more))
    }
    const last = accounts.get(account)
    accounts.set(account, { to, amount })
    if (last?.to === to) {
      if (last.amount !== amount) addPower(to, amount - last.amount)
      continue
    }
    addLog(encodeDelegation(account, last?.to ?? ZERO_ADDRESS, to))
    if (last !== undefined) addPower(last.to, -last.amount)
    addPower(to, amount)
  }
  encodedDelegations.set(name, logs)
  return logs
}

/** Whole tokens in the smallest unit; at least one. */
const toUnits = (power: number, decimals: number) => BigInt(Math.max(1, Math.floor(power))) * 10n ** BigInt(decimals)

const toStep = ({ key }: InUse) => Math.floor(BLOCKS_A_DAY * (40 + 80 * unit(key, -1)))

const toProposalId = ({ address, family }: Governor, number: number) =>
  family === 'openzeppelin' ? BigInt(`0x${toHex(`${address} ${number}`, 64)}`) : BigInt(number)

/** More proposals than a governor has in any world. */
const MOST_PROPOSALS = 400

/** The views of a governor: a proposal needs about as much as its largest voters have together. */
function toStated(governor: InUse): StatedGovernor {
  const { family, decimals, owner, fromBlock } = governor
  const numbers = new Map<bigint, number>()
  const numberOf = (id: bigint) => {
    if (numbers.size === 0)
      for (let number = 1; number <= MOST_PROPOSALS; number += 1) numbers.set(toProposalId(governor, number), number)
    return numbers.get(id)
  }
  const needed = owner.electorate.slice(0, 4).reduce((sum, { power }) => sum + power, 0)
  return {
    family,
    mode: 'support=bravo&quorum=for,abstain',
    quorumOf: () => toUnits(needed, decimals),
    snapshotOf: (id) => {
      const number = numberOf(id)
      return number === undefined ? undefined : BigInt(fromBlock + number * toStep(governor) + DELAY)
    },
  }
}

function toLogs(governor: InUse, timeOf: (block: number) => number, from: number, to: number): ChainLog[] {
  const step = toStep(governor)
  const firstOf = (number: number) => governor.fromBlock + number * step
  // Limit on the distance between the first and the last log of a proposal.
  const begin = Math.max(1, Math.floor((from - DELAY - 2 * LENGTH - governor.fromBlock) / step))
  const logs: ChainLog[] = []
  const timelock = toTimelock(governor)
  if (governor.family === 'openzeppelin' && timelock !== undefined) {
    const { address, fromBlock: blockNumber } = governor
    const transactionHash = `0x${toHex(`${address} timelock`, 64)}`
    const place = { blockNumber, transactionHash, transactionIndex: 0, logIndex: 4_999 }
    logs.push({ address, ...encodeTimelockChange(timelock), ...place })
  }
  for (let number = begin; firstOf(number) <= Math.min(to, governor.until); number += 1)
    logs.push(...toProposalLogs(governor, number, firstOf(number), timeOf))
  return logs.filter(({ blockNumber }) => blockNumber >= from && blockNumber <= to)
}

/** Governors of OpenZeppelin name their timelock; those of Compound have it in the registry. */
function toTimelock({ family, address, timelocks }: Governor): string | undefined {
  return family === 'openzeppelin' ? `0x${toHex(`timelock ${address}`, 40)}` : timelocks?.[0]?.address
}

/** Some operations are canceled in the timelock, and some are never executed. */
const isCanceledInTimelock = (number: number) => number % 9 === 4
const isLeft = (number: number) => number % 9 === 7

function toProposalLogs(
  governor: InUse,
  number: number,
  created: number,
  timeOf: (block: number) => number,
): ChainLog[] {
  const { key, address, family, decimals } = governor
  const name = [key, address, family, decimals, number, created].join(' ')
  const logs = encodedProposals.get(name) ?? encodeLogs(governor, number, created, timeOf(created))
  encodedProposals.set(name, logs)
  return logs
}

function encodeLogs(governor: InUse, number: number, created: number, time: number): ChainLog[] {
  const { address, family, decimals, key, owner } = governor
  const { electorate, proposer } = owner
  const own = key ^ Math.imul(number, 0x9e3779b1)
  const hasSelectors = family === 'openzeppelin'
  const hasIndexedId = family === 'tornado' || family === 'aave-v3'
  const id = toProposalId(governor, number)
  const [start, end] = [created + DELAY, created + DELAY + LENGTH]
  const logs: ChainLog[] = []
  const addLog = (blockNumber: number, event: Pick<ChainLog, 'topics' | 'data'>, by = address) => {
    const transactionHash = `0x${toHex(`${address} ${number} ${logs.length}`, 64)}`
    logs.push({
      address: by,
      ...event,
      blockNumber,
      transactionHash,
      transactionIndex: 0,
      logIndex: 5_000 + logs.length,
    })
  }
  const { title, body, calls } = writeProposal(own, proposer, { number, at: time, onlyYesOrNo: true })
  const author = electorate[number % 5]?.address ?? ZERO_ADDRESS
  const description = `# ${title}\n\n${body}`
  const proposed = calls.map(({ target, signature, values }) => ({
    target,
    ...encodeCall(signature, values, hasSelectors),
  }))
  addLog(
    created,
    encodeProposal({
      ...{ id, proposer: author, start: BigInt(start), end: BigInt(end), description },
      calls: proposed,
    }),
  )
  if (number % 7 === 6) {
    addLog(created + BLOCKS_A_DAY, encodeOutcome('ProposalCanceled', id, hasIndexedId))
    return logs
  }
  const balance = [0, 0]
  const most = Math.max(FEWEST_VOTERS, Math.min(MOST_VOTERS, VOTER_SHARE * electorate.length))
  const favour = unit(own, -3) < 0.8 ? 0.9 : 0.45
  for (const [rank, elector] of electorate.slice(0, most * (0.2 + 0.8 * unit(own, -2))).entries()) {
    if (rank > 3 && unit(own, 2_000 + rank) < 0.3) continue
    const power = Math.max(1, Math.floor(elector.power))
    const support = unit(own, rank) < favour ? 1 : unit(own, -rank - 9) < 0.7 ? 0 : 2
    const weight = toUnits(power, decimals)
    const at = start + 1 + Math.floor(unit(own, 1_000 + rank) * (LENGTH - 2))
    if (family === 'alpha') addLog(at, encodeAlphaVote(elector.address, id, support === 1, weight))
    else addLog(at, encodeVote(elector.address, id, support, weight))
    const side = support === 1 ? 1 : 0
    balance[side] = (balance[side] ?? 0) + power
  }
  if ((balance[1] ?? 0) <= (balance[0] ?? 0)) return logs
  const queued = end + 100
  const eta = BigInt(time + (queued + DELAY - created) * SECONDS_PER_BLOCK)
  addLog(queued, encodeQueued(id, eta))
  const timelock = toTimelock(governor)
  const isExecuted = timelock === undefined || !(isCanceledInTimelock(number) || isLeft(number))
  if (timelock !== undefined) {
    const steps = encodeSteps(governor, { calls: proposed.map((one) => ({ ...one, value: 0n })), description, eta })
    for (const event of steps.scheduled) addLog(queued, event, timelock)
    if (isCanceledInTimelock(number)) for (const event of steps.canceled) addLog(queued + 100, event, timelock)
    if (isExecuted) for (const event of steps.executed) addLog(queued + DELAY, event, timelock)
  }
  if (isExecuted) addLog(queued + DELAY, encodeOutcome('ProposalExecuted', id, hasIndexedId))
  return logs
}

/** The events of a timelock about the calls of a proposal. */
function encodeSteps(
  { family, address }: Governor,
  { calls, description, eta }: { calls: readonly QueuedCall[]; description: string; eta: bigint },
) {
  if (family !== 'openzeppelin')
    return {
      scheduled: calls.map((call) => encodeTransaction('QueueTransaction', call, eta)),
      canceled: calls.map((call) => encodeTransaction('CancelTransaction', call, eta)),
      executed: calls.map((call) => encodeTransaction('ExecuteTransaction', call, eta)),
    }
  const id = hashOperationBatch(calls, toSalt(description, address))
  return {
    scheduled: calls.map((call) => encodeScheduled(id, call, BigInt(DELAY * SECONDS_PER_BLOCK))),
    canceled: [encodeCancelled(id)],
    executed: calls.map((call) => encodeCallExecuted(id, call)),
  }
}
