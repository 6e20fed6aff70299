import { nodesDeclaration } from '../../../shared/config/providers/nodes.ts'
import type { GovernorsRow } from '../../../shared/datasets/governors.ts'
import { DataError } from '../../../shared/errors.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import { type Candidate, OMITTED, type Provider } from '../../job/define-job.ts'
import { toIso } from '../answer.ts'
import type { GovernorRequest, GovernorSource } from '../contracts/governors.ts'
import { familyOf, GOVERNOR_TOPICS } from './governors/families.ts'
import { type Happened, type OwnedGovernor, toRows } from './governors/rows.ts'
import { type BlockClock, countsBlocks, readTimes, toClock } from './governors/times.ts'
import { readBlockTimes } from './logs/block-times.ts'
import { holdBack, resumeRegistered } from './logs/cursors.ts'
import {
  type ChainReader,
  type ChainReading,
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
const CONTENT = 'counted'

/** Reads events from each governor's cursor to the newest final block. */
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
  const governors = all.filter((one) => !unclocked.includes(one))
  const resumed = await resumeRegistered(state, `${chain}.${CONTENT}`, { contracts: governors, head: head.number })
  const taken = await readTurns(
    node,
    governors,
    { resumed, to: head.number, most: mostPerRun, topics: GOVERNOR_TOPICS },
    signal,
  )
  const { events, gaps } = await decodeLogs(node, taken.logs, { contracts: governors, decoderOf: familyOf }, signal)
  const happened = events.map(({ contract, ...event }): Happened => ({ governor: contract, ...event }))
  const { turns, omitted } = await holdBack(state, chain, { turns: taken, gaps, slot })
  const times = await readTimes(
    happened,
    { chain, clock, slot, state, readUntil: await findEnds(node, governors, turns, head, signal) },
    signal,
  )
  resumed.note(turns)
  const counts = { chain, logs: turns.logs.length, events: happened.length, left: turns.unfinished.size }
  log.info({ ...counts, unread: gaps.length, leftOut: omitted.length }, 'events of governors read')
  const isBusy = turns.logs.length > mostPerRun / 2
  const { complete, ...reading } = toReading(governors, turns, toLag(node.rpc, head.timestamp, slot))
  const readings = complete.map(({ dao, space }) => toReadingRow(dao, space, slot))
  const rows = [...toRows(happened), ...times, ...findOmitted(omitted, governors).map(toOmittedRow), ...readings]
  const failed = new Map(reading.failed)
  if (clock instanceof DataError) for (const { space } of unclocked) failed.set(space, clock)
  return { ...reading, rows, failed, readTo: head.timestamp * 1000, isBusy }
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
