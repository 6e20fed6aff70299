import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { treasuryRoute } from '../../api/routes/daos/treasury.ts'
import { type DaoTreasuryRow, daoTreasuryRow, sumValues } from '../../shared/datasets/treasury.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import treasury from '../../workers/jobs/treasury.ts'
import type { TreasuryDao } from '../../workers/providers/contracts/treasury-daos.ts'
import { runJob } from '../../workers/run/runner.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'
import { createSimulatedWorld } from '../upstream/simulated.ts'

const DAY = 86_400_000
const TODAY = Date.parse('2024-05-06T00:00:00Z')

interface TreasuryRecord {
  _id: string
  name: string
  treasuryData: {
    lastUpdated: string
    tokens: { token: string; quantity: number; valueUsd: number | null }[]
    valueUsd: number
    percentChange24h: number | null
    percentChange7d: number | null
    percentChange30d: number | null
  }
}

let pipeline: ServedPipeline

beforeAll(async () => {
  pipeline = await createServedPipeline({ registry: loadRegistry(), now: TODAY + 60_000 })
})
afterAll(() => pipeline?.close())
beforeEach(() => {
  pipeline.upstream.faults.clear()
  pipeline.upstream.requests.clear()
})

const run = async (payload: object) => {
  try {
    return await runJob(treasury, treasury.connect(pipeline.context), pipeline.context, payload)
  } finally {
    // A run that must be retried has stored its successful rows.
    pipeline.changeFeed.commit('treasury')
  }
}
const collect = () => run({ kind: 'slot', slot: Math.floor(pipeline.clock.now / DAY) * DAY, again: true })
const backfill = (from: number, to: number, daos?: readonly TreasuryDao[]) =>
  run({ kind: 'range', from, to, interval: '1d', ...(daos && { entities: daos.map(({ id }) => id) }) })
const text = async (query = 'limit=500') => (await fetch(`${pipeline.url}/data/daos/treasury?${query}`)).text()
const get = async (query?: string) => {
  const body: unknown = JSON.parse(await text(query))
  return treasuryRoute.response.parse(body) as TreasuryRecord[]
}
const stored = () =>
  pipeline.database.db.rows({
    name: 'stored',
    sql: 'SELECT * EXCEPT collected_at FROM dao_treasuries FINAL ORDER BY dao, observed_at',
    schema: daoTreasuryRow,
  })
const collected = () => treasury.entities(pipeline.registry) as readonly TreasuryDao[]
const withWallets = () => collected().filter(({ wallets }) => wallets.length > 0)
const daoOf = (slug: string) => {
  const dao = collected().find((one) => one.slug === slug)
  if (dao === undefined) throw new Error(`no treasury is asked for ${slug}`)
  return dao
}
const newest = (rows: readonly DaoTreasuryRow[], dao: TreasuryDao) => rows.filter((row) => row.dao === dao.key).at(-1)

describe('treasuries from provider to response', () => {
  it('are stored with one request per address, and from DefiLlama without a known address', async () => {
    const report = await collect()
    const daos = withWallets()
    expect(report).toMatchObject({ rows: collected().length, rejected: 0, providers: ['goldrush', 'defillama'] })
    expect(daos.length).toBeGreaterThan(40)
    const addresses = daos.reduce((sum, { wallets }) => sum + wallets.length, 0)
    expect(pipeline.upstream.requests.count('goldrush')).toBe(addresses)
    const rows = await stored()
    const fromGoldrush = rows.filter(({ source }) => source === 'goldrush').map(({ dao }) => dao)
    expect(fromGoldrush.sort()).toEqual(daos.map(({ key }) => key).sort())
    expect(new Set(rows.map(({ observed_at }) => observed_at))).toEqual(new Set(['2024-05-06T00:00:00.000Z']))
    for (const { tokens } of rows) expect(tokens.map(({ symbol }) => symbol)).not.toContain('GIFT')
  })

  it('keep every holding of every address, with spam marked and not summed', async () => {
    const world = createSimulatedWorld(pipeline.registry, 1)
    for (const row of (await stored()).filter(({ source }) => source === 'goldrush')) {
      const dao = withWallets().find(({ key }) => key === row.dao) as TreasuryDao
      const there = dao.wallets.flatMap(({ chain, address }) =>
        (world.treasury(chain, address, TODAY) ?? []).map((one) => ({ ...one, chain, address })),
      )
      const selected = there.filter(({ isSpam, balance }) => !isSpam && balance > 0n)
      const name = (one: { chain: string; address: string | null; contract: string | null }) =>
        `${one.chain} ${one.address} ${one.contract}`
      expect(row.holdings.map(name).sort(), dao.slug).toEqual(selected.map(name).sort())
      expect(row.spam_count, dao.slug).toBe(there.filter(({ isSpam }) => isSpam).length)
      const own = new Set(selected.filter(({ isOwn }) => isOwn).map(name))
      for (const one of row.holdings) if (own.has(name(one))) expect(one.kind, dao.slug).toBe('own')
      for (const one of row.holdings.filter(({ symbol }) => symbol === 'USDC')) expect(one.kind).toBe('stable')
      expect(Math.abs(sumValues(row.holdings) / row.value_usd - 1)).toBeLessThan(1e-9)
    }
    const rows = await stored()
    expect(rows.some(({ spam_count }) => (spam_count ?? 0) > 0)).toBe(true)
    const sources = new Set(rows.flatMap(({ holdings }) => holdings.map(({ price_source }) => price_source)))
    expect(sources).toEqual(new Set(['goldrush', 'defillama', null]))
    // DefiLlama returns chains, but no addresses, contracts or spam.
    for (const row of rows.filter(({ source }) => source === 'defillama')) {
      expect(row).toMatchObject({ spam_count: null })
      for (const { address, contract } of row.holdings) expect([address, contract]).toEqual([null, null])
      expect(row.holdings.every(({ chain }) => chain === 'OwnTokens' || pipeline.registry.chainBySlug.has(chain))).toBe(
        true,
      )
    }
  })

  it('have totals that are the sums of their parts, largest first, with null changes on the first day', async () => {
    const records = await get()
    expect(records).toHaveLength(collected().length)
    for (const { treasuryData } of records) {
      const values = treasuryData.tokens.map(({ valueUsd }) => valueUsd)
      expect(values.reduce<number>((sum, value) => sum + (value ?? 0), 0)).toBe(treasuryData.valueUsd)
      expect(values).toEqual([...values].sort((a, b) => (b ?? -1) - (a ?? -1)))
      expect(treasuryData).toMatchObject({ percentChange24h: null, percentChange7d: null, percentChange30d: null })
    }
    expect(records.some(({ treasuryData }) => treasuryData.tokens.some(({ valueUsd }) => valueUsd === null))).toBe(true)
  })

  it('use DefiLlama prices if the provider has none', async () => {
    const requests = pipeline.upstream.requests
    await collect()
    expect(requests.count('defillama-coins')).toBeGreaterThan(0)
    pipeline.upstream.faults.set('defillama-coins', { kind: 'empty' })
    const before = await stored()
    await collect()
    const after = await stored()
    const unpriced = (rows: readonly DaoTreasuryRow[]) =>
      rows.reduce((sum, { tokens }) => sum + tokens.filter(({ value_usd }) => value_usd === null).length, 0)
    expect(unpriced(after)).toBeGreaterThan(unpriced(before))
    pipeline.upstream.faults.clear()
    await collect()
    expect(await stored()).toEqual(before)
  })

  it('do not change when the day is collected again', async () => {
    const before = [await stored(), await text()]
    await Promise.all([collect(), collect()])
    expect([await stored(), await text()]).toEqual(before)
  })

  it('have changes after a back-fill of daily history, which is idempotent', async () => {
    const daos = [daoOf('uniswap'), daoOf('aave'), daoOf('1inch')]
    const uniswap = newest(await stored(), daoOf('uniswap'))
    const report = await backfill(TODAY - 31 * DAY, TODAY, daos)
    expect(report).toMatchObject({ rows: 3 * 31, rejected: 0, providers: ['goldrush'] })
    const before = [await stored(), await text()]
    const history = (await stored()).filter(({ dao }) => dao === daoOf('uniswap').key)
    expect(history).toHaveLength(32)
    const valueOn = (days: number) => history.at(-1 - days)?.value_usd ?? Number.NaN
    const [record] = await get('name=uniswap')
    const change = (days: number) => 100 * ((uniswap?.value_usd ?? 0) / valueOn(days) - 1)
    expect(record?.treasuryData.percentChange24h).toBeCloseTo(change(1), 10)
    expect(record?.treasuryData.percentChange7d).toBeCloseTo(change(7), 10)
    expect(record?.treasuryData.percentChange30d).toBeCloseTo(change(30), 10)
    expect(change(7)).not.toBe(0)
    // Current spam is in the portfolio too, without a mark.
    for (const { tokens } of await stored()) expect(tokens.map(({ symbol }) => symbol)).not.toContain('GIFT')
    for (const { holdings, spam_count } of history.slice(0, -1)) {
      expect(holdings.length).toBeGreaterThan(0)
      expect(spam_count).toBeNull()
    }
    await backfill(TODAY - 31 * DAY, TODAY, daos)
    expect([await stored(), await text()]).toEqual(before)
  })

  it('have no change against a missing day or another source', async () => {
    const aave = daoOf('aave')
    pipeline.clock.now += 2 * DAY
    await collect()
    const [skipped] = await get('name=aave')
    expect(skipped?.treasuryData.percentChange24h).toBeNull()
    expect(skipped?.treasuryData.percentChange7d).not.toBeNull()
    pipeline.upstream.faults.set('goldrush', { kind: 'status', status: 402 })
    expect(await collect().catch(toPendingReport)).toMatchObject({ providers: ['defillama'] })
    expect(newest(await stored(), aave)?.source).toBe('defillama')
    const [second] = await get('name=aave')
    expect(second?.treasuryData.percentChange7d).toBeNull()
    pipeline.upstream.faults.clear()
    await backfill(pipeline.clock.now - 60_000 - DAY, pipeline.clock.now - 60_000, [aave])
    await collect()
    const [full] = await get('name=aave')
    expect(full?.treasuryData.percentChange24h).not.toBeNull()
  })

  it('are not stored partially: one failing address costs the DAO its row', async () => {
    // DefiLlama would replace the row of a DAO that it has.
    const alone = daoOf('aavegotchi')
    expect(alone.defillama).toBeNull()
    const address = alone.wallets[1]?.address ?? ''
    pipeline.clock.now += DAY
    for (const fault of [
      { kind: 'empty' },
      { kind: 'status', status: 404 },
      { kind: 'status', status: 500 },
    ] as const) {
      pipeline.upstream.faults.set('goldrush', fault, { match: `${address}/balances_v2` })
      const before = newest(await stored(), alone)
      const report = await collect().catch(toPendingReport)
      expect(report.rows).toBeGreaterThan(40)
      expect(newest(await stored(), alone)).toEqual(before)
      pipeline.upstream.faults.clear()
    }
    await collect()
    expect(newest(await stored(), alone)?.observed_at).toBe(new Date(pipeline.clock.now - 60_000).toISOString())
  })

  it('are kept if every response is empty or an error, and the job fails', async () => {
    pipeline.clock.now += DAY
    const before = [await stored(), await text()]
    for (const fault of [{ kind: 'empty' }, { kind: 'status', status: 401 }] as const) {
      pipeline.upstream.faults.set('goldrush', fault)
      pipeline.upstream.faults.set('defillama', { kind: 'status', status: 400 })
      await expect(collect()).rejects.toMatchObject({ code: expect.stringMatching(/^provider_/) })
      pipeline.upstream.faults.clear()
    }
    pipeline.changeFeed.commit('treasury')
    expect([await stored(), await text()]).toEqual(before)
  })

  it('come from DefiLlama without a key, with own tokens', async () => {
    const { config } = pipeline
    const providers = { ...config.providers, goldrush: { ...config.providers.goldrush, apiKey: undefined } }
    const context = { ...pipeline.context, config: { ...config, providers } }
    const report = await runJob(treasury, treasury.connect(context), context, {
      kind: 'slot',
      slot: pipeline.clock.now - 60_000,
    })
    expect(report.providers).toEqual(['defillama'])
    expect(pipeline.upstream.requests.count('goldrush')).toBe(0)
    const uniswap = daoOf('uniswap')
    const row = newest(await stored(), uniswap)
    expect(row?.source).toBe('defillama')
    expect(row?.tokens.map(({ symbol }) => symbol)).toContain('UNI')
    // The sources use one simulated world: totals differ by the holdings that only one of them has.
    await collect()
    const full = newest(await stored(), uniswap)
    expect(full?.source).toBe('goldrush')
    expect((full?.value_usd ?? 0) / (row?.value_usd ?? 1)).toBeCloseTo(1, 1)
  })
})
