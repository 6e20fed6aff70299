import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import dexTrades from '../../workers/jobs/dex-trades.ts'
import { type JobContext, runJob } from '../../workers/run/runner.ts'
import { createDexPipeline, dump, readTrades } from '../support/dex-pipeline.ts'
import { type Chain, FACTORIES } from '../upstream/chain.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'
import { FIRST_BLOCK, hashOf, nowAt, POOL, START, swapAt, toChain, UNI, WETH } from '../upstream/small-chain.ts'

const HOUR = 3_600_000
const BLOCKS_A_DAY = 7_200

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface RecordedRequest {
  readonly from: number
  readonly to: number
  readonly pools: ReadonlySet<string>
}

/** The same chain, and the blocks that were requested from it. */
function watch(chain: Chain): { chain: Chain; requests: RecordedRequest[] } {
  const requests: RecordedRequest[] = []
  const logs: Chain['logs'] = (from, to, pools) => {
    requests.push({ from, to, pools })
    return chain.logs(from, to, pools)
  }
  return { chain: { ...chain, logs }, requests }
}

/** How often the busiest block of one pool was requested. */
function countMaxRequests(requests: readonly RecordedRequest[], pool: string): number {
  const times = new Map<number, number>()
  for (const { from, to, pools } of requests) {
    if (!pools.has(pool)) continue
    for (let block = from; block <= to; block += 1) times.set(block, (times.get(block) ?? 0) + 1)
  }
  return [...times.values()].reduce((a, b) => Math.max(a, b), 0)
}

/** A pipeline with chunks of `most` logs and pages, and the rows of each insert. */
async function start(chain: Chain, now: number, most: number) {
  const run = await createDexPipeline({ registry: loadRegistry(), now, chains: { ethereum: chain } })
  closers.push(run.close)
  const { providers } = run.config
  // The first client to open sets the rate limit, which is high here.
  dexTrades.connect(run.context)
  const rpc = { ...providers.rpc, requestsPerMinute: most }
  const config = { ...run.config, providers: { ...providers, rpc } }
  const inserts: number[] = []
  const stops = new Map<string, () => void>()
  const db: Database = {
    ...run.context.db,
    insert: async (insert) => {
      stops.get(insert.table)?.()
      if (insert.table === 'dex_trades') inserts.push(insert.rows.length)
      return run.context.db.insert(insert)
    },
  }
  const context = { ...run.context, config, db }
  const collectors = dexTrades.connect(context)
  const runJobOf = (payload: object, more: Partial<JobContext> = {}) =>
    runJob(dexTrades, collectors, { ...context, ...more }, payload)
  const toIds = (symbols: readonly string[]) =>
    run.registry.tokens.filter(({ symbol }) => symbols.includes(symbol)).map(({ id }) => id)
  return {
    ...run,
    inserts,
    stops,
    runSlot: (more?: Partial<JobContext>, symbols?: readonly string[]) => {
      const entities = symbols === undefined ? {} : { entities: toIds(symbols) }
      return runJobOf({ kind: 'slot', slot: Math.floor(run.clock.now / HOUR) * HOUR, ...entities }, more)
    },
    runRange: (from: number, to: number, symbols: readonly string[], more?: Partial<JobContext>) => {
      return runJobOf({ kind: 'range', from, to, interval: '1h', entities: toIds(symbols) }, more)
    },
  }
}

const AAVE = '0x7fc66500c84a76ad7e9c93437bfc5ac33e2ddae9'
const QUIET_POOL = `0x${'6'.repeat(40)}`
const END = 5 * BLOCKS_A_DAY
const steps = (every: number) => Array.from({ length: Math.floor(END / every) }, (_, at) => (at + 1) * every)
/** UNI is traded every four minutes, AAVE rarely. */
const uniTrades = steps(20)
const aaveTrades = steps(600)

function toTwoPools(): Chain {
  const quiet = (n: number) => swapAt(n, { address: QUIET_POOL, transactionHash: hashOf(1_000_000 + n), logIndex: 7 })
  return createLoggedChain({
    logs: [...uniTrades.map((n) => swapAt(n)), ...aaveTrades.map(quiet)],
    times: new Map([0, 1_000_000].map((n) => [FIRST_BLOCK + n, START + n * 12])),
    pools: [
      { factory: FACTORIES.uniswapV2, tokens: [UNI, WETH], fee: null, address: POOL },
      { factory: FACTORIES.uniswapV2, tokens: [AAVE, WETH], fee: null, address: QUIET_POOL },
    ],
  })
}

/** Calls the function at the n-th time. */
function onTime(n: number, act: () => void): () => void {
  let times = 0
  return () => {
    times += 1
    if (times === n) act()
  }
}

describe('catch-up of trades after five days without a run', () => {
  it('runs in chunks, and resumes when the job is killed or returned', async () => {
    const { chain, requests } = watch(toTwoPools())
    const run = await start(chain, nowAt(100), 200)
    await run.runSlot()
    expect(await readTrades(run)).toHaveLength(1)
    run.clock.now = nowAt(END + 64)

    // Killed after the rows of the fourth chunk are stored, before its progress is stored.
    run.stops.set(
      'job_state',
      onTime(4, () => {
        throw new DataError('storage', 'killed')
      }),
    )
    await expect(run.runSlot()).rejects.toThrow('killed')
    run.stops.clear()
    const blocksOf = async (pool: string) =>
      (await readTrades(run)).flatMap((trade) => (trade.pool === pool ? trade.block_number - FIRST_BLOCK : []))
    expect(await blocksOf(QUIET_POOL)).toEqual(aaveTrades)
    const half = (await blocksOf(POOL)).length
    expect(half).toBeGreaterThan(300)
    expect(half).toBeLessThan(1_000)

    const handBack = new AbortController()
    run.stops.set(
      'dex_trades',
      onTime(3, () => handBack.abort(new Error('handed back'))),
    )
    await expect(run.runSlot({ handBack: handBack.signal })).rejects.toThrow()
    run.stops.clear()
    expect((await blocksOf(POOL)).length).toBeLessThan(1_500)

    await run.runSlot()
    expect(await blocksOf(POOL)).toEqual(uniTrades)
    expect(await blocksOf(QUIET_POOL)).toEqual(aaveTrades)
    expect(run.inserts.every((rows) => rows <= 200)).toBe(true)
    expect(run.inserts.length).toBeGreaterThan(9)
    // Blocks of the chunks that the killed and the returned job had read, and blocks that were new at the end of the last run.
    expect(run.inserts.reduce((a, b) => a + b)).toBeLessThan(uniTrades.length + aaveTrades.length + 500)
    expect(countMaxRequests(requests, POOL)).toBeLessThanOrEqual(3)
    expect(countMaxRequests(requests, QUIET_POOL)).toBeLessThanOrEqual(3)
  })

  it('stores the same rows and aggregates as a single read', async () => {
    const full = await start(toTwoPools(), nowAt(END + 64), 40_000)
    await full.runRange(START * 1000, nowAt(END), ['UNI', 'AAVE'])
    const inBatches = await start(toTwoPools(), nowAt(END + 64), 150)
    await inBatches.runRange(START * 1000, nowAt(END), ['UNI', 'AAVE'])
    expect(full.inserts).toHaveLength(1)
    expect(inBatches.inserts.length).toBeGreaterThan(12)
    expect(await dump(inBatches)).toBe(await dump(full))
  })

  it('resumes a range where it stopped, and deletes its progress at the end', async () => {
    const { chain, requests } = watch(toTwoPools())
    const run = await start(chain, nowAt(END + 64), 200)
    const range = [START * 1000, nowAt(END - 1), ['UNI', 'AAVE']] as const
    run.stops.set(
      'job_state',
      onTime(5, () => {
        throw new DataError('storage', 'killed')
      }),
    )
    await expect(run.runRange(...range)).rejects.toThrow('killed')
    run.stops.clear()
    await run.runRange(...range)
    const trades = await readTrades(run)
    expect(trades).toHaveLength(uniTrades.length + aaveTrades.length - 2)
    expect(countMaxRequests(requests, POOL)).toBeLessThanOrEqual(3)
    const sql = "SELECT name FROM job_state FINAL WHERE job = 'dex-trades' AND value != '' AND name LIKE 'cursors.%'"
    expect(await run.database.db.rows({ name: 'left', sql, schema: z.object({ name: z.string() }) })).toEqual([])
    await run.runRange(...range)
    expect(await readTrades(run)).toEqual(trades)
  })
})

describe('run for some tokens only', () => {
  it('keeps the known pools of other tokens, and loses none of their trades', async () => {
    const run = await start(toTwoPools(), nowAt(1_000), 10_000)
    const tokens = run.registry.tokens.filter(({ chain, live }) => live && chain === 'ethereum')
    // A search requests two dozen pools per token from the factories, a hundred per request.
    const search = (tokens.length * 24) / 100
    await run.runSlot()
    run.clock.now = nowAt(2_000)
    await run.runSlot({}, ['AAVE'])
    run.clock.now = nowAt(5_000)
    run.upstream.requests.clear()
    await run.runSlot()
    expect(run.upstream.requests.count('rpc')).toBeLessThan(search)
    const blocks = (await readTrades(run)).map((trade) => trade.block_number - FIRST_BLOCK)
    const read = [...uniTrades, ...aaveTrades].filter((block) => block <= 5_000 - 64).sort((a, b) => a - b)
    expect(blocks).toEqual(read)
    // A day later the pools are searched again, also those of other tokens.
    run.clock.now = nowAt(5_000 + BLOCKS_A_DAY)
    await run.runSlot({}, ['AAVE'])
    run.upstream.requests.clear()
    await run.runSlot()
    expect(run.upstream.requests.count('rpc')).toBeLessThan(search)
    expect(await readTrades(run)).toHaveLength(
      [...uniTrades, ...aaveTrades].filter((block) => block <= 5_000 + BLOCKS_A_DAY - 64).length,
    )
  })
})

describe('pool that opened while no process ran', () => {
  it.each([
    ['the run that finds it', []],
    ['a later run, as the one that finds it is about another token', ['UNI']],
  ])('has all trades since the last search, in %s', async (_, first) => {
    const chain = toTwoPools()
    let isOpen = false
    const pool: Chain['pool'] = (question) => {
      const found = chain.pool(question)
      return found === QUIET_POOL && !isOpen ? null : found
    }
    const run = await start({ ...chain, pool }, nowAt(1_000), 10_000)
    await run.runSlot()
    isOpen = true
    run.clock.now = nowAt(END - 1_000)
    if (first.length > 0) await run.runSlot({}, first)
    run.clock.now = nowAt(END + 64)
    await run.runSlot()
    const quiet = (await readTrades(run)).filter((trade) => trade.pool === QUIET_POOL)
    const opened = aaveTrades.filter((block) => block > 1_000)
    expect(quiet.map((trade) => trade.block_number - FIRST_BLOCK)).toEqual(opened)
  })
})

describe('pool with far more trades than the others', () => {
  it('does not delay the others', async () => {
    const busy = Array.from({ length: 4_000 }, (_, n) => swapAt(n + 1))
    const quiet = [swapAt(3_990, { address: QUIET_POOL, transactionHash: hashOf(9_999_999), logIndex: 7 })]
    const chain = createLoggedChain({
      logs: [...busy, ...quiet],
      times: new Map([0, 1_000_000].map((n) => [FIRST_BLOCK + n, START + n * 12])),
      pools: [
        { factory: FACTORIES.uniswapV2, tokens: [UNI, WETH], fee: null, address: POOL },
        { factory: FACTORIES.uniswapV2, tokens: [AAVE, WETH], fee: null, address: QUIET_POOL },
      ],
    })
    const run = await start(chain, nowAt(4_064), 100)
    const handBack = new AbortController()
    run.stops.set(
      'dex_trades',
      onTime(4, () => handBack.abort(new Error('handed back'))),
    )
    await expect(run.runSlot({ handBack: handBack.signal })).rejects.toThrow()
    const pools = (await readTrades(run)).map(({ pool }) => pool)
    expect(pools).toContain(QUIET_POOL)
    expect(pools.length).toBeLessThan(500)
  })

  it('is read even if one block exceeds a chunk', async () => {
    const crowd = Array.from({ length: 90 }, (_, at) => swapAt(50, { logIndex: at, transactionHash: hashOf(at + 1) }))
    const run = await start(toChain([swapAt(10), ...crowd, swapAt(60)]), nowAt(1_000), 20)
    await run.runSlot()
    expect(await readTrades(run)).toHaveLength(92)
  })
})
