import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { treasuryFlows } from '../../shared/datasets/treasury-flows.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import treasuryFlowsJob from '../../workers/jobs/treasury-flows.ts'
import { runJob } from '../../workers/run/runner.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createPipeline, type Pipeline, type PipelineOptions } from '../support/pipeline.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'
import { createSimulatedWorld } from '../upstream/simulated.ts'
import type { Movement } from '../upstream/simulated-transfers.ts'

const DAY = 86_400_000
const TODAY = Date.parse('2026-05-06T00:00:00Z')
const FROM = TODAY - 120 * DAY
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

const registry = loadRegistry()
const world = createSimulatedWorld(registry, 1)
const entity = (slug: string) => {
  const dao = registry.daoBySlug.get(slug)
  if (dao === undefined) throw new Error(`no DAO ${slug}`)
  return dao
}
const ens = entity('ens')
const uniswap = entity('uniswap')

/** The distinct movements of a DAO's wallets, from the stand-in's world. */
function movementsOf(dao: typeof ens, from: number, to: number): readonly Movement[] {
  const wallets = dao.treasuries.filter(({ role = 'wallet' }) => role === 'wallet')
  const seen = new Map<string, Movement>()
  for (const { chain, address } of wallets) {
    const counts = new Map<string, number>()
    for (const one of world.transfers(chain, address, from / 1000, to / 1000 - 1)) {
      if (one.isFailed || (one.value === 0n && one.list !== 'tokentx')) continue
      const key = [chain, one.hash, one.contract, one.from, one.to, one.value].join(' ')
      const count = counts.get(key) ?? 0
      counts.set(key, count + 1)
      seen.set(`${key} ${count}`, one)
    }
  }
  return [...seen.values()]
}

const stored = z.object({
  key: z.string(),
  direction: z.string(),
  kind: z.string(),
  rule: z.string(),
  symbol: z.string(),
  provider: z.string(),
})

const open = async (options: PipelineOptions = {}) => createPipeline({ registry, now: TODAY + 3_600_000, ...options })
const run = (pipeline: Pipeline, payload: object) =>
  runJob(treasuryFlowsJob, treasuryFlowsJob.connect(pipeline.context), pipeline.context, payload).catch(toPendingReport)
const backfill = (pipeline: Pipeline, daos = [ens]) =>
  run(pipeline, { kind: 'range', from: FROM, to: TODAY, interval: '1d', entities: daos.map(({ id }) => id) })
const rowsOf = (pipeline: Pipeline, dao = ens) =>
  pipeline.database.db.rows({
    name: 'flows',
    sql: `SELECT concat(transaction_hash, ' ', contract_address, ' ', sender, ' ', recipient, ' ', toString(base_units)) AS key,
      toString(direction) AS direction, toString(kind) AS kind, toString(rule) AS rule, symbol, toString(provider) AS provider
      FROM treasury_flows FINAL WHERE dao = {dao: UInt64} ORDER BY key, occurrence`,
    params: { dao: dao.key },
    schema: stored,
  })
const toKey = (one: Movement) => [one.hash, one.contract, one.from, one.to, one.value].join(' ')
const reasonsOf = (pipeline: Pipeline) =>
  pipeline.database.db.rows({
    name: 'reasons',
    sql: `SELECT DISTINCT reason FROM coverage_notes FINAL WHERE dataset = '${treasuryFlows.name}' AND reason != ''`,
    schema: z.object({ reason: z.string() }),
  })

describe('transfers of treasuries from an explorer', () => {
  let pipeline: Pipeline
  beforeAll(async () => {
    pipeline = await open()
  })
  afterAll(() => pipeline?.close())
  beforeEach(() => {
    pipeline.upstream.faults.clear()
  })

  it('stores each transfer once, also after a second run', async () => {
    await backfill(pipeline, [ens, uniswap])
    for (const dao of [ens, uniswap]) {
      const expected = movementsOf(dao, FROM, TODAY).map(toKey)
      const rows = await rowsOf(pipeline, dao)
      // The explorer lists no token leg of a wrap: it follows from the coins.
      const listed = rows.filter(({ symbol, rule }) => !(symbol === 'WETH' && rule === 'wrap'))
      expect(listed.map(({ key }) => key).sort()).toEqual([...expected].sort())
      expect(expected.length).toBeGreaterThan(50)
    }
    const before = await rowsOf(pipeline)
    await backfill(pipeline)
    expect(await rowsOf(pipeline)).toEqual(before)
  })

  it('classifies them', async () => {
    const kinds = new Set((await rowsOf(pipeline, uniswap)).map(({ kind, rule }) => `${kind} ${rule}`))
    expect([...kinds].sort()).toEqual(
      expect.arrayContaining([
        'income inflow',
        'spam unlisted-asset',
        'spam zero-quantity',
        'spending outflow',
        'swap swap',
      ]),
    )
    const spam = (await rowsOf(pipeline, uniswap)).filter(({ rule }) => rule === 'unlisted-asset')
    expect(new Set(spam.map(({ symbol }) => symbol))).toEqual(new Set(['USDC']))
    expect(new Set(spam.map(({ direction }) => direction))).toEqual(new Set(['in', 'out']))
  })

  it('continues from the last run in the next slot', async () => {
    pipeline.clock.now = TODAY + 3_600_000
    await run(pipeline, { kind: 'slot', slot: TODAY })
    const before = await rowsOf(pipeline)
    pipeline.clock.now = TODAY + 8 * DAY + 3_600_000
    await run(pipeline, { kind: 'slot', slot: TODAY + 8 * DAY })
    const added = movementsOf(ens, TODAY, TODAY + 8 * DAY)
    const rows = await rowsOf(pipeline)
    const wraps = rows.filter(({ symbol, rule }) => symbol === 'WETH' && rule === 'wrap').length
    expect(added.length).toBeGreaterThan(0)
    expect(rows.length - wraps).toBe(movementsOf(ens, FROM, TODAY + 8 * DAY).length)
    expect(rows.length).toBeGreaterThan(before.length)
  })

  it('does not store an error as an empty wallet', async () => {
    const own = await open({ settings: { BLOCKSCOUT_CHAINS: 'base' } })
    own.upstream.faults.set('etherscan', { kind: 'status', status: 429 })
    await backfill(own)
    expect(await rowsOf(own)).toEqual([])
    expect(JSON.stringify(await reasonsOf(own))).toContain('rate limit')
    await own.close()
  })
})

describe('transfers of treasuries from a node', () => {
  /** A chain with the token transfers of the world, in blocks at their times. */
  const toChain = () => {
    const movements = movementsOf(ens, FROM, TODAY).filter(({ list }) => list === 'tokentx')
    const topic = (address: string) => `0x${address.slice(2).padStart(64, '0')}`
    const logs = [...movements]
      .sort((a, b) => a.time - b.time)
      .map((one, index) => ({
        address: one.contract,
        topics: [TRANSFER, topic(one.from), topic(one.to)],
        data: `0x${one.value.toString(16).padStart(64, '0')}`,
        blockNumber: toBlock(one.time),
        transactionHash: one.hash,
        transactionIndex: 0,
        logIndex: index,
      }))
    const nft = {
      ...logs[0],
      topics: [...(logs[0]?.topics ?? []), topic(ens.treasuries[0]?.address ?? '')],
      data: '0x',
    }
    const times = new Map(movements.map(({ time }) => [toBlock(time), time]))
    for (const at of [FROM - DAY, TODAY + DAY]) times.set(toBlock(at / 1000), at / 1000)
    return createLoggedChain({
      logs: [...logs, { ...nft, logIndex: 99_999 } as (typeof logs)[number]],
      times,
      pools: [],
    })
  }
  const toBlock = (seconds: number) => Math.floor((seconds - FROM / 1000) / 2) + 1_000_000

  it('stores tokens, names the missing native transfers, and adds them once an explorer has them', async () => {
    const pipeline = await open({
      chains: { ethereum: toChain() },
      settings: { ETHERSCAN_CHAINS: 'polygon', BLOCKSCOUT_CHAINS: 'base' },
    })
    await backfill(pipeline)
    const tokens = await rowsOf(pipeline)
    const movements = movementsOf(ens, FROM, TODAY)
    const expected = movements.filter(({ list }) => list === 'tokentx').map(toKey)
    expect(tokens.map(({ key }) => key)).toEqual([...expected].sort())
    expect(new Set(tokens.map(({ provider }) => provider))).toEqual(new Set(['node']))
    expect(JSON.stringify(await reasonsOf(pipeline))).toContain('no native transfers of ethereum')

    const config = { ...pipeline.config }
    const { etherscan } = config.providers
    const providers = { ...config.providers, etherscan: { ...etherscan, chains: ['ethereum'] } }
    const context = { ...pipeline.context, config: { ...config, providers } }
    await runJob(treasuryFlowsJob, treasuryFlowsJob.connect(context), context, {
      ...{ kind: 'range', from: FROM, to: TODAY, interval: '1d', entities: [ens.id] },
    })
    const rows = await rowsOf(pipeline)
    const listed = rows.filter(({ symbol, rule }) => !(symbol === 'WETH' && rule === 'wrap'))
    expect(listed.map(({ key }) => key)).toEqual([...movements.map(toKey)].sort())
    expect(new Set(rows.map(({ provider }) => provider))).toEqual(new Set(['etherscan']))
    await pipeline.close()
  })
})
