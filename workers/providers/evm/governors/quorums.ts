import { encodeFunctionData, parseAbi } from 'viem/utils'
import { z } from 'zod'
import type { GovernorsRow } from '../../../../shared/datasets/governors.ts'
import type { Governor } from '../../../../shared/registry/entities.ts'
import type { GOVERNOR_COUNTED } from '../../../../shared/registry/schema.ts'
import type { Candidate } from '../../../job/define-job.ts'
import { type JobState, recall } from '../../../job/state.ts'
import { toIso } from '../../answer.ts'
import type { Node } from '../logs/node.ts'
import { callContracts, isTransient } from './contract-calls.ts'
import { type Happened, type OwnedGovernor, toProposalId } from './rows.ts'

/**
 * Quorums of proposals, which no event states: `eth_call` of the governor at the newest block, once after the snapshot of the
 * proposal; governors whose quorum changes during the vote are called in every run until its end
 * (docs/providers.md, section 10).
 */

/** Most proposals per chain and run, so that the first reading of a long history takes several runs. */
const MOST_PER_RUN = 250

const abi = parseAbi([
  'function proposalSnapshot(uint256 id) view returns (uint256)',
  'function quorum(uint256 timepoint) view returns (uint256)',
  'function quorumVotes() view returns (uint256)',
  'function quorumVotes(uint256 id) view returns (uint256)',
  'function getVote(uint256 id) view returns (bool)',
  'function QUORUM_VOTES() view returns (uint256)',
])
const [SNAPSHOT, QUORUM, QUORUM_VOTES, QUORUM_VOTES_OF, GET_VOTE, TORNADO_VOTES] = abi

const toData = (item: (typeof abi)[number], args: readonly bigint[]) =>
  encodeFunctionData({ abi: [item], args } as unknown as Parameters<typeof encodeFunctionData>[0])

/** The 32-byte words of an answer; undefined for an answer of another length. */
function toWords(data: unknown, least: number): bigint[] | undefined {
  if (typeof data !== 'string' || !/^0x([0-9a-f]{64})+$/i.test(data)) return undefined
  const words = (data.slice(2).match(/.{64}/g) ?? []).map((word) => BigInt(`0x${word}`))
  return words.length < least ? undefined : words
}

type Counts = (typeof GOVERNOR_COUNTED)[number]

/** How the governors of a family state a quorum. */
interface QuorumSource {
  /** The votes that count, unless the registry or the contract states others. */
  readonly counts?: Counts
  /** Whether the quorum of a proposal may change until its end. */
  readonly isLive?: boolean
  /**
   * Set if the contract has one value for all proposals: `code` is a constant of it, `setting` may be changed. A past
   * value is read at the end of the vote; without an archive node, only a constant is the same now.
   */
  readonly of?: 'code' | 'setting'
  /** The call, from the id of the proposal and its snapshot. */
  toCall(id: bigint, snapshot: bigint): string
  /** Whether the call needs the snapshot as the contract states it. */
  readonly needsSnapshot?: boolean
  read(data: unknown): bigint | undefined
}

const readFirst = (data: unknown) => toWords(data, 1)?.[0]
const WEI = 10n ** 18n

/** `minAcceptQuorum` is a share of `votingPower`, 10^18 = 100 %. Shares are compared as whole numbers, so it is rounded up. */
function readAragon(data: unknown): bigint | undefined {
  const words = toWords(data, 9)
  const [share, power] = [words?.[5], words?.[8]]
  if (share === undefined || power === undefined || share > WEI) return undefined
  return (share * power + WEI - 1n) / WEI
}

const CONSTANT: QuorumSource = {
  ...{ counts: 'for', of: 'code' },
  toCall: () => toData(QUORUM_VOTES, []),
  read: readFirst,
}

const SOURCES: Readonly<Partial<Record<Governor['family'], QuorumSource>>> = {
  ...{ alpha: CONSTANT, bravo: CONSTANT, venus: CONSTANT },
  openzeppelin: { needsSnapshot: true, toCall: (_, snapshot) => toData(QUORUM, [snapshot]), read: readFirst },
  // Since its sixth version the argument is the id of the proposal, because its type decides.
  agora: { counts: 'all', isLive: true, toCall: (id) => toData(QUORUM, [id]), read: readFirst },
  nouns: { counts: 'for', isLive: true, toCall: (id) => toData(QUORUM_VOTES_OF, [id]), read: readFirst },
  aragon: { counts: 'for', toCall: (id) => toData(GET_VOTE, [id]), read: readAragon },
  tornado: { counts: 'all', of: 'setting', toCall: () => toData(TORNADO_VOTES, []), read: readFirst },
}

/** A proposal whose quorum was not read, or may change. `start` and `end` are in the governor's clock, null if unknown. */
const awaited = z.object({
  dao: z.number(),
  address: z.string(),
  proposal: z.string(),
  id: z.string(),
  start: z.number(),
  end: z.number().nullable(),
  inBlocks: z.boolean(),
})
const awaitedList = z.array(awaited)
type Awaited = z.infer<typeof awaited>

/** The newest point of each clock. */
export interface Clocks {
  /** Number of the newest block that governors of the chain count; undefined if it cannot be read. */
  readonly block: number | undefined
  /** Unix seconds. */
  readonly seconds: number
}

const FIRST_SECOND = 1_000_000_000

/** Adds created and extended proposals to those that wait for their quorum. */
function collectAwaited(before: readonly Awaited[], happened: readonly Happened[]): Map<string, Awaited> {
  const open = new Map(before.map((one) => [one.proposal, one]))
  for (const { governor, event, time } of happened) {
    if (SOURCES[governor.family] === undefined || governor.space !== governor.proposalSpace) continue
    const proposal = toProposalId(governor, event.id)
    if (event.kind === 'created' && event.period !== 'later') {
      const period = event.period === 'immediate' ? undefined : event.period
      const [start, end] = period === undefined ? [time, null] : [Number(period.start), Number(period.end)]
      const inBlocks = governor.clock === undefined ? start < FIRST_SECOND : governor.clock === 'blocks'
      const { dao, address } = governor
      open.set(proposal, { dao, address, proposal, id: String(event.id), start, end, inBlocks })
    }
    const known = open.get(proposal)
    if (event.kind === 'extended' && known !== undefined) open.set(proposal, { ...known, end: Number(event.end) })
  }
  return open
}

interface QuorumsInput {
  readonly chain: string
  readonly node: Node
  readonly clocks: Clocks
  readonly governors: readonly OwnedGovernor[]
  /** The votes that count towards the quorum of each governor, by address, as its contract states them. */
  readonly counts: ReadonlyMap<string, Counts>
  readonly state: JobState
  /** In Unix milliseconds. */
  readonly slot: number
}

/**
 * Returns the quorums of proposals whose snapshot is over. A contract that answers with an error has none; the proposals of a
 * node that cannot answer wait for the next run.
 */
export async function readQuorums(
  happened: readonly Happened[],
  { chain, node, clocks, governors, counts, state, slot }: QuorumsInput,
  signal: AbortSignal,
): Promise<Candidate<GovernorsRow>[]> {
  const key = `quorums.${chain}`
  const byAddress = new Map(governors.map((one) => [one.address, one]))
  const open = collectAwaited((await recall(state, key, awaitedList)) ?? [], happened)
  for (const { proposal, address } of open.values()) if (!byAddress.has(address)) open.delete(proposal)
  const newestOf = ({ inBlocks, address }: Awaited) =>
    byAddress.get(address)?.clock === 'rounds' ? Number.POSITIVE_INFINITY : inBlocks ? clocks.block : clocks.seconds
  const isPast = (one: Awaited, at: number) => (newestOf(one) ?? 0) > at
  const due = [...open.values()].filter((one) => isPast(one, one.start)).slice(-MOST_PER_RUN)
  const replies = await askQuorums(
    due,
    { node, byAddress, isOver: (one) => one.end !== null && isPast(one, one.end) },
    signal,
  )
  const rows = due.flatMap((one): Candidate<GovernorsRow>[] => {
    const governor = byAddress.get(one.address)
    const source = governor && SOURCES[governor.family]
    const reply = replies.get(one)
    if (governor === undefined || source === undefined || reply === undefined || isTransient(reply)) return []
    const isLive = governor.quorum === 'live' || source.isLive === true
    if (!isLive || one.end === null || isPast(one, one.end)) open.delete(one.proposal)
    const quorum = 'data' in reply ? source.read(reply.data) : undefined
    if (quorum === undefined) return []
    const { dao, proposalSpace: space, decimals } = governor
    const how = governor.counted ?? counts.get(governor.address) ?? source.counts ?? ''
    const values = { quorum_exact: String(quorum), quorum_counts: how, is_quorum_live: isLive, decimals }
    return [{ dao, space, proposal: one.proposal, kind: 'quorum', at: toIso(slot), ...values }]
  })
  state.set(key, JSON.stringify([...open.values()]))
  return rows
}

interface AskInput {
  readonly node: Node
  readonly byAddress: ReadonlyMap<string, OwnedGovernor>
  isOver(one: Awaited): boolean
}

/** Reads snapshots first, then quorums. Returns a reply for each proposal. */
async function askQuorums(due: readonly Awaited[], { node, byAddress, isOver }: AskInput, signal: AbortSignal) {
  const sourced = due.flatMap((one) => {
    const governor = byAddress.get(one.address)
    const source = governor && SOURCES[governor.family]
    return source === undefined ? [] : [{ one, source, of: governor?.quorum === 'setting' ? 'setting' : source.of }]
  })
  const snapshots = await callContracts(
    node,
    sourced.map(({ one, source }) =>
      source.needsSnapshot === true ? { to: one.address, data: toData(SNAPSHOT, [BigInt(one.id)]) } : undefined,
    ),
    signal,
  )
  const asked = sourced.map(({ one, source, of }, at) => {
    const reply = snapshots[at]
    const stated = reply !== undefined && 'data' in reply ? readFirst(reply.data) : undefined
    if (source.needsSnapshot === true && stated === undefined) return { one, of, reply, call: undefined }
    const call = { to: one.address, data: source.toCall(BigInt(one.id), stated ?? BigInt(one.start)) }
    const isOld = of !== undefined && one.inBlocks && one.end !== null && isOver(one)
    return { one, of, reply, call: isOld && one.end !== null ? { ...call, block: one.end } : call }
  })
  const calls = asked.map(({ call }) => call)
  const first = await callContracts(node, calls, signal)
  const isRefused = (at: number) => {
    const reply = first[at]
    return reply !== undefined && 'error' in reply && !isTransient(reply)
  }
  const again = asked.map(({ of, call }, at) => {
    return of === 'code' && call !== undefined && 'block' in call && isRefused(at)
      ? { to: call.to, data: call.data }
      : undefined
  })
  const second = await callContracts(node, again, signal)
  return new Map(asked.map(({ one, reply }, at) => [one, second[at] ?? first[at] ?? reply]))
}
