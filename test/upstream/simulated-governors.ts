import { createHash } from 'node:crypto'
import type { Dao, Governor, VotingToken } from '../../shared/registry/entities.ts'
import type { Chain, ChainLog } from './chain.ts'
import {
  encodeAlphaVote,
  encodeDelegation,
  encodeOutcome,
  encodePower,
  encodeProposal,
  encodeVote,
  ZERO_ADDRESS,
} from './governor-logs.ts'
import { toNoiseKey, unit } from './noise.ts'

const BLOCKS_A_DAY = 7_200
const DELAY = 2 * BLOCKS_A_DAY
const LENGTH = 3 * BLOCKS_A_DAY
const MOST_VOTERS = 16

/** Encoded proposals of all worlds of a process, cached because many pages contain each of them. */
const encodedProposals = new Map<string, ChainLog[]>()

const toHex = (text: string, digits: number) => createHash('sha256').update(text).digest('hex').slice(0, digits)

/** A governor and the first block of its successor. */
interface InUse extends Governor {
  readonly until: number
}

/**
 * Adds governors to a chain: each has a proposal every few weeks, on which a part of its voters votes. Events are a
 * function of the seed, the governor and a proposal's number, so that any range can be requested.
 */
export function withGovernors(chain: Chain, slug: string, daos: readonly Dao[], seed: number): Chain {
  const governors = daos.flatMap((dao) => {
    const own = dao.governors.filter((one) => one.chain === slug)
    return own.map((one, at) => ({ ...one, until: own[at + 1]?.fromBlock ?? Number.POSITIVE_INFINITY }))
  })
  const tokens = daos.flatMap(({ votingToken }) => (votingToken?.chain === slug ? [votingToken] : []))
  const toKey = ({ address }: { readonly address: string }) => toNoiseKey(seed, `governor ${address}`)
  return {
    ...chain,
    logs: (from, to, addresses) => {
      const matching = governors.filter(({ address }) => addresses.has(address))
      const found = matching.flatMap((governor) => toLogs(governor, { key: toKey(governor), from, to }))
      const changed = tokens
        .filter(({ address }) => addresses.has(address))
        .flatMap((token) => toDelegationLogs(token, toKey({ address: governorOf(daos, token) }), seed))
      for (const log of changed) if (log.blockNumber >= from && log.blockNumber <= to) found.push(log)
      if (found.length === 0) return chain.logs(from, to, addresses)
      return [...chain.logs(from, to, addresses), ...found].sort((a, b) => a.blockNumber - b.blockNumber)
    },
  }
}

/** Voters of a DAO's first governor are its delegates, so that they have a record of votes. */
const governorOf = (daos: readonly Dao[], { address }: VotingToken) =>
  daos.find(({ votingToken }) => votingToken?.address === address)?.governors[0]?.address ?? address

const delegationLogs = new Map<string, readonly ChainLog[]>()

/** Each voter delegates to itself, then sells a part of its tokens. */
function toDelegationLogs(
  { address, fromBlock, decimals }: VotingToken,
  key: number,
  seed: number,
): readonly ChainLog[] {
  const name = [address, fromBlock, key, seed].join(' ')
  const known = delegationLogs.get(name)
  if (known !== undefined) return known
  const logs = Array.from({ length: MOST_VOTERS }, (_, voter): ChainLog[] => {
    const who = toVoter(key, voter)
    const power = BigInt(Math.floor(10 ** (2 + 5 * unit(key, voter)))) * 10n ** BigInt(decimals)
    const blockNumber = fromBlock + 1_000 * (voter + 1)
    const place = { address, transactionIndex: 0 }
    const hash = (part: number) => `0x${toHex(`delegation ${address} ${voter} ${part}`, 64)}`
    return [
      { ...place, ...encodeDelegation(who, ZERO_ADDRESS, who), blockNumber, transactionHash: hash(0), logIndex: 6_000 },
      { ...place, ...encodePower(who, 0n, power), blockNumber, transactionHash: hash(0), logIndex: 6_001 },
      {
        ...{ ...place, ...encodePower(who, power, power / 2n), blockNumber: blockNumber + 100_000 },
        ...{ transactionHash: hash(1), logIndex: 6_000 },
      },
    ]
  }).flat()
  delegationLogs.set(name, logs)
  return logs
}

interface GovernorRange {
  readonly key: number
  readonly from: number
  readonly to: number
}

function toLogs(governor: InUse, { key, from, to }: GovernorRange): ChainLog[] {
  const step = Math.floor(BLOCKS_A_DAY * (40 + 80 * unit(key, -1)))
  const firstOf = (number: number) => governor.fromBlock + number * step
  // Limit on the distance between the first and the last log of a proposal.
  const begin = Math.max(1, Math.floor((from - DELAY - 2 * LENGTH - governor.fromBlock) / step))
  const logs: ChainLog[] = []
  for (let number = begin; firstOf(number) <= Math.min(to, governor.until); number += 1)
    logs.push(...toProposalLogs(governor, key, number, firstOf(number)))
  return logs.filter(({ blockNumber }) => blockNumber >= from && blockNumber <= to)
}

function toProposalLogs(governor: Governor, key: number, number: number, created: number): ChainLog[] {
  const { address, family, decimals } = governor
  const name = [key, address, family, decimals, number, created].join(' ')
  const logs = encodedProposals.get(name) ?? encodeLogs(governor, key, number, created)
  encodedProposals.set(name, logs)
  return logs
}

function encodeLogs({ address, family, decimals }: Governor, key: number, number: number, created: number): ChainLog[] {
  const own = key ^ Math.imul(number, 0x9e3779b1)
  const id = family === 'openzeppelin' ? BigInt(`0x${toHex(`${address} ${number}`, 64)}`) : BigInt(number)
  const [start, end] = [created + DELAY, created + DELAY + LENGTH]
  const logs: ChainLog[] = []
  const addLog = (blockNumber: number, event: Pick<ChainLog, 'topics' | 'data'>) => {
    const transactionHash = `0x${toHex(`${address} ${number} ${logs.length}`, 64)}`
    logs.push({ address, ...event, blockNumber, transactionHash, transactionIndex: 0, logIndex: 5_000 + logs.length })
  }
  const proposer = toVoter(key, number % 5)
  const description = `# On-chain proposal ${number}\n\nMove what the treasury holds.`
  addLog(created, encodeProposal({ id, proposer, start: BigInt(start), end: BigInt(end), description }))
  if (number % 7 === 6) {
    addLog(created + BLOCKS_A_DAY, encodeOutcome('ProposalCanceled', id))
    return logs
  }
  const balance = [0, 0]
  for (let voter = 0; voter < MOST_VOTERS * (0.2 + 0.8 * unit(own, -2)); voter += 1) {
    const power = Math.floor(10 ** (1 + 5 * unit(key, voter)))
    const support = unit(own, voter) < 0.6 ? 1 : unit(own, -voter - 9) < 0.7 ? 0 : 2
    const weight = BigInt(power) * 10n ** BigInt(decimals)
    const at = start + 1 + Math.floor(unit(own, 1_000 + voter) * (LENGTH - 2))
    if (family === 'alpha') addLog(at, encodeAlphaVote(toVoter(key, voter), id, support === 1, weight))
    else addLog(at, encodeVote(toVoter(key, voter), id, support, weight))
    const side = support === 1 ? 1 : 0
    balance[side] = (balance[side] ?? 0) + power
  }
  if ((balance[1] ?? 0) <= (balance[0] ?? 0)) return logs
  addLog(end + 100, encodeOutcome('ProposalQueued', id))
  addLog(end + DELAY + 100, encodeOutcome('ProposalExecuted', id))
  return logs
}

const toVoter = (key: number, voter: number) => `0x${toHex(`voter ${key} ${voter}`, 40)}`
