import type { DexTradeRow } from '../../shared/datasets/dex-trades.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import type { Token } from '../../shared/registry/registry.ts'
import type { Candidate, Provider, ProviderContext, Range } from '../define.ts'
import type { JobState } from '../state.ts'
import { type ChainReader, readTrades, type Stretch } from './dex/chain-reader.ts'
import { DEX_CHAINS } from './dex/exchanges.ts'
import { type Block, createNode, findBlockAt } from './dex/node.ts'
import { findPools, type Pool } from './dex/pools.ts'
import { noteCursors, noteFoundPools, readCursors, readFoundPools } from './dex/progress.ts'
import { createJsonRpc } from './json-rpc.ts'
import type { TradeSource } from './trade-source.ts'

const DAY_MS = 86_400_000
/** Read again on every run, should the node have missed logs the first time. */
const OVERLAP_BLOCKS = 64

/** Whether the trades of a chain are read from its own node: others may then leave it alone. */
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
    const { firstRunHours } = context.config.dex
    return {
      fetchNew: (tokens, slot, state, signal) =>
        eachChain(readers, tokens, context, (reader, own) =>
          fetchNew(reader, own, { slot, since: slot - firstRunHours * 3_600_000 }, state, signal),
        ),
      fetchHistory: async (tokens, range, state, signal) => {
        const rows: Candidate<DexTradeRow>[][] = []
        for (const reader of readers) {
          const own = tokens.filter(({ chain }) => chain === reader.slug)
          if (own.length > 0) rows.push(await fetchRange(reader, own, range, state, signal))
        }
        return rows.flat()
      },
    }
  },
}

function openReaders({ config, http, log }: ProviderContext): ChainReader[] {
  const { urls, batchSize, ...settings } = config.providers.rpc
  const prices = http.open({ provider: 'defillama-coins', ...config.providers.defillamaCoins })
  return Object.entries(DEX_CHAINS).flatMap(([slug, chain]) => {
    const baseUrl = urls[slug]
    if (baseUrl === undefined) return []
    const name = `rpc-${slug}`
    const client = http.open({ provider: name, baseUrl, ...settings })
    return [{ slug, chain, node: createNode(createJsonRpc(name, client, batchSize)), prices, log }]
  })
}

/**
 * Chains do not wait for each other: one whose node fails keeps its state and is read from there on the next run.
 * @throws the first failure when no chain could be read.
 */
async function eachChain(
  readers: readonly ChainReader[],
  tokens: readonly Token[],
  { log }: ProviderContext,
  read: (reader: ChainReader, tokens: readonly Token[]) => Promise<Candidate<DexTradeRow>[]>,
): Promise<Candidate<DexTradeRow>[]> {
  const rows: Candidate<DexTradeRow>[][] = []
  const failures: DataError[] = []
  for (const reader of readers) {
    const own = tokens.filter(({ chain }) => chain === reader.slug)
    if (own.length === 0) continue
    try {
      rows.push(await read(reader, own))
    } catch (error) {
      if (!(error instanceof DataError)) throw error
      failures.push(error)
      log.warn({ chain: reader.slug, reason: toReason(error) }, 'chain could not be read')
    }
  }
  const [first] = failures
  if (rows.length === 0 && first !== undefined) throw first
  return rows.flat()
}

/** From each pool's last block to the newest final one; a pool that was never read starts at `since`. */
async function fetchNew(
  reader: ChainReader,
  tokens: readonly Token[],
  times: { slot: number; since: number },
  state: JobState,
  signal: AbortSignal,
): Promise<Candidate<DexTradeRow>[]> {
  const head = await reader.node.finalized(signal)
  const pools = await refreshPools(reader, tokens, times.slot, state, signal)
  const known = await readCursors(state, reader.slug)
  const isNew = pools.some(({ address }) => !known.has(address))
  const start = isNew ? await findBlockAt(reader.node, times.since / 1000, head, signal) : head.number
  const stretches = toStretches(pools, known, start, head)
  const rows = await readTrades(reader, stretches, tokens, signal)
  const read = stretches.flatMap((stretch) => stretch.pools.map(({ address }) => [address, stretch.to] as const))
  noteCursors(state, reader.slug, new Map([...known, ...read]))
  return rows
}

/** Pools that were read up to the same block go on together. A node that lags behind the cursor has nothing new. */
function toStretches(
  pools: readonly Pool[],
  known: ReadonlyMap<string, number>,
  start: number,
  head: Block,
): Stretch[] {
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
  tokens: readonly Token[],
  slot: number,
  state: JobState,
  signal: AbortSignal,
): Promise<readonly Pool[]> {
  const found = await readFoundPools(state, reader.slug)
  const addresses = tokens.map(({ contractAddress }) => contractAddress)
  const isComplete = addresses.every((address) => found?.tokens.includes(address))
  if (found !== undefined && isComplete && slot - found.foundAt < DAY_MS) return toOwnPools(found.pools, addresses)
  const pools = await findPools(reader.node.rpc, reader.chain, addresses, signal)
  noteFoundPools(state, reader.slug, { foundAt: slot, tokens: addresses, pools })
  return pools
}

/** The trades in [from, to) of a range, as far as its blocks are final. */
async function fetchRange(
  reader: ChainReader,
  tokens: readonly Token[],
  range: Range,
  state: JobState,
  signal: AbortSignal,
): Promise<Candidate<DexTradeRow>[]> {
  const head = await reader.node.finalized(signal)
  const from = await findBlockAt(reader.node, range.from / 1000, head, signal)
  const to = (await findBlockAt(reader.node, range.to / 1000, head, signal)) - 1
  if (from > to) return []
  const addresses = tokens.map(({ contractAddress }) => contractAddress)
  const found = await readFoundPools(state, reader.slug)
  const unknown = addresses.filter((address) => !found?.tokens.includes(address))
  const more = unknown.length === 0 ? [] : await findPools(reader.node.rpc, reader.chain, unknown, signal)
  const pools = [...toOwnPools(found?.pools ?? [], addresses), ...more]
  return readTrades(reader, [{ pools, from, to }], tokens, signal)
}

function toOwnPools(pools: readonly Pool[], tokens: readonly string[]): Pool[] {
  return pools.filter(({ token, quote }) => tokens.includes(token) || tokens.includes(quote))
}
