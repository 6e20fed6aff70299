import { setImmediate } from 'node:timers/promises'
import { toBuckets, toTimes } from '../../shared/buckets.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { HttpClients, HttpRequest } from '../../workers/http/client.ts'
import dexTrades from '../../workers/jobs/dex-trades.ts'
import { toTestToken } from '../samples.ts'
import { type ChainLog, FACTORIES } from '../upstream/chain.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'
import { FIRST_BLOCK, hashOf, START, swapAt, UNI } from '../upstream/small-chain.ts'
import {
  CLAIM_DAYS,
  type ClaimClock,
  type ClaimProvider,
  type ClaimSubject,
  type ClaimWorld,
  type Random,
  toCoveredBuckets,
  WANTED,
} from './claim-model.ts'
import { createClaimNode } from './claim-node.ts'
import { type ClaimTables, toMissing } from './claim-tables.ts'

const USDC = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'
const DAI = '0x6b175474e89094c44da98b954eedeac495271d0f'
const POOLS = [
  { tokens: [UNI, USDC], address: `0x${'1'.repeat(40)}` },
  { tokens: [UNI, DAI], address: `0x${'2'.repeat(40)}` },
  { tokens: [DAI, USDC], address: `0x${'3'.repeat(40)}` },
] as const
const TOKENS = [UNI, DAI].map((contractAddress, at) => ({ ...toTestToken(at + 1, {}), contractAddress }))
const BLOCKS_PER_HOUR = 300

const timeOf = (block: number) => (START + (block - FIRST_BLOCK) * 12) * 1000

/** Trades of tokens: every covered hour of a token must have all of its trades. */
export const tradeClaims: ClaimSubject = {
  job: dexTrades,
  providers: ['node', 'node', 'moralis'],
  states: ['', 'cursors.', 'since.', 'pools.', 'moralis.'],
  written: ['job_state', 'coverage_in', 'dex_trades', 'history_changes'],
  readsRanges: true,
  attempts: 2,
  eventsOf: {
    dex_trades(row) {
      const { token, transaction_hash } = row as { token: number; transaction_hash: string }
      return [`${token} ${transaction_hash}`]
    },
  },
  open: openTrades,
}

function openTrades(random: Random): ClaimWorld {
  const logs = toLogs(random)
  const checked = new Set<string>()
  return {
    registries: [toRegistry(TOKENS.slice(0, 1)), toRegistry(TOKENS)],
    openConfig,
    openNetwork: (clock) => createNetwork(logs, clock),
    // Moralis is read again for the last hour, so its trades may be up to an hour late.
    lags: { node: [0, 0, 20, 45, 130, 600], moralis: [0, 0, 20, 45] },
    check(tables, now) {
      const wrong: string[] = []
      const before = checked.size
      for (const { key, contractAddress } of TOKENS) {
        // A pool is found by the search of its first token. No token of the registry is a second one.
        const own = new Set<string>(
          POOLS.flatMap(({ tokens: [one], address }) => (one === contractAddress ? [address] : [])),
        )
        for (const { bucket, from, to } of toCoveredBuckets(tables.covered.get(key) ?? [], '1h')) {
          const name = `${key} ${bucket}`
          if (checked.has(name)) continue
          checked.add(name)
          const lost = logs.filter(
            (log) =>
              own.has(log.address) &&
              timeOf(log.blockNumber) >= from &&
              timeOf(log.blockNumber) < to &&
              !tables.stored.has(`${key} ${log.transactionHash}`),
          )
          if (to > now) wrong.push(`token ${key}, ${new Date(from).toISOString()}: it is not over yet`)
          if (lost.length > 0)
            wrong.push(`token ${key}, ${new Date(from).toISOString()}: ${lost.length} trades are not stored`)
        }
      }
      return { claims: checked.size - before, wrong }
    },
    toRemaining,
  }
}

const toRegistry = (tokens: typeof TOKENS) => ({ tokens, daos: [], version: 'model' }) as unknown as Registry

/** Each pool has a trade every 10 to 80 minutes. */
function toLogs({ below }: Pick<Random, 'below'>): ChainLog[] {
  const logs: ChainLog[] = []
  for (const { address } of POOLS)
    for (let n = 50 + below(350); n < CLAIM_DAYS * 24 * BLOCKS_PER_HOUR; n += 50 + below(350))
      logs.push(swapAt(n, { address, transactionHash: hashOf(logs.length + 1), logIndex: logs.length }))
  return logs
}

/** Ranges of a day in which hours are missing. */
function toRemaining(tables: ClaimTables, { tokens }: Registry) {
  const due = toBuckets(WANTED, '1h')
  const gaps = tokens.flatMap(({ id, key }) =>
    toMissing(due === undefined ? [] : [due], tables.covered.get(key) ?? []).map((gap) => ({ id, gap })),
  )
  return gaps.flatMap(({ id, gap }) => {
    const { from, to } = toTimes(gap, '1h')
    return Array.from({ length: Math.ceil((to - from) / DAY_MS) }, (_, day) => {
      const at = from + day * DAY_MS
      return { kind: 'range', from: at, to: Math.min(at + DAY_MS, to), interval: '1h', entities: [id] }
    })
  })
}

/** Opens the job with one provider: the node, or Moralis if no node is set. */
function openConfig(provider: ClaimProvider, random: Random) {
  return parseConfig({
    ...(provider === 'node' ? { RPC_URLS: 'ethereum=http://127.0.0.1:1/rpc' } : { MORALIS_API_KEY: 'key' }),
    RPC_REQUESTS_PER_MINUTE: String(random.pick([20, 60, 6000])),
    MORALIS_UNITS_PER_DAY: String(random.pick([20_000, 400_000])),
    DEX_FIRST_RUN_HOURS: String(random.pick([1, 2, 24])),
  })
}

/** Answers requests to a node of the chain, and to Moralis for the same trades. */
function createNetwork(logs: readonly ChainLog[], clock: ClaimClock): HttpClients {
  const chain = createLoggedChain({
    logs,
    times: new Map([0, 1_000_000].map((n) => [FIRST_BLOCK + n, START + n * 12])),
    pools: POOLS.map(({ tokens, address }) => ({ factory: FACTORIES.uniswapV2, tokens, fee: null, address })),
  })
  const askMoralis = ({ path, query = {} }: HttpRequest) => {
    const address = path.split('/')[2]
    const [from, to] = [Date.parse(String(query.fromDate)), Date.parse(String(query.toDate ?? '2100-01-01'))]
    const own = new Set<string>(
      POOLS.flatMap((pool) => (pool.tokens.some((one) => one === address) ? [pool.address] : [])),
    )
    const found = logs
      .filter((log) => own.has(log.address) && timeOf(log.blockNumber) >= from && timeOf(log.blockNumber) <= to)
      .filter((log) => timeOf(log.blockNumber) <= clock.now - clock.lag)
      .sort((a, b) => a.blockNumber - b.blockNumber)
    const [begin, size] = [Number(query.cursor ?? 0), Number(query.limit)]
    const page = found.slice(begin, begin + size)
    return { cursor: begin + size < found.length ? String(begin + size) : null, result: page.map(toMoralisSwap) }
  }
  const node = createClaimNode(chain, clock)
  return {
    open: (settings) => {
      if (settings.provider !== 'moralis') return node.open(settings)
      return {
        text: async () => undefined,
        json: async (request) => {
          await setImmediate()
          request.signal.throwIfAborted()
          return askMoralis(request)
        },
      }
    },
  }
}

const toMoralisSwap = ({ transactionHash, blockNumber, address }: ChainLog) => ({
  ...{ transactionHash, transactionType: 'buy', blockNumber, pairAddress: address, walletAddress: address },
  ...{ blockTimestamp: new Date(timeOf(blockNumber)).toISOString(), exchangeName: 'Uniswap v2' },
  ...{ bought: { amount: '1', usdAmount: 1 }, sold: { amount: '1', usdAmount: 1 }, totalValueUsd: 1 },
})
