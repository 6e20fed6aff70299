import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { feesHistoricRoute } from '../../api/routes/daos/fees/historic.ts'
import { feesRoute } from '../../api/routes/daos/fees.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { type DaoFeesRow, daoFeesRow } from '../../shared/datasets/fees.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import fees from '../../workers/jobs/fees.ts'
import { defillamaFees } from '../../workers/providers/defillama/fees.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createObservedClients, type Handler, sendJson, startProviderServer } from '../provider-server.ts'
import { toTestDao } from '../samples.ts'
import { noDatabase } from '../support/no-database.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'
import { silent } from '../support/silent.ts'

const DAY = 86_400_000
const TODAY = Date.parse('2024-05-06T00:00:00Z')
const endOf = (day: number) => new Date(day + DAY - 1).toISOString()

describe('fees from provider to answer', () => {
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
      return await runJob(fees, fees.connect(pipeline.context), pipeline.context, payload)
    } finally {
      pipeline.changeFeed.commit('fees')
    }
  }
  const stored = () =>
    pipeline.database.db.rows({
      name: 'stored',
      sql: 'SELECT * EXCEPT collected_at FROM dao_fees FINAL ORDER BY dao, observed_at',
      schema: daoFeesRow,
    })
  const daysOf = (rows: readonly DaoFeesRow[]) => [...new Set(rows.map(({ observed_at }) => observed_at))].sort()
  const get = async (path: string) => JSON.parse(await (await fetch(`${pipeline.url}/data/daos/${path}`)).text())

  it('stores the last days that are over, and nothing of the running day', async () => {
    const report = await run({ kind: 'slot', slot: TODAY, again: true })
    expect(report).toMatchObject({ rejected: 0, providers: ['defillama'] })
    const rows = await stored()
    expect(daysOf(rows)).toEqual([3, 2, 1].map((ago) => endOf(TODAY - ago * DAY)))
    expect(rows.every(({ fees_usd }) => fees_usd !== null)).toBe(true)
    const withRevenue = rows.filter(({ revenue_usd }) => revenue_usd !== null)
    expect(withRevenue.length).toBeGreaterThan(0)
    expect(withRevenue.length).toBeLessThan(rows.length)
    const entities = fees.entities(pipeline.registry)
    const values = new Set(rows.map(({ dao }) => dao))
    expect(values.size).toBeGreaterThan(entities.length / 2)
    expect(values.size).toBeLessThan(entities.length)
    // A DAO without fees costs one request, because its revenue is not requested.
    const requests = pipeline.upstream.requests.count('defillama')
    expect(requests).toBe(2 * values.size + (entities.length - values.size))
  })

  it('stores a day again when the provider corrects it, and keeps the value that was collected later', async () => {
    const yesterday = (await stored()).filter(({ observed_at }) => observed_at === endOf(TODAY - DAY))
    const collected_at = new Date(TODAY + 120_000).toISOString()
    const partial = yesterday.map((row) => ({ ...row, fees_usd: 1, revenue_usd: null, collected_at }))
    await pipeline.database.db.insert({ table: 'dao_fees', rows: partial })
    expect(await stored()).toEqual(
      expect.arrayContaining(yesterday.map((row) => ({ ...row, fees_usd: 1, revenue_usd: null }))),
    )
    pipeline.clock.now += DAY
    await run({ kind: 'slot', slot: TODAY + DAY, again: true })
    const rows = await stored()
    expect(daysOf(rows)).toEqual([3, 2, 1, 0].map((ago) => endOf(TODAY - ago * DAY)))
    expect(rows).toEqual(expect.arrayContaining(yesterday))
  })

  it('back-fills a range up to the last day that is over', async () => {
    const from = TODAY - 39 * DAY
    const ids = fees.entities(pipeline.registry).map(({ id }) => id)
    await run({ kind: 'range', from, to: TODAY + 3 * DAY, interval: '1d', entities: ids })
    const rows = await stored()
    expect(daysOf(rows)).toHaveLength(40)
    expect(daysOf(rows).at(-1)).toBe(endOf(TODAY))
  })

  it('serves sums and changes of stored fees', async () => {
    const rows = await stored()
    const records = feesRoute.response.parse(await get('fees?limit=500')) as {
      _id: string
      feesData: Record<string, number | null>
    }[]
    expect(records.length).toBe(new Set(rows.map(({ dao }) => dao)).size)
    for (const { _id, feesData } of records) {
      const dao = pipeline.registry.daos.find(({ id }) => id === _id)
      const own = rows.filter((row) => row.dao === dao?.key).reverse()
      const sum = (days: number) => own.slice(0, days).reduce((total, { fees_usd }) => total + (fees_usd ?? 0), 0)
      expect(feesData.fees24h).toBeCloseTo(sum(1), 4)
      expect(feesData.fees7d).toBeCloseTo(sum(7), 4)
      expect(feesData.fees30d).toBeCloseTo(sum(30), 4)
      const change = (days: number) => 100 * ((own[0]?.fees_usd ?? 0) / (own[days]?.fees_usd ?? 0) - 1)
      expect(feesData.percentChange24h).toBeCloseTo(change(1), 4)
      expect(feesData.percentChange30d).toBeCloseTo(change(30), 4)
      expect(feesData.lastUpdated).toBe(endOf(TODAY))
    }
    const { _id } = records[0] ?? { _id: '' }
    const points = feesHistoricRoute.response.parse(await get(`fees/historic?id=${_id}&limit=3`)) as object[]
    expect(points).toMatchObject([0, 1, 2].map((ago) => ({ recordedAt: new Date(TODAY - ago * DAY).toISOString() })))
  })

  it('gives the reason in the coverage when the provider has no fees of a DAO', async () => {
    const values = new Set((await stored()).map(({ dao }) => dao))
    const without = fees.entities(pipeline.registry).find(({ key }) => !values.has(key))
    const start = new Date(TODAY - DAY).toISOString()
    const end = new Date(TODAY + DAY).toISOString()
    const url = `${pipeline.url}/data/status/coverage?dataset=fees&id=${without?.id}&start=${start}&end=${end}`
    const text = await (await fetch(url)).text()
    expect(text).toContain('/summary/fees/')
  })
})

describe('defillamaFees', () => {
  const { signal } = new AbortController()
  const alfa = toTestDao(1, 'alfa')
  const range = { from: TODAY - 2 * DAY, to: TODAY + 2 * DAY }
  const chart = [-2, -1, 0].map((days) => [(TODAY + days * DAY) / 1000, 100 + days])

  async function connect(handler: Handler) {
    const server = await startProviderServer(handler)
    onTestFinished(server.close)
    const config = parseConfig({ DEFILLAMA_BASE_URL: server.baseUrl, DEFILLAMA_REQUESTS_PER_MINUTE: '60000' })
    const { http } = createObservedClients()
    const source = defillamaFees.connect({ config, http, db: noDatabase, log: silent, now: () => TODAY + 3_600_000 })
    return { server, fetch: (dao = alfa) => source.fetchFees(dao, range, signal) }
  }
  const typeOf = (url: URL) => url.searchParams.get('dataType')

  it('requests fees and revenue by the slug of the name, without the breakdown', async () => {
    const { server, fetch } = await connect((_, response) => sendJson(response, { totalDataChart: chart }))
    const { rows } = await fetch({ ...alfa, defillamaSlug: 'omega' })
    expect(rows).toMatchObject([{ fees_usd: 98, revenue_usd: 98 }, { fees_usd: 99 }])
    expect(server.requests.map(({ url }) => [url.pathname, typeOf(url)])).toEqual([
      ['/summary/fees/omega', 'dailyFees'],
      ['/summary/fees/omega', 'dailyRevenue'],
    ])
    expect(server.requests[0]?.url.searchParams.get('excludeTotalDataChartBreakdown')).toBe('true')
  })

  it.each([
    ['400', (response: Parameters<Handler>[1]) => response.writeHead(400).end('Fees for alfa not found')],
    ['404', (response: Parameters<Handler>[1]) => response.writeHead(404).end('Not found')],
    ['null', (response: Parameters<Handler>[1]) => sendJson(response, 'null')],
    ['an object without a chart', (response: Parameters<Handler>[1]) => sendJson(response, {})],
    ['an empty chart', (response: Parameters<Handler>[1]) => sendJson(response, { totalDataChart: [] })],
  ])('does not know a protocol when its fees are %s, and takes the same as unknown revenue', async (_what, answer) => {
    const none = await connect((_, response) => void answer(response))
    await expect(none.fetch()).rejects.toMatchObject({ code: 'provider_unknown' })
    expect(none.server.requests).toHaveLength(1)
    const half = await connect((_, response, url) =>
      typeOf(url) === 'dailyFees' ? sendJson(response, { totalDataChart: chart }) : void answer(response),
    )
    const { rows } = await half.fetch()
    expect(rows).toMatchObject([
      { fees_usd: 98, revenue_usd: null },
      { fees_usd: 99, revenue_usd: null },
    ])
  })

  it('fails when revenue cannot be read, so that no known value is replaced by null', async () => {
    const { fetch } = await connect((_, response, url) =>
      typeOf(url) === 'dailyFees'
        ? sendJson(response, { totalDataChart: chart })
        : void response.writeHead(500).end('Internal Error'),
    )
    await expect(fetch()).rejects.toMatchObject({ code: 'provider_unavailable' })
    const second = await connect((_, response) => sendJson(response, []))
    await expect(second.fetch()).rejects.toMatchObject({ code: 'provider_malformed' })
  })
})
