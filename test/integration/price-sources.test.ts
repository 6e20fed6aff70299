import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import prices from '../../workers/jobs/prices.ts'
import { runJob } from '../../workers/run/run-job.ts'
import { createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const NOW = Date.parse('2024-05-06T07:05:09Z')

let pipeline: Pipeline
let db: Database
let api: TestApi
beforeAll(async () => {
  pipeline = await createPipeline({ now: NOW })
  const slot = NOW - (NOW % 300_000)
  await runJob(prices, prices.connect(pipeline.context), pipeline.context, { kind: 'slot', slot })
  // A price of a version that did not store providers.
  await pipeline.database.db.insert({
    table: 'token_quotes_in',
    rows: [{ token: uni().key, observed_at: '2024-05-06T06:00:00Z', is_latest: false, price: 7 }],
  })
  db = createDatabase(pipeline.config.clickhouse, 'read')
  const { config, registry, clock } = pipeline
  api = await startApi({ config, db, registry, changeFeed: createHandFeed(), now: () => clock.now })
})
afterAll(async () => {
  await api?.close()
  await db?.close()
  await pipeline?.close()
})

const uni = () => {
  const token = pipeline.registry.tokens.find(({ symbol }) => symbol === 'UNI')
  if (token === undefined) throw new Error('there is no UNI')
  return token
}
const get = async (path: string) => (await fetch(`${api.url}${path}`)).text()
const withoutSource = (text: string) => text.replaceAll(/,"source":(null|"[a-z-]+")/g, '')

describe('include=source', () => {
  const series = () => `/data/tokens/historic-financial?id=${uni().id}&interval=1h&start=2024-05-06`

  it('adds the provider to each point, null if it was not stored', async () => {
    const plain = await get(series())
    const sourced = await get(`${series()}&include=source`)
    const { data } = JSON.parse(sourced) as { data: { source: string | null }[] }
    expect(data.map(({ source }) => source)).toEqual([null, 'coinmarketcap'])
    expect(plain).not.toContain('source')
    expect(withoutSource(sourced)).toBe(plain)
  })

  it('adds a column to tables, of one token and of several', async () => {
    const [plain = '', sourced = ''] = await Promise.all([
      get(`${series()}&format=csv`),
      get(`${series()}&format=csv&include=source`),
    ])
    expect(plain.split('\n')[0]).not.toContain('source')
    const lines = sourced.trim().split('\n')
    expect(lines[0]).toMatch(/,"?source"?\r?$/)
    expect(lines.at(-1)).toMatch(/,"?coinmarketcap"?\r?$/)
    const other = pipeline.registry.tokens.find(({ symbol }) => symbol === 'AAVE')?.id
    const several = await get(`${series()}&id=${other}&format=csv&include=source`)
    expect(several.match(/,"?coinmarketcap/g)).toHaveLength(2)
  })

  it('adds the provider of the newest quote to tokens, now and at an earlier time', async () => {
    const path = `/data/tokens?id=${uni().id}`
    const plain = await get(path)
    const sourced = await get(`${path}&include=source`)
    expect(JSON.parse(sourced)).toMatchObject([{ symbol: 'UNI', source: 'coinmarketcap' }])
    expect(withoutSource(sourced)).toBe(plain)
    const past = await get(`${path}&include=source&asOf=2024-05-06T06:03:00Z`)
    expect(JSON.parse(past)).toMatchObject([{ symbol: 'UNI', source: null }])
  })
})
