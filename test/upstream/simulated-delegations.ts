import { createHash } from 'node:crypto'
import type { VotingToken } from '../../shared/registry/entities.ts'
import type { ChainLog } from './chain.ts'
import type { Electorate } from './electorate.ts'
import { encodeDelegation, encodePower, ZERO_ADDRESS } from './governor-logs.ts'
import { toNoiseKey, unit } from './noise.ts'

const BLOCKS_A_DAY = 7_200
/** Delegates of a voting token, at least, and accounts that delegate to each. */
const FEWEST_DELEGATES = 60
const DELEGATORS = 4
/** Delegations end after this many years. */
const DELEGATION_YEARS = 8
/** Exponent of the first delegation's place in these years: about half of them are in the first six weeks. */
const EARLINESS = 6
/** Quorum as a share of all power. */
export const QUORUM_SHARE = 0.25

/** The delegations of a voting token. Powers are in base units. */
export interface Delegations {
  /** In the order of their blocks. */
  readonly logs: readonly ChainLog[]
  /** The quorum of a proposal: the oldest quorum of the registry, otherwise a share of all power. */
  readonly quorum: bigint
  /** The power of an account after a block. */
  powerAt(account: string, block: number): bigint
}

/** The balance and the delegate of an account from a block on. */
interface Change {
  readonly account: string
  readonly to: string
  /** In whole tokens, before it is scaled. */
  readonly amount: number
  readonly block: number
  readonly name: string
}

/** The power of a delegate from a block on. */
interface Step {
  readonly block: number
  readonly power: bigint
}

/** Delegations of all worlds of a process, cached because many pages and proposals need each of them. */
const known = new Map<string, Delegations>()

const toHex = (text: string, digits: number) => createHash('sha256').update(text).digest('hex').slice(0, digits)

/** Whole tokens in the smallest unit; at least one. */
export const toUnits = (power: number, decimals: number) =>
  BigInt(Math.max(1, Math.floor(power))) * 10n ** BigInt(decimals)

/**
 * The history of delegations to the most powerful `voters`, at least to FEWEST_DELEGATES: accounts delegate to them, later
 * change their balance, and some of them move to another delegate. The power of a delegate is always the sum of what is
 * delegated to it.
 */
export function simulateDelegations(
  token: VotingToken,
  electorate: Electorate,
  voters: number,
  seed: number,
): Delegations {
  const name = JSON.stringify([token, seed, electorate.length, voters])
  const found = known.get(name) ?? encodeHistory(token, inventChanges(token, electorate, voters, seed))
  known.set(name, found)
  return found
}

function inventChanges(
  { address, fromBlock }: VotingToken,
  electorate: Electorate,
  voters: number,
  seed: number,
): Change[] {
  const key = toNoiseKey(seed, `delegations ${address}`)
  const delegates = electorate.slice(0, Math.max(FEWEST_DELEGATES, voters))
  return delegates
    .flatMap(({ address: delegate, power }, rank) =>
      Array.from({ length: 2 * DELEGATORS }, (_, at): Change => {
        const own = key ^ (rank * 64 + at)
        const member = at % DELEGATORS
        const isMove = at >= DELEGATORS && unit(own, 1) < 0.3
        const to = isMove ? (delegates[(rank + 1) % delegates.length]?.address ?? delegate) : delegate
        const day = DELEGATION_YEARS * 365 * unit(own, 2) ** (at < DELEGATORS ? EARLINESS : 1)
        return {
          // The first account of a delegate is its own.
          account: member === 0 ? delegate : `0x${toHex(`delegator ${delegate} ${member}`, 40)}`,
          to: member === 0 ? delegate : to,
          amount: power * (0.1 + 0.3 * unit(own, 3)),
          block: fromBlock + 1_000 + Math.floor(day * BLOCKS_A_DAY),
          name: `${delegate} ${at}`,
        }
      }),
    )
    .sort((a, b) => a.block - b.block)
}

function encodeHistory({ address, decimals, quorums }: VotingToken, changes: readonly Change[]): Delegations {
  const last = new Map(changes.map(({ account, amount }) => [account, amount]))
  const total = [...last.values()].reduce((sum, amount) => sum + amount, 0)
  const stated = quorums[0]?.power ?? null
  const scale = stated === null ? 1 : stated / QUORUM_SHARE / total
  const accounts = new Map<string, { readonly to: string; readonly amount: bigint }>()
  const steps = new Map<string, Step[]>()
  const logs: ChainLog[] = []
  for (const { account, to, amount: tokens, block, name: change } of changes) {
    const amount = toUnits(tokens * scale, decimals)
    const transactionHash = `0x${toHex(`delegation ${address} ${change}`, 64)}`
    let logIndex = 6_000 + 4 * (logs.length % 500)
    const addLog = (event: Pick<ChainLog, 'topics' | 'data'>) => {
      logs.push({ address, transactionIndex: 0, ...event, blockNumber: block, transactionHash, logIndex })
      logIndex += 1
    }
    const addPower = (delegate: string, more: bigint) => {
      const own = steps.get(delegate) ?? []
      const before = own.at(-1)?.power ?? 0n
      own.push({ block, power: before + more })
      steps.set(delegate, own)
      addLog(encodePower(delegate, before, before + more))
    }
    const before = accounts.get(account)
    accounts.set(account, { to, amount })
    if (before?.to === to) {
      if (before.amount !== amount) addPower(to, amount - before.amount)
      continue
    }
    addLog(encodeDelegation(account, before?.to ?? ZERO_ADDRESS, to))
    if (before !== undefined) addPower(before.to, -before.amount)
    addPower(to, amount)
  }
  return {
    logs,
    quorum: toUnits(stated ?? total * QUORUM_SHARE, decimals),
    powerAt: (account, block) => steps.get(account)?.findLast((step) => step.block <= block)?.power ?? 0n,
  }
}
