import type { DexTradeRow } from '../../../shared/datasets/dex-trades.ts'
import { DataError, toReason } from '../../../shared/errors.ts'
import { DAY_MS } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate, Provider, ProviderContext, Range } from '../../job/define-job.ts'
import type { NewTradeRequest, TradeRequest, TradeSource } from '../contracts/trades.ts'
import { openDefiLlamaCoins } from '../defillama/client.ts'
import { type ChainReader, readTrades } from './dex/chain-reader.ts'
import { noteCursors, noteFoundPools, readCursors, readFoundPools } from './dex/chain-state.ts'
import { DEX_CHAINS } from './dex/exchanges.ts'
import { findBlockAt } from './dex/find-block.ts'
import { type Block, createNode } from './dex/node.ts'
import type { BlockRange } from './dex/pool-logs.ts'
import { findPools, type Pool } from './dex/pools.ts'
import { createJsonRpc } from './rpc/json-rpc.ts'

/** Read again on every run, should the node have missed logs the first time. */
const OVERLAP_BLOCKS = 64
/**
 * Blocks are final after a quarter of an hour. When a node's final block is older than this, its trades are not up to
 * date with the slot.
 */
const LONGEST_LAG_MS = 3_600_000

/** Whether the trades of a chain are read from its own node, so that other providers leave it alone. */
export function isReadFromNode(chain: string, urls: Readonly<Record<string, string>>): boolean {
  return chain in urls && chain in DEX_CHAINS
}

/**
 * Trades from the Swap logs of pools, by the JSON-RPC node of each chain that RPC_URLS names (providers document, section
 * 6). Only final blocks are read, so that a stored trade is never taken back.
 */
export const ethereum: Provider<TradeSource, Token> = {
  name: 'ethereum',
  covers: (token, config) => isReadFromNode(token.chain, config.providers.rpc.urls),
  connect(context) {
    const readers = openReaders(context)
    const firstRunMs = context.config.dex.firstRunHours * 3_600_000
    return {
      fetchNew: (request) => eachChain(readers, request, (reader, own) => fetchNew(reader, own, firstRunMs)),
      fetchHistory: async (request) => {
        const rows: Candidate<DexTradeRow>[][] = []
        for (const [reader, entities] of toOwn(readers, request.entities)) {
          rows.push(await fetchRange(reader, { ...request, entities }))
        }
        return rows.flat()
      },
    }
  },
}

function openReaders(context: ProviderContext): ChainReader[] {
  const { config, http } = context
  const { urls, batchSize, ...settings } = config.providers.rpc
  const prices = openDefiLlamaCoins(context)
  return Object.entries(DEX_CHAINS).flatMap(([slug, chain]) => {
    const baseUrl = urls[slug]
    if (baseUrl === undefined) return []
    const name = `rpc-${slug}`
    const client = http.open({ provider: name, baseUrl, ...settings })
    return [{ slug, chain, node: createNode(createJsonRpc(name, client, batchSize)), prices }]
  })
}

/** The chains that have any of the tokens, each with its own. */
function toOwn(readers: readonly ChainReader[], tokens: readonly Token[]): [ChainReader, Token[]][] {
  return readers.flatMap((reader) => {
    const own = tokens.filter(({ chain }) => chain === reader.slug)
    return own.length === 0 ? [] : [[reader, own] as [ChainReader, Token[]]]
  })
}

/**
 * Reads the chains one after the other. A chain whose node fails stops no other: its cursors stay, and the next run
 * goes on from them.
 * @throws the first failure when no chain could be read.
 */
async function eachChain<R extends TradeRequest>(
  readers: readonly ChainReader[],
  request: R,
  read: (reader: ChainReader, request: R) => Promise<Candidate<DexTradeRow>[]>,
): Promise<Candidate<DexTradeRow>[]> {
  const rows: Candidate<DexTradeRow>[][] = []
  const failures: DataError[] = []
  for (const [reader, entities] of toOwn(readers, request.entities)) {
    try {
      rows.push(await read(reader, { ...request, entities }))
    } catch (error) {
      if (!(error instanceof DataError)) throw error
      failures.push(error)
      request.log.warn({ chain: reader.slug, reason: toReason(error) }, 'chain could not be read')
    }
  }
  const [first] = failures
  if (rows.length === 0 && first !== undefined) throw first
  return rows.flat()
}

/**
 * Trades from each pool's cursor to the newest final block. A pool without a cursor starts `firstRunMs` before the
 * slot.
 */
async function fetchNew(
  reader: ChainReader,
  request: NewTradeRequest,
  firstRunMs: number,
): Promise<Candidate<DexTradeRow>[]> {
  const { state, slot, signal } = request
  const head = await reader.node.finalized(signal)
  const pools = await refreshPools(reader, request)
  const known = await readCursors(state, reader.slug)
  const isNew = pools.some(({ address }) => !known.has(address))
  const since = (slot - firstRunMs) / 1000
  const start = isNew ? await findBlockAt(reader.node, since, head, signal) : head.number
  const ranges = toBlockRanges(pools, known, start, head)
  const rows = await readTrades(reader, ranges, request)
  const read = ranges.flatMap((range) => range.pools.map(({ address }) => [address, range.to] as const))
  noteCursors(state, reader.slug, new Map([...known, ...read]))
  if (slot - head.timestamp * 1000 <= LONGEST_LAG_MS) request.noteRead(request.entities)
  else
    request.log.warn({ chain: reader.slug, block: head.number }, 'the node lags behind: its tokens are not up to date')
  return rows
}

/** One block range for all pools with the same cursor. A node that is behind a pool's cursor has nothing new for it. */
function toBlockRanges(
  pools: readonly Pool[],
  known: ReadonlyMap<string, number>,
  start: number,
  head: Block,
): BlockRange[] {
  const byFirst = new Map<number, Pool[]>()
  for (const pool of pools) {
    const cursor = known.get(pool.address)
    if (cursor !== undefined && cursor >= head.number) continue
    const first = cursor === undefined ? start : Math.max(0, cursor + 1 - OVERLAP_BLOCKS)
    byFirst.set(first, [...(byFirst.get(first) ?? []), pool])
  }
  return [...byFirst].map(([from, own]) => ({ pools: own, from, to: head.number }))
}

/** The pools as they were found, searched again once a day and whenever a token is new. */
async function refreshPools(
  reader: ChainReader,
  { entities, slot, state, signal }: NewTradeRequest,
): Promise<readonly Pool[]> {
  const found = await readFoundPools(state, reader.slug)
  const tokens = entities.map(({ contractAddress }) => contractAddress)
  const isComplete = tokens.every((address) => found?.tokens.includes(address))
  if (found !== undefined && isComplete && slot - found.foundAt < DAY_MS) return toPoolsOf(tokens, found.pools)
  const pools = await findPools(reader.node.rpc, reader.chain, tokens, signal)
  noteFoundPools(state, reader.slug, { foundAt: slot, tokens, pools })
  return pools
}

/** The trades in [from, to) of a range, as far as its blocks are final. */
async function fetchRange(
  reader: ChainReader,
  request: TradeRequest & { readonly range: Range },
): Promise<Candidate<DexTradeRow>[]> {
  const { entities, range, state, signal } = request
  const head = await reader.node.finalized(signal)
  const from = await findBlockAt(reader.node, range.from / 1000, head, signal)
  const to = (await findBlockAt(reader.node, range.to / 1000, head, signal)) - 1
  if (from > to) return []
  const tokens = entities.map(({ contractAddress }) => contractAddress)
  const found = await readFoundPools(state, reader.slug)
  const unknown = tokens.filter((address) => !found?.tokens.includes(address))
  const more = unknown.length === 0 ? [] : await findPools(reader.node.rpc, reader.chain, unknown, signal)
  return readTrades(reader, [{ pools: [...toPoolsOf(tokens, found?.pools ?? []), ...more], from, to }], request)
}

function toPoolsOf(tokens: readonly string[], pools: readonly Pool[]): Pool[] {
  return pools.filter(({ token, quote }) => tokens.includes(token) || tokens.includes(quote))
}
