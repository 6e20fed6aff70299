import type { GovernorsRow } from '../../../shared/datasets/governors.ts'
import { DataError } from '../../../shared/errors.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate, Provider } from '../../job/define-job.ts'
import { toIso } from '../answer.ts'
import type { GovernorRequest, GovernorSource } from '../contracts/governors.ts'
import { familyOf, GOVERNOR_TOPICS } from './governors/families.ts'
import { type Happened, type OwnedGovernor, toRows } from './governors/rows.ts'
import { type BlockClock, countsBlocks, readTimes, toClock } from './governors/times.ts'
import { readBlockTimes, readLogTimes } from './logs/block-times.ts'
import { holdBack, resume } from './logs/cursors.ts'
import {
  type ChainReader,
  type ChainReading,
  followContracts,
  openReaders,
  type Readers,
  readTurns,
  requireReader,
  toReading,
} from './logs/follow.ts'
import { type Block, type Node, type RpcLog, toLag } from './logs/node.ts'
import type { Gap, HeldTurns } from './logs/turns.ts'
import { NODE_COST } from './rpc/json-rpc.ts'

/**
 * Events of governors from the JSON-RPC node of each chain in RPC_URLS (docs/providers.md, section 10). Only final
 * blocks are read, so a stored vote is never reverted.
 */
export const ethereum: Provider<GovernorSource, Dao> = {
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
          (dao) => dao.governors.map((one) => ({ ...one, dao: dao.key })),
          (chain, governors) => readGovernors(readers, requireReader(readers, chain), governors, request),
        ),
    }
  },
}

/**
 * Names what is stored of each event. Cursors of versions that stored less do not count, so that every governor is read
 * again from its first block. Its stored votes are served meanwhile.
 */
const CONTENT = 'exact'

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
  const resumed = await resume(state, `${chain}.${CONTENT}`, { contracts: governors, head: head.number }, async () => {
    const starts = new Map(governors.map(({ address, fromBlock }) => [address, fromBlock]))
    return (address) => starts.get(address) ?? 0
  })
  const taken = await readTurns(
    node,
    governors,
    { resumed, to: head.number, most: mostPerRun, topics: GOVERNOR_TOPICS },
    signal,
  )
  const { happened, gaps } = await toHappened(node, taken.logs, governors, signal)
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
  const rows = [...toRows(happened), ...times, ...toOmittedRows(omitted, governors), ...readings]
  const failed = new Map(reading.failed)
  if (clock instanceof DataError) for (const { space } of unclocked) failed.set(space, clock)
  return { ...reading, rows, failed, isBusy }
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

/** Decodes the logs in chain order and returns unreadable ones as gaps. Logs removed by the node are dropped. */
async function toHappened(
  node: Node,
  logs: readonly RpcLog[],
  governors: readonly OwnedGovernor[],
  signal: AbortSignal,
): Promise<{ readonly happened: readonly Happened[]; readonly gaps: readonly Gap[] }> {
  const byAddress = new Map(governors.map((one) => [one.address, one]))
  const gaps: Gap[] = []
  const timeOf = await readLogTimes(
    node,
    logs.filter(({ fault }) => fault === undefined),
    signal,
  )
  const inOrder = [...logs].sort((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex)
  const happened = inOrder.flatMap((log): Happened[] => {
    const governor = byAddress.get(log.address)
    if (log.removed || governor === undefined) return []
    const family = familyOf(governor)
    const event = family.decode(log)
    const fault =
      log.fault ?? (event === undefined && family.isCut(log) ? `the data of ${log.transactionHash} is cut` : undefined)
    if (fault !== undefined)
      gaps.push({ log, reason: new DataError('provider_malformed', `${node.rpc.name}: ${fault}`) })
    if (fault !== undefined || event === undefined) return []
    const time = timeOf(log.blockNumber)
    if (typeof time === 'number') return [{ governor, event, log, time }]
    gaps.push({ log, reason: time })
    return []
  })
  return { happened, gaps }
}

/** Returns rows without values for logs that are permanently left out, so that the row check counts them. */
function toOmittedRows(omitted: readonly Gap[], governors: readonly OwnedGovernor[]): Candidate<GovernorsRow>[] {
  const byAddress = new Map(governors.map((one) => [one.address, one]))
  return omitted.flatMap(({ log }) => {
    const governor = byAddress.get(log.address)
    if (governor === undefined) return []
    return [{ dao: governor.dao, space: governor.space, kind: 'canceled', proposal: null, at: null }]
  })
}

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
