import { nodesDeclaration } from '../../../shared/config/providers/nodes.ts'
import type { GovernorsRow } from '../../../shared/datasets/governors.ts'
import { DataError } from '../../../shared/errors.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import { type Candidate, OMITTED, type Provider } from '../../job/define-job.ts'
import { toIso } from '../answer.ts'
import type { GovernorRequest, GovernorSource } from '../contracts/governors.ts'
import { readCountingModes } from './governors/counting-modes.ts'
import { familyOf, GOVERNOR_TOPICS } from './governors/families.ts'
import type { GovernorEvent } from './governors/family.ts'
import { readQuorums } from './governors/quorums.ts'
import { type Happened, type OwnedGovernor, toRows } from './governors/rows.ts'
import { findTimelocks, readTimelocks, type TimelockChange, toTimelockProgress } from './governors/timelocks.ts'
import { type BlockClock, countsBlocks, readTimes, toClock } from './governors/times.ts'
import { readBlockTimes } from './logs/block-times.ts'
import { holdBack, resumeRegistered } from './logs/cursors.ts'
import {
  type ChainReader,
  type ChainReading,
  type ContractEvent,
  decodeLogs,
  findOmitted,
  followContracts,
  openReaders,
  type Readers,
  readTurns,
  requireReader,
  toReading,
} from './logs/follow.ts'
import { type Block, type Node, toLag } from './logs/node.ts'
import type { HeldTurns } from './logs/turns.ts'

/**
 * Events of governors from the JSON-RPC node of each chain in RPC_URLS (docs/providers.md, section 10). Only final
 * blocks are read, so a stored vote is never reverted.
 */
export const ethereum: Provider<GovernorSource, Dao> = {
  name: 'ethereum',
  cost: nodesDeclaration.cost,
  hostPerChain: true,
  // Also covers chains without a node: the error then names the chain.
  covers: () => true,
  connect(context) {
    const readers = openReaders(context)
    return {
      fetchNew: async (request) => {
        const rows = await followContracts(
          request,
          (dao) => dao.governors.map((one) => ({ ...one, dao: dao.key })),
          (chain, governors) => readGovernors(readers, requireReader(readers, chain), governors, request),
        )
        return mergeReadings(rows, request.entities)
      },
    }
  },
}

/**
 * Replaces the readings of contracts by those of their proposals. Proposals count as read if the governor and all
 * contracts with their votes were read in the same run.
 */
function mergeReadings(
  rows: readonly Candidate<GovernorsRow>[],
  daos: readonly Pick<Dao, 'governors'>[],
): Candidate<GovernorsRow>[] {
  const governors = daos.flatMap((dao) => dao.governors)
  const read = new Set(rows.flatMap(({ kind, space }) => (kind === 'reading' ? [space] : [])))
  const complete = new Set<unknown>(governors.map((one) => one.proposalSpace))
  for (const { space, proposalSpace } of governors) if (!read.has(space)) complete.delete(proposalSpace)
  return rows.filter(({ kind, space }) => kind !== 'reading' || complete.has(space))
}

/**
 * Version of the stored members of an event. Cursors of an earlier version are ignored, so every governor is read again
 * from its first block. Until then, the API serves the stored votes.
 */
const CONTENT = 'quorums'

/** Reads events of governors and of their timelocks, each from its cursor to the newest final block. */
async function readGovernors(
  readers: Readers,
  { chain, node, mostPerRun }: ChainReader,
  all: readonly OwnedGovernor[],
  { state, slot, signal, log }: GovernorRequest,
): Promise<ChainReading<GovernorsRow>> {
  const head = await node.finalized(signal)
  const clock = await readClock(readers, { chain, node, head }, all, signal)
  // If the clock cannot be read, votes on these governors would have no proposal times, so they are not read.
  const unclocked = all.filter((one) => clock instanceof DataError && countsBlocks(one))
  const { governors, counts } = await readCountingModes(
    node,
    all.filter((one) => !unclocked.includes(one)),
    { chain, state },
    signal,
  )
  const resumed = await resumeRegistered(state, `${chain}.${CONTENT}`, {
    // The omitted members change no row of a log.
    contracts: governors.map(({ counted: _, quorum: __, ...own }) => own),
    head: head.number,
  })
  const taken = await readTurns(
    node,
    governors,
    { resumed, to: head.number, most: mostPerRun, topics: GOVERNOR_TOPICS },
    signal,
  )
  const { events, gaps } = await decodeLogs(node, taken.logs, { contracts: governors, decoderOf: familyOf }, signal)
  const { happened, changes } = splitEvents(events)
  const { turns, omitted } = await holdBack(state, chain, { turns: taken, gaps, slot })
  const timelocks = await readTimelocks(
    node,
    await findTimelocks(state, `timelocks.${chain}.${CONTENT}`, governors, changes),
    {
      ...{ chain, state, slot, cursors: `${chain}.timelocks.${CONTENT}`, to: head.number },
      most: Math.max(1, mostPerRun - taken.spent),
    },
    signal,
  )
  const times = await readTimes(
    happened,
    { chain, clock, slot, state, readUntil: await findEnds(node, governors, turns, head, signal) },
    signal,
  )
  const block = clock instanceof DataError ? undefined : clock.head.number
  const clocks = { block, seconds: head.timestamp }
  const quorums = await readQuorums(happened, { chain, node, clocks, governors, counts, state, slot }, signal)
  resumed.note(turns)
  const logs = turns.logs.length + timelocks.turns.logs.length
  const left = turns.unfinished.size + timelocks.turns.unfinished.size
  const unread = gaps.length + timelocks.unread
  log.info(
    { chain, logs, events: happened.length, left, unread, leftOut: omitted.length },
    'events of governors and timelocks read',
  )
  const reading = toReading(governors, turns, toLag(node.rpc, head.timestamp, slot))
  const failed = new Map(reading.failed)
  const unfinished = new Set(reading.unfinished)
  if (clock instanceof DataError) for (const { space } of unclocked) failed.set(space, clock)
  // The outcome of a proposal is known only if its timelock was read as far as its governor.
  const progressOf = toTimelockProgress(timelocks)
  const complete = reading.complete.filter(({ space, proposalSpace }) => {
    const { failure, isUnfinished } = progressOf(proposalSpace)
    if (failure !== undefined) failed.set(space, failure)
    else if (isUnfinished) unfinished.add(space)
    return failure === undefined && !isUnfinished
  })
  const readings = complete.map(({ dao, space }) => toReadingRow(dao, space, slot))
  const rows = [
    ...[...toRows(happened), ...times, ...quorums, ...timelocks.rows],
    ...[...findOmitted(omitted, governors).map(toOmittedRow), ...readings],
  ]
  return { rows, failed, unfinished, readTo: head.timestamp * 1000, isBusy: logs > mostPerRun / 2 }
}

/** Separates the events of proposals from those that name a governor's timelock. */
function splitEvents(events: readonly ContractEvent<OwnedGovernor, GovernorEvent>[]) {
  const happened: Happened[] = []
  const changes: TimelockChange[] = []
  for (const { contract: governor, event, log, time } of events)
    if (event.kind === 'timelock') changes.push({ governor, address: event.address, block: log.blockNumber })
    else happened.push({ governor, event, log, time })
  return { happened, changes }
}

/**
 * Returns the chain whose blocks the governors count, or the error if it cannot be read. Governors may count the blocks
 * of another chain.
 */
async function readClock(
  readers: Readers,
  own: { readonly chain: string; readonly node: Node; readonly head: Block },
  governors: readonly OwnedGovernor[],
  signal: AbortSignal,
): Promise<BlockClock | DataError> {
  const { chain, node, head } = own
  if (toClock(chain) === chain || !governors.some(countsBlocks)) return { node, head }
  try {
    const counted = requireReader(readers, toClock(chain)).node
    return { node: counted, head: await counted.finalized(signal) }
  } catch (error) {
    if (error instanceof DataError) return error
    throw error
  }
}

type OmittedLog = ReturnType<typeof findOmitted<OwnedGovernor>>[number]

/** Returns rows without values for logs that are permanently omitted, so that the row check counts them. */
const toOmittedRow = ({ contract, reason }: OmittedLog): Candidate<GovernorsRow> => ({
  ...{ dao: contract.dao, space: contract.space, kind: 'canceled', proposal: null, at: null, [OMITTED]: [reason] },
})

/** A time before the first block of any chain, in Unix seconds. */
const NOTHING_READ = 0

/**
 * Returns the time up to which each governor was read, by space. For a partly read governor, that is the time of its
 * last block read.
 */
async function findEnds(
  node: Node,
  governors: readonly OwnedGovernor[],
  { unfinished, failed, held, cursors }: HeldTurns,
  head: Block,
  signal: AbortSignal,
): Promise<(space: string) => number> {
  const cut = governors.filter(({ address }) => unfinished.has(address))
  const numbers = cut.flatMap(({ address }) => cursors.get(address) ?? [])
  const timeOf = await readBlockTimes(node, numbers, signal)
  const ends = new Map(
    cut.map(({ space, address }) => {
      const time = timeOf(cursors.get(address) ?? 0)
      return [space, typeof time === 'number' ? time : NOTHING_READ]
    }),
  )
  for (const { space, address } of governors)
    if (failed.has(address) || held.has(address)) ends.set(space, NOTHING_READ)
  return (space) => ends.get(space) ?? head.timestamp
}

const toReadingRow = (dao: number, space: string, slot: number): Candidate<GovernorsRow> => ({
  ...{ dao, space, kind: 'reading', proposal: '', at: toIso(slot) },
})
