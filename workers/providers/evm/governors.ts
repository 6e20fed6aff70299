import type { GovernorsRow } from '../../../shared/datasets/governors.ts'
import { DataError, toReason } from '../../../shared/errors.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate, Provider, ProviderContext } from '../../job/define-job.ts'
import { toIso } from '../answer.ts'
import type { GovernorRequest, GovernorSource } from '../contracts/governors.ts'
import { familyOf, GOVERNOR_TOPICS } from './governors/families.ts'
import { type Happened, type OwnedGovernor, toRows } from './governors/rows.ts'
import { type BlockClock, countsBlocks, readTimes, toClock } from './governors/times.ts'
import { readBlockTimes, readLogTimes } from './logs/block-times.ts'
import { type BlockRange, readStretch } from './logs/contract-logs.ts'
import { holdBack, type Resumption, resume } from './logs/cursors.ts'
import { type Block, createNode, type Node, type RpcLog, toLag } from './logs/node.ts'
import { type Gap, type HeldTurns, type Turns, takeTurns, takeTurnsTogether, toGroups } from './logs/turns.ts'
import { createJsonRpc, NODE_COST } from './rpc/json-rpc.ts'

/**
 * Share of a job's ten minutes, because other jobs use the node as well. Each page and each log counts as one request.
 */
const MINUTES_PER_RUN = 3
/** Limit of events, and of their rows, that a run keeps in memory. */
const MOST_PER_RUN = 20_000
/** Limit of pages per reading: it prevents weeks of calls without results. */
const MOST_PAGES = 100_000

interface ChainReader {
  readonly chain: string
  readonly node: Node
  readonly mostPerRun: number
}

type Readers = ReadonlyMap<string, ChainReader>

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
    return { fetchNew: (request) => fetchNew(readers, request) }
  },
}

function openReaders({ config, http, now }: ProviderContext): Readers {
  const { urls, batchSize, ...settings } = config.providers.rpc
  const mostPerRun = Math.min(MOST_PER_RUN, MINUTES_PER_RUN * settings.requestsPerMinute)
  const readers = Object.entries(urls).map(([chain, baseUrl]): [string, ChainReader] => {
    const name = `rpc-${chain}`
    const client = http.open({ provider: name, baseUrl, ...settings })
    return [chain, { chain, node: createNode(createJsonRpc(name, client, batchSize), now), mostPerRun }]
  })
  return new Map(readers)
}

/**
 * Names what is stored of each event. Cursors of versions that stored less do not count, so that every governor is read
 * again from its first block. Its stored votes are served meanwhile.
 */
const CONTENT = 'exact'

/** Result of reading the governors of one chain. */
interface ChainReading {
  readonly rows: readonly Candidate<GovernorsRow>[]
  readonly failed: ReadonlyMap<string, DataError>
  readonly unfinished: ReadonlySet<string>
  /**
   * Whether more than half of the run's limit were events. If so, reading continues immediately; otherwise in the next
   * slot, because other jobs use the node.
   */
  readonly isBusy: boolean
}

/**
 * Reads the chains in sequence. If a node fails, the other chains are still read, and the next run continues from the
 * unchanged cursors. A DAO counts as read if all its governors are.
 */
async function fetchNew(readers: Readers, request: GovernorRequest): Promise<Candidate<GovernorsRow>[]> {
  const governors = request.entities.flatMap((dao) => dao.governors.map((one) => ({ ...one, dao: dao.key })))
  const rows: Candidate<GovernorsRow>[] = []
  const failed = new Map<string, DataError>()
  const unfinished = new Set<string>()
  let isBusy = false
  for (const chain of new Set(governors.map((one) => one.chain))) {
    const own = governors.filter((one) => one.chain === chain)
    const reading = await readChain(readers, chain, own, request)
    for (const row of reading.rows) rows.push(row)
    for (const [space, error] of reading.failed) failed.set(space, error)
    for (const space of reading.unfinished) unfinished.add(space)
    isBusy ||= reading.isBusy && reading.unfinished.size > 0
  }
  for (const dao of request.entities) {
    const spaces = dao.governors.map(({ space }) => space)
    const failure = spaces.flatMap((space) => failed.get(space) ?? [])[0]
    if (failure !== undefined) request.refuse(dao, failure)
    else if (spaces.some((space) => unfinished.has(space))) request.putOff([dao])
    else request.noteRead([dao])
  }
  if (isBusy) request.noteMore()
  return rows
}

async function readChain(
  readers: Readers,
  chain: string,
  governors: readonly OwnedGovernor[],
  request: GovernorRequest,
): Promise<ChainReading> {
  try {
    return await readGovernors(readers, requireReader(readers, chain), governors, request)
  } catch (error) {
    if (!(error instanceof DataError)) throw error
    request.log.warn({ chain, reason: toReason(error) }, 'governors of a chain could not be read')
    const failed = new Map(governors.map(({ space }) => [space, error]))
    return { rows: [], failed, unfinished: new Set(), isBusy: false }
  }
}

function requireReader(readers: Readers, chain: string): ChainReader {
  const reader = readers.get(chain)
  if (reader !== undefined) return reader
  throw new DataError('provider_unconfigured', `RPC_URLS names no node of ${chain}`)
}

/** Reads events from each governor's cursor to the newest final block. */
async function readGovernors(
  readers: Readers,
  { chain, node, mostPerRun }: ChainReader,
  all: readonly OwnedGovernor[],
  { state, slot, signal, log }: GovernorRequest,
): Promise<ChainReading> {
  const head = await node.finalized(signal)
  const clock = await readClock(readers, { chain, node, head }, all, signal)
  // If the clock cannot be read, votes on these governors would have no proposal times, so they are not read.
  const unclocked = all.filter((one) => clock instanceof DataError && countsBlocks(one))
  const governors = all.filter((one) => !unclocked.includes(one))
  const resumed = await resume(state, `${chain}.${CONTENT}`, { contracts: governors, head: head.number }, async () => {
    const starts = new Map(governors.map(({ address, fromBlock }) => [address, fromBlock]))
    return (address) => starts.get(address) ?? 0
  })
  const taken = await readTurns(node, governors, { resumed, to: head.number, most: mostPerRun }, signal)
  const { happened, gaps } = await toHappened(node, taken.logs, governors, signal)
  const { turns, leftOut } = await holdBack(state, chain, { turns: taken, gaps, slot })
  const times = await readTimes(
    happened,
    { chain, clock, slot, state, readUntil: await findEnds(node, governors, turns, head, signal) },
    signal,
  )
  resumed.note(turns)
  const told = { chain, logs: turns.logs.length, events: happened.length, left: turns.unfinished.size }
  log.info({ ...told, unread: gaps.length, leftOut: leftOut.length }, 'events of governors read')
  const rows = [...toRows(happened), ...times, ...toLeftOut(leftOut, governors)]
  const isBusy = turns.logs.length > mostPerRun / 2
  const reading = toReading({ governors, turns, rows }, toLag(node.rpc, head.timestamp, slot), slot)
  const failed = new Map(reading.failed)
  if (clock instanceof DataError) for (const { space } of unclocked) failed.set(space, clock)
  return { ...reading, failed, isBusy }
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

interface ToRead {
  readonly resumed: Resumption
  readonly to: number
  readonly most: number
}

/**
 * Reads within the node's page limits: first new events of completely read governors, then the history of the others
 * from each one's start. If the pages are so narrow that reading would take weeks, the governors fail with an error
 * instead.
 */
async function readTurns(
  node: Node,
  governors: readonly OwnedGovernor[],
  { resumed, to, most }: ToRead,
  signal: AbortSignal,
): Promise<Turns> {
  const wanted = { topics: GOVERNOR_TOPICS, firstOf: resumed.firstOf, to }
  const isMidway = ({ address }: OwnedGovernor) => resumed.isMidway(address)
  const past = toGroups({ ...wanted, contracts: governors.filter(isMidway) })
  await learnCeiling(node, past, signal)
  const isFar = ({ from }: BlockRange) => (to - from + 1) / node.pager.ceiling() > MOST_PAGES
  const recent = toGroups({ ...wanted, contracts: governors.filter((one) => !isMidway(one)) })
  const news = await takeTurns(
    node,
    recent.filter((group) => !isFar(group)),
    most,
    signal,
  )
  const near = past.filter((group) => !isFar(group))
  const history = await takeTurnsTogether(node, near, Math.max(1, most - news.spent), signal)
  const failed = new Map([...news.failed, ...history.failed])
  for (const group of [...recent, ...past].filter(isFar)) {
    const says = `RPC_URLS needs a node with wider pages, ${to - group.from + 1} blocks are to be read`
    const error = new DataError(
      'provider_unconfigured',
      `${node.rpc.name} gives ${node.pager.ceiling()} blocks a call: ${says}`,
    )
    for (const { address } of group.contracts) failed.set(address, error)
  }
  return {
    logs: [...news.logs, ...history.logs],
    cursors: new Map([...news.cursors, ...history.cursors]),
    unfinished: new Set([...news.unfinished, ...history.unfinished]),
    failed,
    spent: news.spent + history.spent,
  }
}

/** Requests one page of the newest long range, to learn the page limit from the node's refusal. */
async function learnCeiling(node: Node, groups: readonly BlockRange[], signal: AbortSignal): Promise<void> {
  const long = groups.filter(({ from, to }) => to - from >= MOST_PAGES).sort((a, b) => b.from - a.from)[0]
  if (long === undefined) return
  try {
    await readStretch(node, long, 1, signal)
  } catch (error) {
    // The read of these contracts will hit the same error and report it.
    if (!(error instanceof DataError)) throw error
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
function toLeftOut(leftOut: readonly Gap[], governors: readonly OwnedGovernor[]): Candidate<GovernorsRow>[] {
  const byAddress = new Map(governors.map((one) => [one.address, one]))
  return leftOut.flatMap(({ log }) => {
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

interface Read {
  readonly governors: readonly OwnedGovernor[]
  readonly turns: HeldTurns
  readonly rows: readonly Candidate<GovernorsRow>[]
}

/** Returns which governors were completely read, with their `reading` rows. None if the node lags behind the slot. */
function toReading(
  { governors, turns, rows }: Read,
  lag: DataError | undefined,
  slot: number,
): Omit<ChainReading, 'isBusy'> {
  const failed = new Map<string, DataError>()
  const unfinished = new Set<string>()
  const readings: Candidate<GovernorsRow>[] = []
  for (const { dao, space, address } of governors) {
    const failure = turns.failed.get(address) ?? turns.held.get(address)
    if (failure !== undefined) failed.set(space, failure)
    else if (turns.unfinished.has(address)) unfinished.add(space)
    else if (lag !== undefined) failed.set(space, lag)
    else readings.push({ dao, space, kind: 'reading', proposal: '', at: toIso(slot) })
  }
  return { rows: [...rows, ...readings], failed, unfinished }
}
