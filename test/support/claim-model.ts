import { setImmediate } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { expect } from 'vitest'
import { type Buckets, toBuckets, toTimes, union } from '../../shared/buckets.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import type { HttpClients, HttpRequest } from '../../workers/http/client.ts'
import dexTrades from '../../workers/jobs/dex-trades.ts'
import { runJob } from '../../workers/run/runner.ts'
import { toTestToken } from '../samples.ts'
import { type ChainLog, FACTORIES } from '../upstream/chain.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'
import { rpc } from '../upstream/providers/rpc.ts'
import { FIRST_BLOCK, hashOf, START, swapAt, UNI } from '../upstream/small-chain.ts'
import type { World } from '../upstream/world.ts'
import { SEED } from './cases.ts'
import { noDatabase } from './no-database.ts'
import { createRandom } from './random.ts'
import { silent } from './silent.ts'

/**
 * A model of readings that resume from cursors: slots and ranges of trades in random order, with restarts, lost state,
 * concurrent workers, nodes that lag and a change of the provider. Jobs, providers and ledger are the product's; stores
 * and network are in memory. After each event, every covered hour must have all of its trades.
 */

const USDC = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'
const DAI = '0x6b175474e89094c44da98b954eedeac495271d0f'
const POOLS = [
  { tokens: [UNI, USDC], address: `0x${'1'.repeat(40)}` },
  { tokens: [UNI, DAI], address: `0x${'2'.repeat(40)}` },
  { tokens: [DAI, USDC], address: `0x${'3'.repeat(40)}` },
] as const
const TOKENS = [UNI, DAI].map((contractAddress, at) => ({ ...toTestToken(at + 1, {}), contractAddress }))
const BLOCKS_PER_HOUR = 300
const DAYS = 5

const timeOf = (block: number) => (START + (block - FIRST_BLOCK) * 12) * 1000

/** Each pool has a trade every 10 to 80 minutes. */
function toLogs({ below }: Pick<ReturnType<typeof createRandom>, 'below'>): ChainLog[] {
  const logs: ChainLog[] = []
  for (const { address } of POOLS)
    for (let n = 50 + below(350); n < DAYS * 24 * BLOCKS_PER_HOUR; n += 50 + below(350))
      logs.push(swapAt(n, { address, transactionHash: hashOf(logs.length + 1), logIndex: logs.length }))
  return logs
}

type Random = ReturnType<typeof createRandom>

/** The tables that the job reads and writes, in memory. `failNext` makes the next insert into a table fail once. */
function createTables(now: () => number) {
  const state = new Map<string, { value: string; at: number }>()
  const covered = new Map<number, Buckets[]>()
  const trades = new Set<string>()
  let failing: { table: string; isStored: boolean } | undefined
  const write: Record<string, (row: object) => void> = {
    job_state(row) {
      const { name, value, written_at } = row as { name: string; value: string; written_at: string }
      const at = Date.parse(written_at)
      if (at >= (state.get(name)?.at ?? 0)) state.set(name, { value, at })
    },
    coverage_in(row) {
      const { entity, first, last } = row as Buckets & { entity: number }
      covered.set(entity, union([...(covered.get(entity) ?? []), { first, last }]))
    },
    dex_trades(row) {
      const { token, transaction_hash } = row as { token: number; transaction_hash: string }
      trades.add(`${token} ${transaction_hash}`)
    },
    coverage_notes: () => {},
    history_changes: () => {},
  }
  const read: Record<string, (params: Record<string, unknown>) => object[]> = {
    'job-state': ({ names }) =>
      (names as string[]).flatMap((name) => {
        const row = state.get(name)
        return row === undefined ? [] : [{ name, ...row }]
      }),
    'coverage-missing': ({ from, to, entities }) =>
      (entities as number[]).flatMap((entity) => {
        const had = covered.get(entity)
        if (had === undefined) return []
        const expected = (from as number[]).map((first, at) => ({ first, last: ((to as number[])[at] ?? 0) - 1 }))
        return [{ entity, runs: toMissing(expected, had).map(({ first, last }) => [first, last]) }]
      }),
    'next-change': () => [{ at: now() }],
    'newest-market-caps': () => [],
    'coverage-notes': () => [],
    'failing-texts': () => [],
  }
  const db: Database = {
    ...noDatabase,
    rows: async ({ name, params = {}, schema }) => {
      await setImmediate()
      const answer = read[name]
      if (answer === undefined) throw new Error(`the model has no statement ${name}`)
      return answer(params).map((row) => schema.parse(row)) as never
    },
    command: async () => void (await setImmediate()),
    insert: async ({ table, rows }) => {
      await setImmediate()
      const fails = failing?.table === table ? failing : undefined
      if (fails !== undefined) failing = undefined
      if (fails?.isStored !== false) for (const row of rows) write[table]?.(row)
      if (fails !== undefined) throw new DataError('storage', `killed at ${table}`)
    },
  }
  return {
    ...{ db, covered, trades },
    failNext: (table: string, isStored: boolean) => {
      failing = { table, isStored }
    },
    fixInserts: () => {
      failing = undefined
    },
    loseState: (isLost: (name: string) => boolean) => {
      for (const name of state.keys()) if (isLost(name)) state.delete(name)
    },
  }
}

function toMissing(expected: readonly Buckets[], had: readonly Buckets[]): Buckets[] {
  const isHad = (bucket: number) => had.some(({ first, last }) => first <= bucket && bucket <= last)
  const missing: Buckets[] = []
  for (const { first, last } of expected)
    for (let bucket = first; bucket <= last; bucket += 1)
      if (!isHad(bucket)) missing.push({ first: bucket, last: bucket })
  return union(missing)
}

interface Network {
  /** How long the newest data of the provider lags behind the clock, in milliseconds. */
  lag: number
}

/** Answers requests to a node of the chain, and to Moralis for the same trades. */
function createNetwork(logs: readonly ChainLog[], now: () => number, network: Network): HttpClients {
  const chain = createLoggedChain({
    logs,
    times: new Map([0, 1_000_000].map((n) => [FIRST_BLOCK + n, START + n * 12])),
    pools: POOLS.map(({ tokens, address }) => ({ factory: FACTORIES.uniswapV2, tokens, fee: null, address })),
  })
  const world = { chain: () => chain, assets: [] } as unknown as World
  const seenAt = () => now() - network.lag
  const askNode = async ({ body }: HttpRequest) => {
    const request = {
      method: 'POST',
      path: '/ethereum',
      query: new URLSearchParams(),
      headers: {},
      plan: 'open',
    } as const
    const reply = await rpc.handle({ ...request, body: JSON.stringify(body), now: seenAt() }, world)
    return JSON.parse(reply.body) as unknown
  }
  const askMoralis = ({ path, query = {} }: HttpRequest) => {
    const address = path.split('/')[2]
    const [from, to] = [Date.parse(String(query.fromDate)), Date.parse(String(query.toDate ?? '2100-01-01'))]
    const own = new Set<string>(
      POOLS.flatMap((pool) => (pool.tokens.some((one) => one === address) ? [pool.address] : [])),
    )
    const found = logs
      .filter((log) => own.has(log.address) && timeOf(log.blockNumber) >= from && timeOf(log.blockNumber) <= to)
      .filter((log) => timeOf(log.blockNumber) <= seenAt())
      .sort((a, b) => a.blockNumber - b.blockNumber)
    const [begin, size] = [Number(query.cursor ?? 0), Number(query.limit)]
    const page = found.slice(begin, begin + size)
    return { cursor: begin + size < found.length ? String(begin + size) : null, result: page.map(toMoralisSwap) }
  }
  return {
    open: ({ provider }) => ({
      text: async () => undefined,
      json: async (request) => {
        await setImmediate()
        request.signal.throwIfAborted()
        if (provider === 'moralis') return askMoralis(request)
        return provider === 'rpc-ethereum' ? askNode(request) : { coins: {} }
      },
    }),
  }
}

const toMoralisSwap = ({ transactionHash, blockNumber, address }: ChainLog) => ({
  ...{ transactionHash, transactionType: 'buy', blockNumber, pairAddress: address, walletAddress: address },
  ...{ blockTimestamp: new Date(timeOf(blockNumber)).toISOString(), exchangeName: 'Uniswap v2' },
  ...{ bought: { amount: '1', usdAmount: 1 }, sold: { amount: '1', usdAmount: 1 }, totalValueUsd: 1 },
})

/** Opens the job with one provider: the node, or Moralis if no node is set. */
function openSource(provider: 'node' | 'moralis', random: Random) {
  return parseConfig({
    ...(provider === 'node' ? { RPC_URLS: 'ethereum=http://127.0.0.1:1/rpc' } : { MORALIS_API_KEY: 'key' }),
    RPC_REQUESTS_PER_MINUTE: String(random.pick([20, 60, 6000])),
    MORALIS_UNITS_PER_DAY: String(random.pick([20_000, 400_000])),
    DEX_FIRST_RUN_HOURS: String(random.pick([1, 2, 24])),
  })
}

/** The result of one random order. */
interface OrderResult {
  readonly events: readonly string[]
  /** The number of covered hours of tokens, all of which were checked. */
  readonly covered: number
  /** Hours without a trade, or with some trades missing, that count as covered. Empty if the claims are true. */
  readonly falseClaims: readonly string[]
  /** Hours that are still not covered after all missing ones were requested again. */
  readonly uncovered: number
}

const WANTED = { from: START * 1000 + HOUR_MS, to: START * 1000 + (DAYS - 1) * DAY_MS }

/** Runs random events of a seed, and checks the claims after each of them. */
async function runRandomOrder(seed: number): Promise<OrderResult> {
  const random = createRandom(seed)
  const logs = toLogs(random)
  const clock = { now: WANTED.from + (1 + random.below(20)) * HOUR_MS + random.below(HOUR_MS) }
  const now = () => clock.now
  const network: Network = { lag: 0 }
  const tables = createTables(now)
  const events: string[] = []
  const falseClaims: string[] = []
  let tokens = random.chance(0.5) ? TOKENS : TOKENS.slice(0, 1)
  const http = createNetwork(logs, now, network)
  const sources = new Map(
    (['node', 'moralis'] as const).map((provider) => {
      const config = openSource(provider, random)
      return [provider, { config, collectors: dexTrades.connect({ config, http, now, log: silent, db: tables.db }) }]
    }),
  )
  let provider: 'node' | 'moralis' = random.pick(['node', 'node', 'moralis'])

  async function run(payload: object, handBack?: AbortSignal): Promise<void> {
    const source = sources.get(provider)
    if (source === undefined) throw new Error(`the model has no provider ${provider}`)
    const context = {
      ...{ config: source.config, db: tables.db, log: silent, now },
      redis: { publish: async () => 0, xadd: async () => '' } as unknown as Redis,
      recomputation: { enqueue: async () => {}, close: async () => {} },
      registry: { tokens, daos: [], version: 'model' } as unknown as Registry,
      redact: (text: string) => text,
      ...(handBack === undefined ? {} : { handBack }),
    }
    try {
      await runJob(dexTrades, source.collectors, context, payload)
    } catch (error) {
      if (!(error instanceof DataError) && handBack?.aborted !== true) throw error
      events.push(`  ${error instanceof Error ? error.message.slice(0, 80) : String(error)}`)
    }
  }

  const note = (text: string) => events.push(`${new Date(clock.now).toISOString().slice(5, 16)} ${provider}: ${text}`)
  const toEntities = () => (random.chance(0.25) ? { entities: [random.pick(tokens).id] } : {})
  const toSlot = () => ({ kind: 'slot', slot: Math.floor(clock.now / HOUR_MS) * HOUR_MS, ...toEntities() })
  const toRange = () => {
    const hours = Math.floor((clock.now - WANTED.from) / HOUR_MS)
    const from = WANTED.from + random.below(hours) * HOUR_MS
    const to = Math.min(from + (1 + random.below(24)) * HOUR_MS, Math.ceil(clock.now / HOUR_MS) * HOUR_MS)
    return { kind: 'range', from, to, interval: '1h', ...toEntities() }
  }
  const describe = (payload: Readonly<Record<string, unknown>>) =>
    JSON.stringify(payload, (key, value) =>
      ['slot', 'from', 'to'].includes(key) ? new Date(Number(value)).toISOString().slice(5, 13) : value,
    )
  const runNoted = (payload: Record<string, unknown>, handBack?: AbortSignal) => {
    note(describe(payload))
    return run(payload, handBack)
  }
  /** A worker that stops in the middle of a job. */
  const runStopped = async (payload: Record<string, unknown>) => {
    const stop = new AbortController()
    const steps = random.below(60)
    const stopping = (async () => {
      for (let at = 0; at < steps; at += 1) await setImmediate()
      stop.abort(new DataError('provider_unavailable', 'the worker stops'))
    })()
    await Promise.all([runNoted(payload, stop.signal), stopping])
  }
  const advance = (most: number) => {
    const hours = random.below(most)
    clock.now = Math.min(WANTED.to, clock.now + hours * HOUR_MS + random.below(HOUR_MS))
  }
  const actions: readonly (readonly [number, () => Promise<void> | void])[] = [
    [10, () => runNoted(toSlot())],
    [
      6,
      () => {
        advance(4)
        return runNoted(toSlot())
      },
    ],
    [5, () => runNoted(toRange())],
    [3, () => advance(30)],
    [
      2,
      async () => void (await Promise.all([runNoted(toSlot()), runNoted(random.chance(0.5) ? toSlot() : toRange())])),
    ],
    [2, () => runStopped(random.chance(0.5) ? toSlot() : toRange())],
    [
      2,
      async () => {
        const table = random.pick(['job_state', 'coverage_in', 'dex_trades', 'history_changes'])
        const isStored = random.chance(0.5)
        note(`the worker dies at ${table}, ${isStored ? 'after' : 'before'} the insert`)
        tables.failNext(table, isStored)
        await runNoted(random.chance(0.6) ? toSlot() : toRange())
        tables.fixInserts()
      },
    ],
    [
      1,
      () => {
        const lost = random.pick(['', 'cursors.', 'since.', 'pools.', 'moralis.'])
        note(`state is lost: ${lost}*`)
        tables.loseState((name) => name.startsWith(lost))
      },
    ],
    [
      1,
      () => {
        provider = provider === 'node' ? 'moralis' : 'node'
        network.lag = 0
        note('is the provider now')
      },
    ],
    [
      2,
      () => {
        // Moralis is read again for the last hour, so its trades may be up to an hour late.
        network.lag = random.pick([0, 0, 20, 45, ...(provider === 'node' ? [130, 600] : [])]) * 60_000
        note(`lags by ${network.lag / 60_000} minutes`)
      },
    ],
    [
      1,
      () => {
        tokens = TOKENS
        note('both tokens are in the registry')
      },
    ],
  ]
  const total = actions.reduce((sum, [weight]) => sum + weight, 0)
  const next = () => {
    let at = random.below(total)
    for (const [weight, act] of actions) {
      if (at < weight) return act
      at -= weight
    }
    return () => advance(4)
  }

  const checked = new Set<string>()
  function check(): void {
    for (const { key, contractAddress } of TOKENS) {
      // A pool is found by the search of its first token. No token of the registry is a second one.
      const own = new Set<string>(
        POOLS.flatMap(({ tokens: [one], address }) => (one === contractAddress ? [address] : [])),
      )
      for (const run of tables.covered.get(key) ?? [])
        for (let bucket = run.first; bucket <= run.last; bucket += 1) {
          const name = `${key} ${bucket}`
          if (checked.has(name)) continue
          checked.add(name)
          const { from, to } = toTimes({ first: bucket, last: bucket }, '1h')
          const lost = logs.filter(
            (log) =>
              own.has(log.address) &&
              timeOf(log.blockNumber) >= from &&
              timeOf(log.blockNumber) < to &&
              !tables.trades.has(`${key} ${log.transactionHash}`),
          )
          if (to > clock.now) falseClaims.push(`token ${key}, ${new Date(from).toISOString()}: it is not over yet`)
          if (lost.length > 0)
            falseClaims.push(`token ${key}, ${new Date(from).toISOString()}: ${lost.length} trades are not stored`)
        }
    }
  }

  for (let step = 0; step < 12 && falseClaims.length === 0; step += 1) {
    await next()()
    check()
  }
  network.lag = 0
  clock.now = WANTED.to + 4 * HOUR_MS
  const due = toBuckets(WANTED, '1h')
  const toUncovered = () =>
    tokens.flatMap((token) =>
      toMissing(due === undefined ? [] : [due], tables.covered.get(token.key) ?? []).map((gap) => ({ token, gap })),
    )
  // Twice, because a run of the smallest node limit ends before its range does.
  for (let attempt = 0; attempt < 2 && falseClaims.length === 0; attempt += 1)
    for (const { token, gap } of toUncovered()) {
      const { from, to } = toTimes(gap, '1h')
      for (let at = from; at < to; at += DAY_MS)
        await runNoted({ kind: 'range', from: at, to: Math.min(at + DAY_MS, to), interval: '1h', entities: [token.id] })
      check()
    }
  return { events, covered: checked.size, falseClaims, uncovered: toUncovered().length }
}

/** The first seed: different each day, or the setting of the environment to repeat a run. */
export const CLAIMS_SEED = Number(process.env.CLAIMS_SEED ?? SEED * 10_000)

/** Checks the claims of one order for each seed; `leastCovered` is the least number of covered hours of an order on average. */
export async function expectTrueClaims(seed: number, orders: number, leastCovered = 24): Promise<void> {
  let covered = 0
  for (let at = seed; at < seed + orders; at += 1) {
    const { falseClaims, uncovered, events, covered: ofOrder } = await runRandomOrder(at)
    const repeat = `CLAIMS_SEED=${at} CLAIMS_ORDERS=1 npx vitest run test/unit/claims.test.ts\n${events.join('\n')}`
    expect(falseClaims, repeat).toEqual([])
    expect(uncovered, repeat).toBe(0)
    covered += ofOrder
  }
  expect(covered).toBeGreaterThan(orders * leastCovered)
}
