import { hash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { datasets } from '../../shared/datasets/list.ts'
import { createDatabase } from '../../shared/store/store.ts'
import holders from '../../workers/jobs/holders.ts'
import { jobs } from '../../workers/jobs/list.ts'
import marketCap from '../../workers/jobs/market-cap.ts'
import prices from '../../workers/jobs/prices.ts'
import twitter from '../../workers/jobs/twitter.ts'
import { createHandFeed, startApi } from '../support/api.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const MORNING = Date.parse('2024-05-06T07:00:00Z')

let pipeline: ServedPipeline
let raw: Awaited<ReturnType<typeof startApi>>
beforeAll(async () => {
  pipeline = await createServedPipeline({ now: MORNING + 60_000 })
  pipeline.upstream.faults.set(
    'moralis',
    { kind: 'status', status: 503 },
    { match: pipeline.tokenOf('UNI').contractAddress },
  )
  for (const job of [prices, holders, twitter, marketCap]) await pipeline.collect(job).catch(toPendingReport)
  const config = { ...pipeline.config, rawAnswers: { ...pipeline.config.rawAnswers, isServed: true } }
  const db = createDatabase(config.clickhouse, 'read')
  raw = await startApi({
    config,
    db,
    registry: pipeline.registry,
    changeFeed: createHandFeed(),
    now: () => pipeline.clock.now,
  })
})
afterAll(async () => {
  await raw?.close()
  await pipeline?.close()
})

// biome-ignore lint/suspicious/noExplicitAny: an answer as a client reads it
const get = async (query: string, base = pipeline.url): Promise<{ status: number; body: any; headers: Headers }> => {
  const response = await fetch(`${base}/data/provenance${query}`)
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json')
  return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers }
}

describe('/data/provenance', () => {
  it('names the provider, the answers of the entity and what was not taken', async () => {
    const uni = pipeline.tokenOf('UNI')
    const { status, body } = await get(`?dataset=holders&id=${uni.id}`)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      dataset: 'holders',
      entity: { type: 'token', id: uni.id, name: uni.name },
      observedAt: '2024-05-06T07:00:00.000Z',
      storedAt: new Date(pipeline.clock.now).toISOString(),
      provider: 'ethplorer',
      computedFrom: [],
      corrections: [],
      request: `/data/provenance?dataset=holders&id=${uni.id}&at=2024-05-06T07:00:00.000Z`,
    })
    const used = body.answers.filter((answer: { used: boolean }) => answer.used)
    expect(used.length).toBeGreaterThan(0)
    for (const answer of used) expect(answer).toMatchObject({ provider: 'ethplorer', status: 200, reason: null })
    const unused = body.answers.filter((answer: { used: boolean }) => !answer.used)
    expect(unused.length).toBeGreaterThan(0)
    for (const answer of unused)
      expect(answer).toMatchObject({ provider: 'moralis', status: 503, reason: expect.any(String) })
    for (const { request } of body.answers) expect(request.toLowerCase()).toContain(uni.contractAddress.toLowerCase())
  })

  it('finds an entity by name, and the newest value before a time', async () => {
    const { body } = await get('?dataset=twitter&name=Aave')
    expect(body).toMatchObject({ entity: { type: 'dao', name: 'Aave' }, provider: 'x' })
    expect(body.answers.length).toBeGreaterThan(0)
  })

  it('has the first value from a time on, as a bucket of a series shows it', async () => {
    const { id } = pipeline.tokenOf('UNI')
    const newest = (await get(`?dataset=prices&id=${id}`)).body.observedAt
    const day = `${newest.slice(0, 10)}T00:00:00.000Z`
    const first = await get(`?dataset=prices&id=${id}&after=${day}`)
    const series = await fetch(`${pipeline.url}/data/tokens/historic-financial?id=${id}&interval=1d&start=${day}`)
    const { data } = (await series.json()) as { data: { quote: { USD: { price: number; timestamp: string } } }[] }
    const { price, timestamp } = data[0]?.quote.USD ?? {}
    expect(first.body).toMatchObject({ observedAt: timestamp, provider: 'coinmarketcap', values: { price } })
    const exact = await get(`?dataset=prices&id=${id}&after=${newest}`)
    expect(exact.body.observedAt).toBe(newest)
    const late = new Date(Date.parse(newest) + 1).toISOString()
    const none = await get(`?dataset=prices&id=${id}&after=${late}`)
    expect(none.body).toMatchObject({ status: 404, param: 'after' })
    expect(none.body.detail).toContain(`No value of prices is stored from ${late} to `)
    const before = await get(`?dataset=prices&id=${id}&after=${day}&at=2024-01-01`)
    expect(before.body).toMatchObject({ status: 400, param: 'after' })
  })

  it('has the inputs of a computed value, which add up to it', async () => {
    const { body } = await get('?dataset=market-cap')
    const sum = body.computedFrom.reduce((all: number, { values }: { values: { usd: number } }) => all + values.usd, 0)
    expect(body).toMatchObject({ entity: null, provider: null, answers: [], more: 0 })
    expect(sum / body.values.value_usd).toBeCloseTo(1, 9)
    const { status } = await get(body.computedFrom[0].request.replace('/data/provenance', '').replace(/&at=.*/, ''))
    expect(status).toBe(200)
  })

  it('answers for every collected dataset of prices', async () => {
    const { body } = await get(`?dataset=prices&id=${pipeline.tokenOf('UNI').id}`)
    expect(body).toMatchObject({ provider: 'coinmarketcap', values: { price: expect.any(Number) } })
    expect(body.answers[0]).toMatchObject({ used: true, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
  })

  it('answers 404 with the reason of the gap', async () => {
    const { status, body } = await get(`?dataset=holders&id=${pipeline.tokenOf('UNI').id}&at=2024-01-01`)
    expect(status).toBe(404)
    expect(body).toMatchObject({
      code: 'not_found',
      detail: expect.stringMatching(
        /^No value of holders is stored at 2024-01-01T00:00:00.000Z: .+\. Its first value is of 2024-05-06T07:00:00.000Z\.$/,
      ),
    })
  })

  it('answers 404 without a first value if none is stored', async () => {
    const { status, body } = await get(`?dataset=discord&name=Aave`)
    expect(status).toBe(404)
    expect(body.detail).toMatch(/^No value of discord is stored at /)
    expect(body.detail).not.toContain('first value')
  })

  it('has every dataset that a job stores', () => {
    expect(new Set(jobs.map(({ dataset }) => dataset.name))).toEqual(new Set(datasets.map(({ name }) => name)))
  })
})

describe('/data/provenance/raw', () => {
  it('sends a stored body as a download if it is on', async () => {
    const { body } = await get('?dataset=twitter&name=Aave')
    const { sha256, bytes } = body.answers[0]
    const { status, body: text, headers } = await get(`/raw?hash=${sha256}`, raw.url)
    expect(status).toBe(200)
    expect(hash('sha256', text, 'hex')).toBe(sha256)
    expect(Buffer.byteLength(text)).toBe(bytes)
    expect(headers.get('content-type')).toBe('application/octet-stream')
    expect(headers.get('content-disposition')).toBe(`attachment; filename="${sha256}"`)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(await get(`/raw?hash=${sha256}`)).toMatchObject({ status: 404, body: { code: 'not_found' } })
  })

  it('answers 404 for an unknown hash and 400 for another text', async () => {
    expect(await get(`/raw?hash=${'0'.repeat(64)}`, raw.url)).toMatchObject({ status: 404 })
    expect(await get('/raw?hash=abc', raw.url)).toMatchObject({ status: 400 })
  })
})
