import { nodesDeclaration } from '../../../shared/config/providers/nodes.ts'
import type { DexTradeRow } from '../../../shared/datasets/dex-trades.ts'
import { DataError, toReason } from '../../../shared/errors.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import { type Candidate, OMITTED, type Provider, type ProviderContext, type Range } from '../../job/define-job.ts'
import type { NewTradeRequest, TradeRequest, TradeSource } from '../contracts/trades.ts'
import { openDefiLlamaCoins } from '../defillama/client.ts'
import { type ChainReader, readTrades } from './dex/chain-reader.ts'
import { DEX_CHAINS } from './dex/exchanges.ts'
import type { Pool } from './dex/pools.ts'
import { openReadings } from './dex/readings.ts'
import { findRangePools, refreshPools, toPoolGroups, toPoolsOf } from './dex/stored-pools.ts'
import { SWAP_TOPICS } from './dex/swaps.ts'
import { dropCursors, holdBack, noteCursors, readCursors, resume } from './logs/cursors.ts'
import { findBlockAt } from './logs/find-block.ts'
import { createNode, toLag } from './logs/node.ts'
import { type Cursors, type Gap, type HeldTurns, holdCursors, type Turns, takeTurns, toGroups } from './logs/turns.ts'
import { createJsonRpc } from './rpc/json-rpc.ts'

/**
 * Share of a job's ten minutes. A log costs up to two calls, for its sender and its block's time, and history has only
 * a share of the node's limit.
 */
const MINUTES_PER_RUN = 1
/** Limit of logs, and of their trades, that a run keeps in memory. */
const MOST_PER_RUN = 20_000

/** Returns whether the trades of a chain are read from its node. Other providers then skip the chain. */
export function isReadFromNode(chain: string, urls: Readonly<Record<string, string>>): boolean {
  return chain in urls && chain in DEX_CHAINS
}

/**
 * Trades from the Swap logs of pools, from the JSON-RPC node of each chain in RPC_URLS (docs/providers.md, section 6).
 * Only final blocks are read, so a stored trade is never reverted.
 */
export const ethereum: Provider<TradeSource, Token> = {
  name: 'ethereum',
  cost: nodesDeclaration.cost,
  hostPerChain: true,
  covers: (token, config) => isReadFromNode(token.chain, config.providers.rpc.urls),
  connect(context) {
    const now = context.now ?? Date.now
    const readers = openReaders(context, now)
    const firstRunMs = context.config.dex.firstRunHours * 3_600_000
    return {
      fetchNew: (request) => eachChain(readers, request, (reader, own) => fetchNew(reader, own, firstRunMs)),
      fetchHistory: (request) => eachChain(readers, request, (reader, own) => fetchRange(reader, own, now())),
    }
  },
}

function openReaders(context: ProviderContext, now: () => number): ChainReader[] {
  const { config, http } = context
  const { urls, batchSize, ...settings } = config.providers.rpc
  const prices = openDefiLlamaCoins(context)
  return Object.entries(DEX_CHAINS).flatMap(([slug, chain]) => {
    const baseUrl = urls[slug]
    if (baseUrl === undefined) return []
    const name = `rpc-${slug}`
    const client = http.open({ provider: name, baseUrl, ...settings })
    const mostPerRun = Math.min(MOST_PER_RUN, MINUTES_PER_RUN * settings.requestsPerMinute)
    return [{ slug, chain, node: createNode(createJsonRpc(name, client, batchSize), now), prices, mostPerRun }]
  })
}

/** Returns the chains with any of the tokens, each with its tokens. */
function toOwn(readers: readonly ChainReader[], tokens: readonly Token[]): [ChainReader, Token[]][] {
  return readers.flatMap((reader) => {
    const own = tokens.filter(({ chain }) => chain === reader.slug)
    return own.length === 0 ? [] : [[reader, own] as [ChainReader, Token[]]]
  })
}

/**
 * Reads the chains in sequence. If a node fails, its tokens are refused and the other chains are still read. The next
 * run continues from the unchanged cursors.
 */
async function eachChain<R extends TradeRequest>(
  readers: readonly ChainReader[],
  request: R,
  read: (reader: ChainReader, request: R) => Promise<Candidate<DexTradeRow>[]>,
): Promise<Candidate<DexTradeRow>[]> {
  const rows: Candidate<DexTradeRow>[][] = []
  for (const [reader, entities] of toOwn(readers, request.entities)) {
    try {
      rows.push(await read(reader, { ...request, entities }))
    } catch (error) {
      if (!(error instanceof DataError)) throw error
      for (const token of entities) request.refuse(token, error)
      request.log.warn({ chain: reader.slug, reason: toReason(error) }, 'chain could not be read')
    }
  }
  return rows.flat()
}

/**
 * Reads trades from each pool's cursor to the newest final block. Pools without a cursor start `firstRunMs` before the
 * slot, or at an earlier search that did not find the pool, because its token counts as read since then. A finished
 * token is read from where its cursors began, or from the end of its last finished reading.
 */
async function fetchNew(
  reader: ChainReader,
  request: NewTradeRequest,
  firstRunMs: number,
): Promise<Candidate<DexTradeRow>[]> {
  const { state, slot, signal } = request
  const head = await reader.node.finalized(signal)
  const { pools, failed } = await refreshPools(reader, request)
  let startsAt = slot - firstRunMs
  const resumed = await resume(state, reader.slug, { contracts: pools, head: head.number }, async (unread) => {
    const absent = pools.flatMap(({ address, absentAt }) => (unread.has(address) ? (absentAt ?? []) : []))
    startsAt = Math.min(startsAt, ...absent)
    const start = await findBlockAt(reader.node, startsAt / 1000, head, signal)
    return () => start
  })
  const readTo = head.timestamp * 1000
  const isAhead = (address: string) => resumed.firstOf(address) > head.number + 1
  const { isFirst } = resumed
  const readings = await openReadings(state, reader.slug, { pools, isFirst, isAhead, startsAt, readTo })
  const { rows, turns, finished } = await readOn(reader, request, {
    ...{ pools, failed, firstOf: resumed.firstOf, to: head.number },
    hold: (turns, gaps) => holdBack(state, reader.slug, { turns, gaps, slot }),
  })
  resumed.note(turns)
  const lag = toLag(reader.node.rpc, head.timestamp, slot)
  const isNoted = lag === undefined ? finished : []
  for (const token of isNoted) request.noteRead([token], { from: readings.beganAt(token), to: readTo })
  readings.note(request.entities, { finished: isNoted, moved: turns.cursors })
  if (lag !== undefined) {
    for (const token of finished) request.refuse(token, lag)
    request.log.warn(
      { chain: reader.slug, block: head.number },
      'node lags behind: the trades of its tokens are not up to date',
    )
  }
  return rows
}

interface TradeSelection {
  readonly pools: readonly Pool[]
  /** Errors of the pool search, by token address. */
  readonly failed: ReadonlyMap<string, DataError>
  /** Returns the first block to read, by pool address. */
  readonly firstOf: (address: string) => number
  /** The last block to read. */
  readonly to: number
  /** Stops the cursors before unreadable logs; `omitted` are the logs that are no longer waited for. */
  hold(turns: Turns, gaps: readonly Gap[]): Promise<{ readonly turns: HeldTurns; readonly omitted: readonly Gap[] }>
}

/**
 * Reads at most the number of remaining logs that one run may read, and postpones each token that has more. `finished`
 * are the tokens that have no more. Tokens with a common pool are finished together: the pool has one cursor, and its
 * trades are stored only for the requested tokens.
 */
async function readOn(
  reader: ChainReader,
  request: TradeRequest,
  { pools, failed, firstOf, to, hold }: TradeSelection,
) {
  const { entities, signal, log } = request
  const groups = toGroups({ contracts: pools, topics: SWAP_TOPICS, firstOf, to })
  const taken = await takeTurns(reader.node, groups, reader.mostPerRun, signal)
  const { trades, gaps } = await readTrades(reader, { logs: taken.logs, pools }, request)
  const { turns, omitted } = await hold(taken, gaps)
  const rows = [...trades, ...toOmittedRows(omitted, pools, entities)]
  if (gaps.length > 0) {
    const reasons = [...new Set(gaps.map(({ reason }) => reason.message))].slice(0, 3)
    log.warn(
      { chain: reader.slug, waited: gaps.length - omitted.length, leftOut: omitted.length, reasons },
      'logs unread',
    )
  }
  const finished: Token[] = []
  for (const { tokens, pools: own } of toPoolGroups(entities, pools)) {
    const unfound = tokens.flatMap(({ contractAddress }) => failed.get(contractAddress) ?? [])
    const unread = own.flatMap(({ address }) => turns.failed.get(address) ?? turns.held.get(address) ?? [])
    const [failure] = [...unfound, ...unread]
    if (failure !== undefined) for (const token of tokens) request.refuse(token, failure)
    else if (own.some(({ address }) => turns.unfinished.has(address))) request.putOff(tokens)
    else for (const token of tokens) finished.push(token)
  }
  if (turns.unfinished.size > 0) request.noteMore()
  return { rows, turns, finished }
}

/** Returns rows without values for logs that are permanently left out, so that the row check counts them. */
function toOmittedRows(
  omitted: readonly Gap[],
  pools: readonly Pool[],
  tokens: readonly Token[],
): Candidate<DexTradeRow>[] {
  const byAddress = new Map(pools.map((pool) => [pool.address, pool]))
  return omitted.flatMap(({ log, reason }) => {
    const pool = byAddress.get(log.address)
    const own = tokens.filter(({ contractAddress }) => [pool?.token, pool?.quote].includes(contractAddress))
    return own.map(({ key }) => ({ ...NO_TRADE, token: key, log_index: log.logIndex, [OMITTED]: [reason.message] }))
  })
}

const NO_TRADE: Omit<Candidate<DexTradeRow>, 'token' | 'log_index'> = {
  ...{ traded_at: null, chain: null, block_number: null, transaction_hash: null, pool: null, exchange: null },
  ...{ taker: null, side: null, amount: null, amount_usd: null, price: null },
}

/**
 * Reads the trades in [from, to) of a range up to the newest final block, or the next part of them. Positions are
 * stored per token, because the next part contains only unfinished tokens. If the node lags behind the range, or
 * behind `now` (Unix milliseconds) if the range ends later, no token is finished.
 */
async function fetchRange(
  reader: ChainReader,
  request: TradeRequest & { readonly range: Range },
  now: number,
): Promise<Candidate<DexTradeRow>[]> {
  const { entities, range, state, signal } = request
  const head = await reader.node.finalized(signal)
  const from = await findBlockAt(reader.node, range.from / 1000, head, signal)
  const to = (await findBlockAt(reader.node, range.to / 1000, head, signal)) - 1
  const lag = toLag(reader.node.rpc, head.timestamp, Math.min(range.to, now))
  if (from > to) {
    if (lag !== undefined) throw lag
    return []
  }
  const { pools, failed } = await findRangePools(reader, request)
  const startCursors = await Promise.all(entities.map((token) => readCursors(state, toRangeName(token, range))))
  const cursors = toCommonCursors(entities, pools, startCursors)
  const firstOf = (address: string) => (cursors.get(address) ?? from - 1) + 1
  const { rows, turns, finished } = await readOn(reader, request, {
    ...{ pools, failed, firstOf, to },
    // Nothing is left out permanently: a range that is not completely read is planned again.
    hold: async (taken, gaps) => ({ turns: holdCursors(taken, gaps), omitted: [] }),
  })
  if (lag !== undefined) for (const token of finished) request.refuse(token, lag)
  else request.noteRead(finished, { from: range.from, to: Math.min(range.to, head.timestamp * 1000) })
  for (const [at, token] of entities.entries()) {
    const own = toPoolsOf([token.contractAddress], pools).flatMap(({ address }) => {
      const cursor = turns.cursors.get(address) ?? cursors.get(address)
      return cursor === undefined ? [] : [[address, cursor] as const]
    })
    if (lag !== undefined || !finished.includes(token)) noteCursors(state, toRangeName(token, range), new Map(own))
    else if (startCursors[at]?.size !== 0) dropCursors(state, toRangeName(token, range))
  }
  return rows
}

/**
 * Returns the cursors of pools for a range. A pool of two tokens has the cursor of the token that is further behind, and
 * none if one of the tokens has none.
 */
function toCommonCursors(tokens: readonly Token[], pools: readonly Pool[], cursors: readonly Cursors[]): Cursors {
  const common = new Map<string, number>()
  for (const pool of pools) {
    const own = tokens.flatMap(({ contractAddress }, at) =>
      contractAddress === pool.token || contractAddress === pool.quote ? [cursors[at]?.get(pool.address)] : [],
    )
    const known = own.filter((cursor) => cursor !== undefined)
    if (known.length > 0 && known.length === own.length) common.set(pool.address, Math.min(...known))
  }
  return common
}

const toRangeName = ({ id }: Token, { from, to }: Range) => `${id}.${from}.${to}`
