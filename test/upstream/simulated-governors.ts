import { createHash } from 'node:crypto'
import type { Dao, Governor } from '../../shared/registry/entities.ts'
import type { Chain, ChainLog } from './chain.ts'
import { type Electorate, inventElectorate } from './electorate.ts'
import { callGovernor, type StatedGovernor } from './governor-calls.ts'
import {
  encodeAlphaVote,
  encodeCall,
  encodeOutcome,
  encodeProposal,
  encodeVote,
  ZERO_ADDRESS,
} from './governor-logs.ts'
import { toNoiseKey, unit } from './noise.ts'
import { type Proposer, writeProposal } from './proposal-texts.ts'
import { type Delegations, QUORUM_SHARE, simulateDelegations, toUnits } from './simulated-delegations.ts'
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

/** Encoded proposals of all worlds of a process, cached because many pages contain each of them. */
const encodedProposals = new Map<string, ChainLog[]>()

const toHex = (text: string, digits: number) => createHash('sha256').update(text).digest('hex').slice(0, digits)

/** A DAO on a chain, with its voters. */
interface GovernedDao {
  readonly dao: Dao
  readonly proposer: Proposer
  readonly voters: Electorate
  /** Of its voting token, if it is on the chain; otherwise the voters have a constant power. */
  readonly delegations: Delegations | undefined
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
    const electorate = inventElectorate(seed, dao.slug, symbol)
    const voters = electorate.slice(0, Math.max(FEWEST_VOTERS, Math.min(MOST_VOTERS, VOTER_SHARE * electorate.length)))
    const token = dao.votingToken?.chain === slug ? dao.votingToken : undefined
    const delegations = token && simulateDelegations(token, electorate, voters.length, seed)
    return { dao, proposer, voters, delegations }
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
      for (const { dao, delegations } of governed) {
        if (delegations === undefined || !addresses.has(dao.votingToken?.address ?? '')) continue
        for (const log of delegations.logs) if (log.blockNumber >= from && log.blockNumber <= to) found.push(log)
      }
      if (found.length === 0) return chain.logs(from, to, addresses)
      return [...chain.logs(from, to, addresses), ...found].sort((a, b) => a.blockNumber - b.blockNumber)
    },
  }
}

const toStep = ({ key }: InUse) => Math.floor(BLOCKS_A_DAY * (40 + 80 * unit(key, -1)))

const toProposalId = ({ address, family }: Governor, number: number) =>
  family === 'openzeppelin' ? BigInt(`0x${toHex(`${address} ${number}`, 64)}`) : BigInt(number)

/** More proposals than a governor has in any world. */
const MOST_PROPOSALS = 400

/** What a proposal of a governor needs, in base units. */
function toQuorum({ owner: { voters, delegations }, decimals }: InUse): bigint {
  const all = voters.reduce((sum, { power }) => sum + power, 0)
  return delegations?.quorum ?? toUnits(QUORUM_SHARE * all, decimals)
}

/** The views of a governor. */
function toStated(governor: InUse): StatedGovernor {
  const { family, fromBlock } = governor
  const numbers = new Map<bigint, number>()
  const numberOf = (id: bigint) => {
    if (numbers.size === 0)
      for (let number = 1; number <= MOST_PROPOSALS; number += 1) numbers.set(toProposalId(governor, number), number)
    return numbers.get(id)
  }
  const needed = toQuorum(governor)
  return {
    family,
    mode: 'support=bravo&quorum=for,abstain',
    quorumOf: () => needed,
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
  const { key, address, family, decimals, counted, owner } = governor
  const token = owner.dao.votingToken?.fromBlock
  const name = [key, address, family, decimals, counted, toQuorum(governor), token, number, created].join(' ')
  const logs = encodedProposals.get(name) ?? encodeLogs(governor, number, created, timeOf(created))
  encodedProposals.set(name, logs)
  return logs
}

function encodeLogs(governor: InUse, number: number, created: number, time: number): ChainLog[] {
  const { address, family, key, owner } = governor
  const { voters, proposer } = owner
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
  const author = voters[number % 5]?.address ?? ZERO_ADDRESS
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
  const scores = castVotes(governor, own, start).map(({ voter, support, weight, at }) => {
    if (family === 'alpha') addLog(at, encodeAlphaVote(voter, id, support === 1, weight))
    else addLog(at, encodeVote(voter, id, support, weight))
    return { support, weight }
  })
  if (!isAccepted(governor, scores)) return logs
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

/** Against, for and abstain, as the votes of all families have them but for Compound's first governor. */
type Support = 0 | 1 | 2

interface CastVote {
  readonly voter: string
  readonly support: Support
  readonly weight: bigint
  /** The block. */
  readonly at: number
}

/** The votes on a proposal: each has the power that is delegated to its voter at the start, which others do not have. */
function castVotes(
  { family, decimals, owner: { voters, delegations } }: InUse,
  own: number,
  start: number,
): CastVote[] {
  const favour = unit(own, -3) < 0.8 ? 0.9 : 0.45
  return voters
    .slice(0, voters.length * (0.2 + 0.8 * unit(own, -2)))
    .flatMap(({ address, power }, rank): CastVote[] => {
      if (rank > 3 && unit(own, 2_000 + rank) < 0.3) return []
      const weight = delegations === undefined ? toUnits(power, decimals) : delegations.powerAt(address, start)
      if (weight === 0n) return []
      const other = family === 'alpha' || unit(own, -rank - 9) < 0.7 ? 0 : 2
      const support = unit(own, rank) < favour ? 1 : other
      return [{ voter: address, support, weight, at: start + 1 + Math.floor(unit(own, 1_000 + rank) * (LENGTH - 2)) }]
    })
}

/** Whether a proposal with these votes has a majority and reaches the quorum. */
function isAccepted(governor: InUse, votes: readonly Pick<CastVote, 'support' | 'weight'>[]): boolean {
  const toScore = (...wanted: Support[]) =>
    votes.reduce((sum, { support, weight }) => (wanted.includes(support) ? sum + weight : sum), 0n)
  const counted = governor.counted ?? (governor.family === 'openzeppelin' ? 'for+abstain' : 'for')
  const needed = toQuorum(governor)
  // Votes for it are more than those against, so `larger+abstain` counts the same votes as `for+abstain`.
  const reached = counted === 'for' ? toScore(1) : counted === 'all' ? toScore(0, 1, 2) : toScore(1, 2)
  return toScore(1) > toScore(0) && reached >= needed
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
