import { afterEach, describe, expect, it } from 'vitest'
import { toId } from '../../shared/ids.ts'
import { createDexPipeline, readTrades } from '../support/dex-pipeline.ts'
import type { PipelineOptions } from '../support/pipeline.ts'
import type { Chain, NodeHabits } from '../upstream/chain.ts'
import { toRpcLog } from '../upstream/providers/rpc-logs.ts'
import { hashOf, nowAt, swapAt, toChain, UNI } from '../upstream/small-chain.ts'

const BLOCKS_A_DAY = 7_200
const UNISWAP = toId('token', 'ethereum', UNI)

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(options: PipelineOptions) {
  const run = await createDexPipeline(options)
  closers.push(run.close)
  return { ...run, hashes: async () => (await readTrades(run)).map(({ transaction_hash }) => transaction_hash) }
}

const SWAPS = [10, 900, 910].map((n) => swapAt(n))
const startWith = (habits: NodeHabits, chain: Chain = toChain(SWAPS, { habits })) =>
  start({ now: nowAt(1_000), chains: { ethereum: chain } })

/** The result of a run that must retry only the traded token. */
const waiting = (reason: RegExp) => ({ entities: [UNISWAP], message: expect.stringMatching(reason) })

describe('node with unusual logs', () => {
  it.each<[string, NodeHabits]>([
    ['zero as the time of its logs', { logTimes: 'zero' }],
    ['no transaction by its hash', { indexing: (hash) => (hash === hashOf(900) ? 'null' : undefined) }],
    ['that it builds its index', { indexing: (hash) => (hash === hashOf(900) ? 'refusal' : undefined) }],
    ['no sender', { indexing: () => 'no sender' }],
    ['at most three calls at once', { mostCalls: 3, logTimes: false }],
  ])('returns the same trades as a healthy node: %s', async (_, habits) => {
    const healthy = await startWith({})
    await healthy.runSlot()
    const run = await startWith(habits)
    expect(await run.runSlot()).toMatchObject({ rows: 3, rejected: 0 })
    expect(await readTrades(run)).toEqual(await readTrades(healthy))
    const requests = run.upstream.requests.all().filter(({ provider }) => provider === 'defillama-coins')
    expect(requests.length).toBeLessThan(10)
  })
})

it('a swap that the node returns twice is stored as one trade', async () => {
  const run = await startWith({}, toChain([...SWAPS, swapAt(900)]))
  expect(await run.runSlot()).toMatchObject({ rows: 3 })
  expect(await run.hashes()).toEqual([hashOf(10), hashOf(900), hashOf(910)])
})

describe('trade without a known sender', () => {
  it('is retried, and does not delay other trades', async () => {
    let isLacking = true
    const run = await startWith({ lacksTransaction: (hash) => isLacking && hash === hashOf(900) })
    await expect(run.runSlot()).rejects.toMatchObject(waiting(/1 of the logs.*does not have transaction/))
    expect(await run.hashes()).toEqual([hashOf(10), hashOf(910)])
    // Its pool is read again from there, wherever the chain's head is.
    run.clock.now = nowAt(3_000)
    await expect(run.runSlot()).rejects.toMatchObject(waiting(/does not have transaction/))
    isLacking = false
    await run.runSlot()
    expect(await run.hashes()).toEqual([hashOf(10), hashOf(900), hashOf(910)])
  })

  it('is left out and counted after a day, and nothing waits any more', async () => {
    const run = await startWith({ lacksTransaction: (hash) => hash === hashOf(900) })
    await expect(run.runSlot()).rejects.toMatchObject(waiting(/does not have transaction/))
    run.clock.now = nowAt(1_000 + BLOCKS_A_DAY + 600)
    expect(await run.runSlot()).toMatchObject({ rejected: 1 })
    run.clock.now = nowAt(1_000 + BLOCKS_A_DAY + 1_200)
    expect(await run.runSlot()).toMatchObject({ rejected: 0 })
    expect(await run.hashes()).toEqual([hashOf(10), hashOf(910)])
  })

  it('keeps its range uncovered, while other trades are stored', async () => {
    let isLacking = true
    const run = await startWith({ lacksTransaction: (hash) => isLacking && hash === hashOf(900) })
    const [from, to] = [nowAt(0) - 1_000, nowAt(0) - 1_000 + 3 * 3_600_000 + 120_000]
    const read = () =>
      run.runRange(Math.floor(from / 3_600_000) * 3_600_000, Math.ceil(to / 3_600_000) * 3_600_000, ['UNI'])
    await expect(read()).rejects.toMatchObject(waiting(/does not have transaction/))
    expect(await run.hashes()).toEqual([hashOf(10), hashOf(910)])
    isLacking = false
    run.clock.now = nowAt(3_000)
    await read()
    expect(await run.hashes()).toEqual([hashOf(10), hashOf(900), hashOf(910)])
  })
})

describe('malformed log', () => {
  const habits = (spoil: NonNullable<NodeHabits['spoil']>): NodeHabits => ({
    spoil: (log) => (log.transactionHash === hashOf(900) ? spoil(log) : undefined),
  })
  const change = (more: object) => habits((log) => ({ ...toRpcLog(log, toChain([])), ...more }))

  it.each<[string, NodeHabits]>([
    ['null', habits(() => null)],
    ['without data', change({ data: null })],
    ['cut', habits((log) => ({ ...toRpcLog(log, toChain([])), data: log.data.slice(0, -64) }))],
    ['cut within a word', habits((log) => ({ ...toRpcLog(log, toChain([])), data: log.data.slice(0, -7) }))],
    ['without a place', change({ logIndex: null })],
    ['with half a hash', change({ transactionHash: '0xabc' })],
  ])('loses only its own trade if it is %s', async (_, spoiled) => {
    const run = await startWith(spoiled)
    await expect(run.runSlot()).rejects.toMatchObject({ entities: [UNISWAP] })
    expect(await run.hashes()).toEqual([hashOf(10), hashOf(910)])
  })
})
