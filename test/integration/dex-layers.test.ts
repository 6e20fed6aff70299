import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createDexPipeline, readTrades } from '../support/dex-pipeline.ts'
import type { PipelineOptions } from '../support/pipeline.ts'
import type { Chain, ChainLog } from '../upstream/chain.ts'
import { LAYERS } from '../upstream/chain-facts.ts'
import { createSimulatedWorld } from '../upstream/simulated.ts'

const NOW = Date.parse('2024-05-06T07:08:09Z')
const HOUR = 3_600_000
const nodes = LAYERS.map(({ slug }) => slug)

const full = loadRegistry()
/** Only the tokens of the tested chains are requested. */
const registry = { ...full, tokens: full.tokens.filter(({ chain }) => nodes.includes(chain)) }
const world = createSimulatedWorld(registry, 1)

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(options: PipelineOptions = {}) {
  const settings = { DEX_FIRST_RUN_HOURS: '1' }
  const run = await createDexPipeline({ now: NOW, registry, nodes, markets: 'differing', settings, ...options })
  closers.push(run.close)
  return run
}

interface Expected {
  readonly token: number
  readonly time: string
  readonly log: ChainLog
  /** The amount of the quote token, in whole tokens. */
  readonly quoteAmount: number
  readonly quote: string
}

const toNumbers = ({ data }: ChainLog) =>
  (data.slice(2).match(/.{64}/g) ?? []).map((hex) => BigInt.asIntN(256, BigInt(`0x${hex}`)))

/** The trades of a chain in the hour before the slot and up to the final block, from its logs. */
function expectTrades(slug: string, slot: number, now = NOW): Expected[] {
  const [chain, facts] = [world.chain(slug) as Chain, LAYERS.find((one) => one.slug === slug)]
  // Without the finalized tag, blocks up to twelve before the newest are final.
  const final = chain.headAt(now) - (chain.habits.finalizedTag === false ? 12 : 64)
  const times = (block: number) => (chain.timeOf(block) ?? 0) * 1000
  return registry.tokens
    .filter((token) => token.chain === slug)
    .flatMap((token) =>
      (facts?.offers ?? []).flatMap(({ quote, factory, fee }) => {
        const local = facts?.quotes[quote]
        const pool = local && chain.pool({ factory, tokens: [token.contractAddress, local.address], fee })
        if (!local || !pool) return []
        const logs = chain.logs(chain.headAt(slot - HOUR), final, new Set([pool]))
        return logs
          .filter(({ blockNumber }) => times(blockNumber) >= slot - HOUR)
          .map((log) => {
            const [first = 0n, second = 0n] = toNumbers(log)
            const paid = token.contractAddress < local.address ? second : first
            const quoteAmount = Math.abs(Number(paid)) / 10 ** local.decimals
            return { token: token.key, time: new Date(times(log.blockNumber)).toISOString(), log, quoteAmount, quote }
          })
      }),
    )
}

/** Dollars per ether, from the last log of the chain's reference pool before another log. */
function toReferencePrice(chain: Chain, address: string, { blockNumber, logIndex }: ChainLog): number | undefined {
  const before = chain
    .logs(blockNumber - 150, blockNumber, new Set([address]))
    .filter((log) => log.blockNumber < blockNumber || log.logIndex < logIndex)
  const root = before.length === 0 ? undefined : toNumbers(before.at(-1) as ChainLog)[2]
  return root === undefined ? undefined : (Number(root) / 2 ** 96) ** 2 * 1e12
}

const chart = z.object({
  coins: z.record(z.string(), z.object({ prices: z.array(z.object({ timestamp: z.number(), price: z.number() })) })),
})

/** Dollars per ether, from the price chart around the time. */
async function readChart(url: string): Promise<number[]> {
  const query = `start=${(NOW - 3 * HOUR) / 1000 - 9}&span=40&period=5m&searchWidth=5m`
  const response = await fetch(`${url}/defillama-coins/chart/coingecko:ethereum?${query}`)
  const { coins } = chart.parse(await response.json())
  return Object.values(coins).flatMap(({ prices }) => prices.map(({ price }) => price))
}

const isNear = (a: number, b: number) => Math.abs(a / b - 1) < 1e-6

/** A stored trade with its log. */
async function pair(run: Awaited<ReturnType<typeof start>>, slug: string, slot: number) {
  const trades = new Map(
    (await readTrades(run)).map((trade) => [`${trade.transaction_hash} ${trade.log_index}`, trade]),
  )
  return expectTrades(slug, slot).map((expected) => {
    const { transactionHash, logIndex } = expected.log
    return { ...expected, trade: trades.get(`${transactionHash} ${logIndex}`) }
  })
}

describe('trades of second-layer chains', () => {
  const slot = Math.floor(NOW / HOUR) * HOUR

  it('are read from their own nodes: every trade of their pools, at the time of its block', async () => {
    const run = await start()
    const report = await run.runSlot(slot)
    const counts = new Map<string, number>()
    for (const slug of nodes) {
      const pairs = await pair(run, slug, slot)
      counts.set(slug, pairs.length)
      expect(pairs.length).toBeGreaterThan(10)
      for (const { token, time, trade } of pairs)
        expect({ token: trade?.token, time: new Date(trade?.traded_at ?? 0).toISOString() }).toEqual({ token, time })
    }
    console.log('trades', Object.fromEntries(counts))
    expect(report).toMatchObject({ rows: [...counts.values()].reduce((sum, count) => sum + count, 0), uncovered: 0 })
  })

  it('have values from their reference pool if there is one, and else from the chart', async () => {
    const run = await start()
    await run.runSlot(slot)
    const charted = await readChart(run.upstream.url)
    let byPool = 0
    for (const facts of LAYERS) {
      const inEther = (await pair(run, facts.slug, slot)).filter(({ quote }) => quote === 'WETH')
      expect(inEther.length).toBeGreaterThan(5)
      for (const { trade, quoteAmount, log } of inEther) {
        const paid = (trade?.amount_usd ?? Number.NaN) / quoteAmount
        const chain = world.chain(facts.slug) as Chain
        const own = facts.reference && toReferencePrice(chain, facts.reference.address, log)
        if (own !== undefined) byPool += 1
        if (own !== undefined) expect(paid).toBeCloseTo(own, 4)
        else expect(charted.some((price) => isNear(price, paid))).toBe(true)
      }
    }
    expect(byPool).toBeGreaterThan(5)
  })

  it('have no value without a price, except those in dollars or with a price in the pool', async () => {
    const run = await start()
    run.upstream.faults.set('defillama-coins', { kind: 'empty' })
    await run.runSlot(slot)
    for (const facts of LAYERS) {
      for (const { trade, quoteAmount, quote, log } of await pair(run, facts.slug, slot)) {
        const chain = world.chain(facts.slug) as Chain
        const ether = facts.reference && toReferencePrice(chain, facts.reference.address, log)
        const price = quote === 'USDC' ? 1 : ether
        if (price === undefined) expect(trade?.amount_usd).toBeNull()
        else expect((trade?.amount_usd ?? Number.NaN) / quoteAmount).toBeCloseTo(price, 4)
      }
    }
  })

  it("continue from the last block of each chain, up to its node's newest", async () => {
    const run = await start()
    await run.runSlot(slot)
    run.clock.now += HOUR
    const before = (await readTrades(run)).length
    await run.runSlot(slot + HOUR)
    const keys = (await readTrades(run)).map(({ transaction_hash, log_index }) => `${transaction_hash} ${log_index}`)
    expect(keys.length).toBeGreaterThan(before)
    for (const slug of nodes) {
      const later = expectTrades(slug, slot, run.clock.now)
      expect(later.filter(({ log }) => !keys.includes(`${log.transactionHash} ${log.logIndex}`))).toEqual([])
    }
  })
})
