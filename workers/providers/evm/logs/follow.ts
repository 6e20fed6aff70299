import { DataError, toReason } from '../../../../shared/errors.ts'
import type { Dao } from '../../../../shared/registry/entities.ts'
import type { Candidate, ProviderContext } from '../../../job/define-job.ts'
import type { FollowRequest } from '../../contracts/governors.ts'
import { createJsonRpc } from '../rpc/json-rpc.ts'
import { readLogTimes } from './block-times.ts'
import { type BlockRange, type Contract, readStretch } from './contract-logs.ts'
import type { Resumption } from './cursors.ts'
import { createNode, type Node, type RpcLog } from './node.ts'
import { type Gap, type HeldTurns, type Turns, takeTurns, takeTurnsTogether, toGroups } from './turns.ts'

/** A contract whose events are followed: the key of its DAO, and its CAIP-10 account id. */
export interface Followed extends Contract {
  readonly dao: number
  readonly chain: string
  readonly space: string
}

/**
 * Share of a job's ten minutes, because other jobs use the node as well. Each page and each log counts as one request.
 */
const MINUTES_PER_RUN = 3
/** Limit of events, and of their rows, that a run keeps in memory. */
const MOST_PER_RUN = 20_000
/** Limit of pages per reading: it prevents weeks of calls without results. */
const MOST_PAGES = 100_000

export interface ChainReader {
  readonly chain: string
  readonly node: Node
  readonly mostPerRun: number
}

export type Readers = ReadonlyMap<string, ChainReader>

export function openReaders({ config, http, now }: ProviderContext): Readers {
  const { urls, batchSize, ...settings } = config.providers.rpc
  const mostPerRun = Math.min(MOST_PER_RUN, MINUTES_PER_RUN * settings.requestsPerMinute)
  const readers = Object.entries(urls).map(([chain, baseUrl]): [string, ChainReader] => {
    const name = `rpc-${chain}`
    const client = http.open({ provider: name, baseUrl, ...settings })
    return [chain, { chain, node: createNode(createJsonRpc(name, client, batchSize), now), mostPerRun }]
  })
  return new Map(readers)
}

/** Result of reading the contracts of one chain. */
export interface ChainReading<Row> {
  readonly rows: readonly Candidate<Row>[]
  readonly failed: ReadonlyMap<string, DataError>
  readonly unfinished: ReadonlySet<string>
  /** The time of the last block read, in Unix milliseconds. */
  readonly readTo: number
  /**
   * Whether more than half of the run's limit were events. If so, reading continues immediately; otherwise in the next
   * slot, because other jobs use the node.
   */
  readonly isBusy: boolean
}

/**
 * Reads the chains in sequence. If a node fails, the other chains are still read, and the next run continues from the
 * unchanged cursors. A DAO counts as read if all its contracts are.
 */
export async function followContracts<D extends Dao, C extends Followed, Row extends object>(
  request: FollowRequest<D>,
  contractsOf: (dao: D) => readonly C[],
  readChain: (chain: string, contracts: readonly C[]) => Promise<ChainReading<Row>>,
): Promise<Candidate<Row>[]> {
  const contracts = request.entities.flatMap(contractsOf)
  const rows: Candidate<Row>[] = []
  const failed = new Map<string, DataError>()
  const unfinished = new Set<string>()
  const readTo = new Map<string, number>()
  let isBusy = false
  for (const chain of new Set(contracts.map((one) => one.chain))) {
    const own = contracts.filter((one) => one.chain === chain)
    const reading = await readOrFail(chain, own, request, readChain)
    for (const row of reading.rows) rows.push(row)
    for (const [space, error] of reading.failed) failed.set(space, error)
    for (const space of reading.unfinished) unfinished.add(space)
    readTo.set(chain, reading.readTo)
    isBusy ||= reading.isBusy && reading.unfinished.size > 0
  }
  for (const dao of request.entities) {
    const own = contractsOf(dao)
    const spaces = own.map(({ space }) => space)
    const failure = spaces.flatMap((space) => failed.get(space) ?? [])[0]
    if (failure !== undefined) request.refuse(dao, failure)
    else if (spaces.some((space) => unfinished.has(space))) request.putOff([dao])
    else request.noteRead([dao], { to: Math.min(...own.map(({ chain }) => readTo.get(chain) ?? 0)) })
  }
  if (isBusy) request.noteMore()
  return rows
}

async function readOrFail<D extends Dao, C extends Followed, Row>(
  chain: string,
  contracts: readonly C[],
  { log }: FollowRequest<D>,
  readChain: (chain: string, contracts: readonly C[]) => Promise<ChainReading<Row>>,
): Promise<ChainReading<Row>> {
  try {
    return await readChain(chain, contracts)
  } catch (error) {
    if (!(error instanceof DataError)) throw error
    log.warn({ chain, reason: toReason(error) }, 'contracts of a chain could not be read')
    const failed = new Map(contracts.map(({ space }) => [space, error]))
    return { rows: [], failed, unfinished: new Set(), readTo: 0, isBusy: false }
  }
}

export function requireReader(readers: Readers, chain: string): ChainReader {
  const reader = readers.get(chain)
  if (reader !== undefined) return reader
  throw new DataError('provider_unconfigured', `RPC_URLS names no node of ${chain}`)
}

interface ToRead {
  readonly resumed: Resumption
  readonly to: number
  readonly most: number
  /** The first topics of the events. */
  readonly topics: readonly string[]
}

/**
 * Reads within the node's page limits: first new events of completely read contracts, then the history of the others
 * from each one's start. If the pages are so narrow that reading would take weeks, they fail with an error
 * instead.
 */
export async function readTurns(
  node: Node,
  all: readonly Contract[],
  { resumed, to, most, topics }: ToRead,
  signal: AbortSignal,
): Promise<Turns> {
  const filter = { topics, firstOf: resumed.firstOf, to }
  const isMidway = ({ address }: Contract) => resumed.isMidway(address)
  const past = toGroups({ ...filter, contracts: all.filter(isMidway) })
  await learnCeiling(node, past, signal)
  const isFar = ({ from }: BlockRange) => (to - from + 1) / node.pager.ceiling() > MOST_PAGES
  const recent = toGroups({ ...filter, contracts: all.filter((one) => !isMidway(one)) })
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

/** The contracts that were completely read, and those that were not. */
interface Progress<C> extends Pick<ChainReading<never>, 'failed' | 'unfinished'> {
  readonly complete: readonly C[]
}

/** Returns which contracts were completely read: none if the node lags behind the slot. */
export function toReading<C extends Followed>(
  contracts: readonly C[],
  turns: HeldTurns,
  lag: DataError | undefined,
): Progress<C> {
  const failed = new Map<string, DataError>()
  const unfinished = new Set<string>()
  const complete: C[] = []
  for (const one of contracts) {
    const failure = turns.failed.get(one.address) ?? turns.held.get(one.address)
    if (failure !== undefined) failed.set(one.space, failure)
    else if (turns.unfinished.has(one.address)) unfinished.add(one.space)
    else if (lag !== undefined) failed.set(one.space, lag)
    else complete.push(one)
  }
  return { failed, unfinished, complete }
}

/** A decoded event of a followed contract, with its time in Unix seconds. */
export interface ContractEvent<Own extends Followed, Event> {
  readonly contract: Own
  readonly event: Event
  readonly log: RpcLog
  readonly time: number
}

/** Decodes logs. `faultOf` returns why a log of a known event cannot be decoded; undefined for any other log. */
export interface LogDecoder<Event> {
  decode(log: RpcLog): Event | undefined
  faultOf(log: RpcLog): string | undefined
}

/**
 * Decodes the logs in the order of the chain, and returns unreadable ones as gaps. Logs removed by the node, of other
 * contracts and of unknown events are dropped.
 */
export async function decodeLogs<Own extends Followed, Event>(
  node: Node,
  logs: readonly RpcLog[],
  { contracts, decoderOf }: { readonly contracts: readonly Own[]; readonly decoderOf: (own: Own) => LogDecoder<Event> },
  signal: AbortSignal,
): Promise<{ readonly events: readonly ContractEvent<Own, Event>[]; readonly gaps: readonly Gap[] }> {
  const byAddress = new Map(contracts.map((one) => [one.address, one]))
  const gaps: Gap[] = []
  const readable = logs.filter(({ fault }) => fault === undefined)
  const timeOf = await readLogTimes(node, readable, signal)
  const inOrder = [...logs].sort((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex)
  const events = inOrder.flatMap((log): ContractEvent<Own, Event>[] => {
    const contract = byAddress.get(log.address)
    if (log.removed || contract === undefined) return []
    const decoder = decoderOf(contract)
    const event = log.fault === undefined ? decoder.decode(log) : undefined
    if (event === undefined) {
      const fault = log.fault ?? toFault(decoder, log)
      if (fault !== undefined)
        gaps.push({ log, reason: new DataError('provider_malformed', `${node.rpc.name}: ${fault}`) })
      return []
    }
    const time = timeOf(log.blockNumber)
    if (typeof time === 'number') return [{ contract, event, log, time }]
    gaps.push({ log, reason: time })
    return []
  })
  return { events, gaps }
}

function toFault<Event>(decoder: LogDecoder<Event>, log: RpcLog): string | undefined {
  const fault = decoder.faultOf(log)
  return fault && `log ${log.logIndex} of ${log.transactionHash}: ${fault}`
}

/** Returns the contract and the reason of each log that is permanently omitted. */
export function findOmitted<Own extends Followed>(
  omitted: readonly Gap[],
  contracts: readonly Own[],
): readonly { readonly contract: Own; readonly reason: string }[] {
  const byAddress = new Map(contracts.map((one) => [one.address, one]))
  return omitted.flatMap(({ log, reason }) => {
    const contract = byAddress.get(log.address)
    return contract === undefined ? [] : [{ contract, reason: reason.message }]
  })
}
