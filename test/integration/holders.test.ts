import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type HoldersRecord, holdersRoute } from '../../api/routes/tokens/holders.ts'
import { tokenHoldersRow } from '../../shared/datasets/holders.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import type { Entity } from '../../workers/job/define-job.ts'
import holders from '../../workers/jobs/holders.ts'
import prices from '../../workers/jobs/prices.ts'
import { runJob } from '../../workers/run/runner.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const HOUR = 3_600_000
const MORNING = Date.parse('2024-05-06T07:00:00Z')

let pipeline: ServedPipeline
const collect = () => pipeline.collect(holders)
const tokenOf = (symbol: string) => pipeline.tokenOf(symbol)
const text = async (query = 'limit=500') => (await fetch(`${pipeline.url}/data/tokens/holders?${query}`)).text()
const get = async (query?: string) => holdersRoute.response.parse(JSON.parse(await text(query))) as HoldersRecord[]
const stored = (table = 'token_holders') =>
  pipeline.database.db.rows({
    name: 'stored',
    sql: `SELECT ${Object.keys(tokenHoldersRow.shape).join(', ')} FROM ${table} FINAL ORDER BY token, observed_at`,
    schema: tokenHoldersRow,
  })
const collected = () => holders.entities(pipeline.registry)

describe('token holders from provider to response', () => {
  beforeAll(async () => {
    pipeline = await createServedPipeline({ now: MORNING + 60_000 })
    await pipeline.collect(prices)
  })
  afterAll(() => pipeline?.close())
  beforeEach(() => {
    pipeline.upstream.faults.clear()
    pipeline.upstream.requests.clear()
  })

  it('stores a snapshot of every live token on an EVM chain, with two requests each', async () => {
    expect(await collect()).toEqual({ rows: collected().length, rejected: 0, uncovered: 0, providers: ['moralis'] })
    expect(pipeline.upstream.requests.count('moralis')).toBe(2 * collected().length)
    const rows = await stored()
    expect(rows.map(({ token }) => token).sort()).toEqual(
      collected()
        .map(({ key }) => key)
        .sort(),
    )
    expect(new Set(rows.map(({ observed_at }) => observed_at))).toEqual(new Set(['2024-05-06T07:00:00.000Z']))
    expect(await stored('token_holders_latest')).toEqual(rows)
    const observed = await pipeline.database.db.rows({
      name: 'count',
      sql: 'SELECT count() AS inserted FROM token_holders',
      schema: z.object({ inserted: z.number() }),
    })
    expect(observed).toEqual([{ inserted: collected().length }])
  })

  it("serves the provider's exact values", async () => {
    const token = tokenOf('UNI')
    const path = `${pipeline.upstream.url}/moralis/api/v2.2/erc20/${token.contractAddress}`
    const request = async (url: string) => (await fetch(url, { headers: { 'x-api-key': 'test' } })).json()
    const { result } = (await request(`${path}/owners?chain=eth&limit=100&order=DESC`)) as {
      result: Record<string, string>[]
    }
    const { totalHolders } = (await request(`${path}/holders?chain=eth`)) as { totalHolders: number }
    const [uni] = await get(`id=${token.id}`)
    expect(uni).toMatchObject({ _id: token.id, name: token.name, holdersData: { totalHolders } })
    expect(uni?.holdersData.topHolders).toEqual(
      result.map((owner) => ({
        address: owner.owner_address,
        amount: Number(owner.balance_formatted),
        amountUsd: owner.usd_value === null ? null : Number(owner.usd_value),
        share: Number(owner.percentage_relative_to_total_supply),
      })),
    )
    expect(uni?.holdersData.topHolders).toHaveLength(100)
  })

  it('lists every token with a snapshot, in the order of the token list', async () => {
    const all = await get()
    expect(all).toHaveLength(collected().length)
    const tokens = (await (await fetch(`${pipeline.url}/data/tokens?limit=500`)).json()) as { _id: string }[]
    const listed = new Set(all.map(({ _id }) => _id))
    const priced = tokens.map(({ _id }) => _id).filter((id) => listed.has(id))
    expect(all.slice(0, priced.length).map(({ _id }) => _id)).toEqual(priced)
    const unpriced = all.slice(priced.length).map(({ name }) => name)
    expect(unpriced).toEqual([...unpriced].sort())
    for (const { holdersData } of all) {
      const shares = holdersData.topHolders.map(({ share }) => share)
      expect(shares).toEqual([...shares].sort((a, b) => b - a))
      expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(holdersData.top100Share, 6)
    }
    expect(all.some(({ holdersData }) => holdersData.topHolders.every(({ amountUsd }) => amountUsd === null))).toBe(
      true,
    )
  })

  it('selects by id, name and symbol, with exact names first', async () => {
    expect(await get('')).toHaveLength(10)
    const [uni, aave] = [tokenOf('UNI'), tokenOf('AAVE')]
    const names = async (query: string) => (await get(query)).map(({ name }) => name)
    expect(await names(`id=${uni.id},${aave.id}`)).toEqual(expect.arrayContaining([uni.name, aave.name]))
    expect((await names(`name=${aave.name.toLowerCase()}&name=uni`))[0]).toBe(aave.name)
    expect(await names('name=uni')).toContain(uni.name)
    expect(await names(`id=${'f'.repeat(24)}`)).toEqual([])
    const { headers } = await fetch(`${pipeline.url}/data/tokens/holders?id=${uni.id}`)
    expect(headers.get('x-data-as-of')).toBe('2024-05-06T07:00:00.000Z')
  })

  it('changes no row and no byte when the slot is collected again', async () => {
    const before = [await stored(), await stored('token_holders_latest'), await text()]
    await Promise.all([collect(), collect()])
    expect([await stored(), await stored('token_holders_latest'), await text()]).toEqual(before)
  })

  it('keeps the previous snapshots if the lists are empty, and reports a failure', async () => {
    const before = [await stored(), await text()]
    pipeline.clock.now += HOUR
    for (const provider of ['moralis', 'ethplorer', 'binplorer'])
      pipeline.upstream.faults.set(provider, { kind: 'empty' })
    await expect(collect()).rejects.toMatchObject({ code: 'provider_unavailable' })
    pipeline.changeFeed.commit('holders')
    expect([await stored(), await text()]).toEqual(before)
  })

  it('stores the other tokens if one fails, and gets that one from the next provider', async () => {
    const { contractAddress, id } = tokenOf('UNI')
    const [unknown, empty] = [tokenOf('ENS'), tokenOf('AAVE')]
    pipeline.upstream.faults.set('moralis', { kind: 'status', status: 503 }, { match: contractAddress })
    pipeline.upstream.faults.set('moralis', { kind: 'status', status: 404 }, { match: unknown.contractAddress })
    pipeline.upstream.faults.set('moralis', { kind: 'empty' }, { match: empty.contractAddress })
    const report = await collect().catch(toPendingReport)
    expect(report).toMatchObject({ rows: collected().length, uncovered: 0, providers: ['moralis', 'ethplorer'] })
    expect(pipeline.upstream.requests.count('ethplorer')).toBe(6)
    const [uni] = await get(`id=${id}`)
    // Shares with two decimals identify the provider.
    expect(uni?.holdersData.topHolders.map(({ share }) => share)).toEqual(
      uni?.holdersData.topHolders.map(({ share }) => Number(share.toFixed(2))),
    )
  })

  it('continues with the next provider if the first one rejects requests', async () => {
    pipeline.clock.now += HOUR
    pipeline.upstream.faults.set('moralis', { kind: 'status', status: 401 })
    const covered = collected().filter((token) => ['ethereum', 'bnb'].includes(Reflect.get(token, 'chain')))
    const report = await collect().catch(toPendingReport)
    expect(report).toMatchObject({ rows: covered.length, providers: ['ethplorer'] })
    expect(report.uncovered).toBe(collected().length - covered.length)
    expect(pipeline.upstream.requests.count('moralis')).toBeLessThan(10)
    // Tokens of the first provider only keep their last snapshot.
    expect(await get()).toHaveLength(collected().length)
  })

  it('does not buy an unusable response of a token repeatedly', async () => {
    pipeline.clock.now += HOUR
    const [useless, unavailable] = collected().filter(
      (token) => !['ethereum', 'bnb'].includes(Reflect.get(token, 'chain')),
    )
    const pathOf = (token?: Entity) => `/erc20/${Reflect.get(token ?? {}, 'contractAddress')}/owners`
    const requests = (token?: Entity) => pipeline.upstream.requests.count('moralis', pathOf(token))
    pipeline.upstream.faults.set('moralis', { kind: 'shape' }, { match: pathOf(useless) })
    pipeline.upstream.faults.set('moralis', { kind: 'status', status: 503 }, { match: pathOf(unavailable) })
    const retry = () => {
      const slot = toBucketStart(pipeline.clock.now, '1h')
      const job = runJob(holders, holders.connect(pipeline.context), pipeline.context, { kind: 'slot', slot })
      return job.catch(toPendingReport)
    }
    for (let tries = 0; tries < 6; tries += 1) await retry()
    expect(requests(useless)).toBe(3)
    expect(requests(unavailable)).toBeGreaterThanOrEqual(6)
    pipeline.upstream.faults.clear()
    // A failed request is not billed, and is retried normally.
    expect(await retry()).toMatchObject({ rows: 1, uncovered: 1 })
    expect(requests(useless)).toBe(3)
    pipeline.clock.now += HOUR
    expect(await retry()).toMatchObject({ rows: collected().length, uncovered: 0 })
  })

  it('keeps its newest snapshot if an older one is stored later', async () => {
    pipeline.changeFeed.commit('holders')
    const before = await text()
    const [row] = await stored('token_holders_latest')
    const rows = [{ ...row, observed_at: new Date(MORNING - 24 * HOUR).toISOString(), total_holders: 1_000_000 }]
    await pipeline.database.db.insert({ table: 'token_holders', rows })
    pipeline.changeFeed.commit('holders')
    expect(await text()).toBe(before)
    expect((await stored()).filter(({ token }) => token === row?.token).length).toBeGreaterThan(2)
  })
})
