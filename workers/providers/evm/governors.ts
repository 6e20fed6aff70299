import type { GovernorsRow } from '../../../shared/datasets/governors.ts'
import { DataError, toReason } from '../../../shared/errors.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate, Provider, ProviderContext } from '../../job/define-job.ts'
import { toIso } from '../answer.ts'
import type { GovernorRequest, GovernorSource } from '../contracts/governors.ts'
import { decodeGovernorEvent, GOVERNOR_TOPICS } from './governors/events.ts'
import { type Happened, type OwnedGovernor, toRows } from './governors/rows.ts'
import { readTimes, toClock } from './governors/times.ts'
import { readBlockTimes, readLogTimes } from './logs/block-times.ts'
import { type BlockRange, readStretch } from './logs/contract-logs.ts'
import { resume } from './logs/cursors.ts'
import { type Block, createNode, type Node, type RpcLog, toLag } from './logs/node.ts'
import { type Turns, takeTurns, toGroups } from './logs/turns.ts'
import { createJsonRpc, NODE_COST } from './rpc/json-rpc.ts'

/** A job has ten minutes, and a node has other readers as well. A page counts one, and so does each log. */
const MINUTES_PER_RUN = 3
/** What a run holds in memory at most: events, and the rows that they are. */
const MOST_PER_RUN = 20_000
/** How many pages a reading may take: for weeks of calls that find nothing a node is not asked. */
const MOST_PAGES = 100_000

interface ChainReader {
  readonly chain: string
  readonly node: Node
  readonly mostPerRun: number
}

type Readers = ReadonlyMap<string, ChainReader>

/**
 * Events of governors, by the JSON-RPC node of each chain that RPC_URLS names (providers document, section 10). Only final
 * blocks are read, so that a vote that is stored is never taken back.
 */
export const ethereum: Provider<GovernorSource, Dao> = {
  name: 'ethereum',
  cost: NODE_COST,
  hostPerChain: true,
  // Also of a chain without a node: what is told of it then says which.
  covers: () => true,
  connect(context) {
    const readers = openReaders(context)
    return { fetchNew: (request) => fetchNew(readers, request) }
  },
}

function openReaders({ config, http }: ProviderContext): Readers {
  const { urls, batchSize, ...settings } = config.providers.rpc
  const mostPerRun = Math.min(MOST_PER_RUN, MINUTES_PER_RUN * settings.requestsPerMinute)
  const readers = Object.entries(urls).map(([chain, baseUrl]): [string, ChainReader] => {
    const name = `rpc-${chain}`
    const client = http.open({ provider: name, baseUrl, ...settings })
    return [chain, { chain, node: createNode(createJsonRpc(name, client, batchSize)), mostPerRun }]
  })
  return new Map(readers)
}

/** What the governors of one chain came to. */
interface ChainReading {
  readonly rows: readonly Candidate<GovernorsRow>[]
  readonly failed: ReadonlyMap<string, DataError>
  readonly unfinished: ReadonlySet<string>
  /** Whether most of what it read were events: then more is read at once, else in the next slot, as others want the node. */
  readonly isBusy: boolean
}

/**
 * Reads the chains one after the other. One whose node fails stops no other: its cursors stay, and the next run goes on from
 * them. A DAO is read when all of its governors are.
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
    return await readGovernors(
      requireReader(readers, chain),
      requireReader(readers, toClock(chain)),
      governors,
      request,
    )
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

/** Events from each governor's cursor on, towards the newest final block; `clock` is of the chain whose blocks they count. */
async function readGovernors(
  { chain, node, mostPerRun }: ChainReader,
  clock: ChainReader,
  governors: readonly OwnedGovernor[],
  { state, slot, signal, log }: GovernorRequest,
): Promise<ChainReading> {
  const head = await node.finalized(signal)
  const counted = clock.node === node ? head : await clock.node.finalized(signal)
  // Together from the first one's beginning on: a call about all of them is one call.
  const resumed = await resume(state, chain, { contracts: governors, head: head.number }, (unread) =>
    Math.min(...governors.filter(({ address }) => unread.has(address)).map(({ fromBlock }) => fromBlock)),
  )
  const wanted = { contracts: governors, topics: GOVERNOR_TOPICS, firstOf: resumed.firstOf, to: head.number }
  const turns = await readTurns(node, toGroups(wanted), mostPerRun, signal)
  const happened = await toHappened(node, turns.logs, governors, signal)
  const times = await readTimes(
    happened,
    {
      ...{ chain, clock: { node: clock.node, head: counted }, slot, state },
      readUntil: await findEnds(node, governors, turns, head, signal),
    },
    signal,
  )
  resumed.note(turns)
  const told = { chain, logs: turns.logs.length, events: happened.length, left: turns.unfinished.size }
  log.info(told, 'events of governors read')
  const rows = [...toRows(happened), ...times]
  const isBusy = turns.logs.length > mostPerRun / 2
  return { ...toReading({ governors, turns, rows }, toLag(node.rpc, head.timestamp, slot), slot), isBusy }
}

/** Reads what the node's pages allow; where they are so narrow that it would take weeks, it is told instead. */
async function readTurns(node: Node, groups: readonly BlockRange[], most: number, signal: AbortSignal): Promise<Turns> {
  const isFar = ({ from, to }: BlockRange) => (to - from + 1) / node.pager.ceiling() > MOST_PAGES
  const [long] = groups.filter(({ from, to }) => to - from >= MOST_PAGES)
  // One page, for what a node says of those that are too wide.
  if (long !== undefined) await readStretch(node, long, 1, signal)
  const turns = await takeTurns(
    node,
    groups.filter((group) => !isFar(group)),
    most,
    signal,
  )
  const failed = new Map(turns.failed)
  for (const group of groups.filter(isFar)) {
    const says = `RPC_URLS needs a node with wider pages, ${group.to - group.from + 1} blocks are to be read`
    const error = new DataError(
      'provider_unconfigured',
      `${node.rpc.name} gives ${node.pager.ceiling()} blocks a call: ${says}`,
    )
    for (const { address } of group.contracts) failed.set(address, error)
  }
  return { ...turns, failed }
}

/** What the logs say, in the chain's order; what a node took back or nobody can read is left out. */
async function toHappened(
  node: Node,
  logs: readonly RpcLog[],
  governors: readonly OwnedGovernor[],
  signal: AbortSignal,
): Promise<Happened[]> {
  const byAddress = new Map(governors.map((one) => [one.address, one]))
  const timeOf = await readLogTimes(node, logs, signal)
  const inOrder = [...logs].sort((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex)
  return inOrder.flatMap((log) => {
    const governor = byAddress.get(log.address)
    const event = decodeGovernorEvent(log)
    if (log.removed || governor === undefined || event === undefined) return []
    return [{ governor, event, log, time: timeOf(log.blockNumber) }]
  })
}

/** Before the first block of any chain, in Unix seconds. */
const NOTHING_READ = 0

/** Up to which time each governor was read, by its space: one that was read in part, up to its last block. */
async function findEnds(
  node: Node,
  governors: readonly OwnedGovernor[],
  { unfinished, failed, cursors }: Turns,
  head: Block,
  signal: AbortSignal,
): Promise<(space: string) => number> {
  const cut = governors.filter(({ address }) => unfinished.has(address))
  const numbers = cut.flatMap(({ address }) => cursors.get(address) ?? [])
  const timeOf = await readBlockTimes(node, numbers, signal)
  const ends = new Map(
    cut.map(({ space, address }) => {
      const cursor = cursors.get(address)
      return [space, cursor === undefined ? NOTHING_READ : timeOf(cursor)]
    }),
  )
  for (const { space, address } of governors) if (failed.has(address)) ends.set(space, NOTHING_READ)
  return (space) => ends.get(space) ?? head.timestamp
}

interface Read {
  readonly governors: readonly OwnedGovernor[]
  readonly turns: Turns
  readonly rows: readonly Candidate<GovernorsRow>[]
}

/** Which governors were read to the end, with the rows that say so; none of a node that lags behind the slot. */
function toReading(
  { governors, turns, rows }: Read,
  lag: DataError | undefined,
  slot: number,
): Omit<ChainReading, 'isBusy'> {
  const failed = new Map<string, DataError>()
  const unfinished = new Set<string>()
  const readings: Candidate<GovernorsRow>[] = []
  for (const { dao, space, address } of governors) {
    const failure = turns.failed.get(address)
    if (failure !== undefined) failed.set(space, failure)
    else if (turns.unfinished.has(address)) unfinished.add(space)
    else if (lag !== undefined) failed.set(space, lag)
    else readings.push({ dao, space, kind: 'reading', proposal: '', at: toIso(slot) })
  }
  return { rows: [...rows, ...readings], failed, unfinished }
}
