import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { formatUnits } from 'viem/utils'
import { afterEach, describe, expect, it } from 'vitest'
import { createDexPipeline, dump, readAggregates, readTrades } from '../support/dex-pipeline.ts'
import type { PipelineOptions } from '../support/pipeline.ts'
import type { NodeHabits } from '../upstream/chain.ts'
import { type RecordedSwap, readSwaps, toRecordedChain } from '../upstream/recorded-swaps.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR ?? resolve(import.meta.dirname, '../../../shared/data')
const recordings = join(dataDir, 'dex-swaps-uni-weth-univ2-2021')
if (!existsSync(recordings)) console.log(`recorded swaps are not tested: there are none in ${dataDir}`)

const HOUR = 3_600_000

type Writable<T> = { -readonly [K in keyof T]: T[K] }

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(options?: PipelineOptions) {
  const run = await createDexPipeline(options)
  closers.push(run.close)
  return run
}

describe.skipIf(!existsSync(recordings))('2,000 recorded swaps of UNI and WETH', () => {
  const swaps = () => readSwaps(dataDir) ?? []
  const now = Date.parse('2021-06-22T14:00:30Z')
  const settings = { DEX_FIRST_RUN_HOURS: '240' }
  /** Side and amount of each transaction, from the other file: the same swaps as decoded by its authors. */
  function readSides() {
    const csv = gunzipSync(readFileSync(join(recordings, 'trades_buy_sell.csv.gz'))).toString()
    const lines = csv.trimEnd().split('\n').slice(1)
    return new Map(
      lines.map((line) => {
        const [, , side = '', , uni, , , hash] = line.split(',')
        return [hash, { side: side.toUpperCase(), amount: Number(uni) }]
      }),
    )
  }
  const relative = (value: number | undefined, expected: number) => Math.abs((value ?? Number.NaN) / expected - 1)
  const sum = (of: readonly RecordedSwap[], isBuy: boolean) =>
    of.reduce((usd, swap) => usd + (swap.uni > 0n === isBuy ? swap.usd : 0), 0)

  it('are stored with the same sides, amounts, hashes, times and dollars', async () => {
    const run = await start({ now, dataDir, settings })
    expect(await run.runSlot()).toMatchObject({ rows: 2_000, rejected: 0 })
    const trades = new Map((await readTrades(run)).map((trade) => [trade.transaction_hash, trade]))
    const sides = readSides()
    expect(trades.size).toBe(2_000)
    for (const swap of swaps()) {
      const trade = trades.get(swap.hash)
      const observed = sides.get(swap.hash)
      expect(trade).toMatchObject({ side: observed?.side, log_index: swap.logIndex, block_number: swap.block })
      expect(trade?.amount).toBe(Math.abs(Number(formatUnits(swap.uni, 18))))
      // The other file has fewer digits for small amounts.
      expect(relative(trade?.amount, observed?.amount ?? Number.NaN)).toBeLessThan(1e-7)
      expect(Date.parse(trade?.traded_at ?? '')).toBe(swap.at * 1000)
      expect(relative(trade?.amount_usd ?? undefined, swap.usd)).toBeLessThan(1e-9)
    }
    const count = (side: string) => [...trades.values()].filter((trade) => trade.side === side).length
    expect([count('BUY'), count('SELL')]).toEqual([849, 1_151])
    const total = await readAggregates(run)
    expect(total).toMatchObject({ total_trades: 2_000, makers: 1, takers: 2_000, dexs: 1 })
    const [bought, sold] = [sum(swaps(), true), sum(swaps(), false)]
    console.log(`inflow ${total?.inflow_max} of ${bought} USD on record, outflow ${total?.outflow_max} of ${sold}`)
    expect(relative(total?.inflow_max, bought)).toBeLessThan(1e-9)
    expect(relative(total?.outflow_max, sold)).toBeLessThan(1e-9)
  })

  it('are stored equally from Moralis if the chain has no node', async () => {
    const run = await start({ now, dataDir, settings: { ...settings, RPC_URLS: '' } })
    expect(await run.runSlot()).toMatchObject({ rows: 2_000, rejected: 0, providers: ['moralis-swaps'] })
    const trades = new Map((await readTrades(run)).map((trade) => [trade.transaction_hash, trade]))
    const sides = readSides()
    for (const swap of swaps()) {
      const amount = Math.abs(Number(formatUnits(swap.uni, 18)))
      expect(trades.get(swap.hash)).toMatchObject({
        side: sides.get(swap.hash)?.side,
        amount,
        block_number: swap.block,
      })
    }
  })

  it('do not change when any range is read again, with any page size', async () => {
    const recorded = toRecordedChain(swaps())
    const habits: Writable<NodeHabits> = {}
    const run = await start({ now, dataDir, settings, chains: { ethereum: { ...recorded, habits } } })
    await run.runSlot()
    const before = await dump(run)
    const day = Date.parse('2021-06-14T00:00:00Z')
    habits.mostLogs = 37
    await run.runRange(day, day + 24 * HOUR)
    habits.mostBlocks = 1_000
    habits.logTimes = false
    await run.runRange(day + 12 * HOUR, day + 60 * HOUR, ['UNI', 'AAVE'])
    await Promise.all([
      run.runRange(day + 190 * HOUR, day + 200 * HOUR),
      run.runSlot(),
      run.runRange(day, now, ['UNI']),
    ])
    expect(await dump(run)).toBe(before)
  })
})
