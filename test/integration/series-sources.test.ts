import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Dao } from '../../shared/registry/entities.ts'
import fees from '../../workers/jobs/fees.ts'
import holders from '../../workers/jobs/holders.ts'
import { jobs } from '../../workers/jobs/list.ts'
import telegram from '../../workers/jobs/telegram.ts'
import treasury from '../../workers/jobs/treasury.ts'
import tvl from '../../workers/jobs/tvl.ts'
import twitter from '../../workers/jobs/twitter.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const MORNING = Date.parse('2024-05-06T07:00:00Z')
const DAY = 86_400_000

let pipeline: ServedPipeline
beforeAll(async () => {
  pipeline = await createServedPipeline({ now: MORNING - DAY + 60_000 })
  const { upstream, database, clock } = pipeline
  // On the first day Moralis cannot answer about UNI, so the next provider's row is stored.
  upstream.faults.set('moralis', { kind: 'status', status: 503 }, { match: pipeline.tokenOf('UNI').contractAddress })
  await pipeline.collect(holders).catch(toPendingReport)
  upstream.faults.clear()
  clock.now += DAY
  for (const job of [holders, twitter, telegram, treasury, fees]) await pipeline.collect(job).catch(toPendingReport)
  // Rows of a version that did not store providers.
  const earlier = new Date(MORNING - 7 * DAY).toISOString()
  const row = { address: `0x${'1'.repeat(40)}`, amount: 1, amount_usd: null, share: 1 }
  const snapshot = { observed_at: earlier, total_holders: 5, top100_share: 1, holders: [row] }
  await database.db.insert({ table: 'token_holders', rows: [{ token: pipeline.tokenOf('UNI').key, ...snapshot }] })
  const count = { observed_at: '2024-04-30T00:00:00Z', followers: 5 }
  await database.db.insert({ table: 'twitter_counts', rows: [{ dao: dao('Aave').key, ...count }] })
})
afterAll(() => pipeline?.close())

const dao = (name: string): Dao => {
  const found = pipeline.registry.daos.find((one) => one.name === name)
  if (found === undefined) throw new Error(`there is no ${name}`)
  return found
}
const get = async (path: string) => {
  const response = await fetch(`${pipeline.url}/data/${path}`)
  const text = await response.text()
  expect([response.status, response.status === 200 ? '' : text]).toEqual([200, ''])
  return text
}
const readSources = async (path: string) =>
  (JSON.parse(await get(path)) as { source: string | null }[]).map(({ source }) => source)
const withoutSource = (text: string) => text.replaceAll(/,"source":(null|"[a-z-]+")/g, '')

describe('include=source of daily series', () => {
  const uni = () => `tokens/holders/historic?id=${pipeline.tokenOf('UNI').id}`

  it('names the provider of each point: two providers, and null for rows that did not store it', async () => {
    expect(await readSources(`${uni()}&include=source`)).toEqual(['moralis', 'ethplorer', null])
    expect(await readSources(`${uni()}&include=source&order=asc`)).toEqual([null, 'ethplorer', 'moralis'])
    const labels = uni().replace('historic', 'historic-labels')
    expect(await readSources(`${labels}&include=source`)).toEqual(['moralis', 'ethplorer', null])
  })

  it.each(['', '&order=asc', '&fill=null&start=2024-05-01', '&limit=2', '&points=2&start=2024-01-01'])(
    'adds nothing else to the points, and nothing without it (%s)',
    async (form) => {
      const plain = await get(uni() + form)
      const sourced = await get(`${uni()}${form}&include=source`)
      expect(plain).not.toContain('source')
      expect(sourced).toContain('"source":"moralis"')
      expect(withoutSource(sourced)).toBe(plain)
      // Both forms of the points are cached apart.
      expect(await get(uni() + form)).toBe(plain)
    },
  )

  it('is null in buckets without an observation', async () => {
    const sources = await readSources(`${uni()}&include=source&fill=null&start=2024-04-28&order=asc`)
    expect(sources).toEqual([null, null, null, null, null, null, null, 'ethplorer', 'moralis'])
  })

  it('is a member for fields', async () => {
    const points = JSON.parse(await get(`${uni()}&fields=recordedAt,source&limit=1`))
    expect(points).toEqual([{ recordedAt: '2024-05-06T00:00:00.000Z', source: 'moralis' }])
  })

  it('adds a column to tables, of one token and of several', async () => {
    const [plain = '', sourced = ''] = await Promise.all([
      get(`${uni()}&format=csv`),
      get(`${uni()}&format=csv&include=source`),
    ])
    expect(plain.split('\n')[0]).not.toContain('source')
    const lines = sourced.trim().split('\n')
    expect(lines.map((line) => line.split(',').at(-1)?.replaceAll(/["\r]/g, ''))).toEqual([
      'source',
      'moralis',
      'ethplorer',
      '',
    ])
    const other = pipeline.tokenOf('AAVE').id
    const several = await get(`${uni()}&id=${other}&format=csv&include=source`)
    expect(several.split('\n')[0]).toMatch(/,"?source"?\r?$/)
    expect(several.match(/,"?(moralis|ethplorer)"?\r?$/gm)).toHaveLength(4)
    expect((await get(`${uni()}&id=${other}&format=csv`)).split('\n')[0]).not.toContain('source')
    const binary = await fetch(`${pipeline.url}/data/${uni()}&format=parquet&include=source`)
    expect(Buffer.from(await binary.arrayBuffer()).toString('latin1')).toContain('ethplorer')
  })

  it('has the source of the first day of a week', async () => {
    const weeks = JSON.parse(await get(`daos/socials/historic-twitter?id=${dao('Aave').id}&interval=7d&include=source`))
    expect(weeks).toMatchObject([
      { lastUpdated: '2024-05-06T00:00:00.000Z', source: 'x' },
      { lastUpdated: '2024-04-29T00:00:00.000Z', source: null, followers: 5 },
    ])
  })

  it('has the only provider of fees, also of a week that adds up its days', async () => {
    const path = `daos/fees/historic?id=${dao('Aave').id}&include=source`
    expect(new Set(await readSources(path))).toEqual(new Set(['defillama']))
    expect(new Set(await readSources(`${path}&interval=7d&start=2024-04-01`))).toEqual(new Set(['defillama']))
    for (const job of [fees, tvl]) {
      expect(job.providers.map(({ name }) => `'${name}'`)).toEqual([job.dataset.series.provider])
    }
  })

  it('names the provider of treasuries and of members', async () => {
    expect(await readSources(`daos/treasury/historic?id=${dao('Aave').id}&include=source`)).toEqual(['goldrush'])
    expect(await readSources(`daos/socials/historic-telegram?id=${dao('Aave').id}&include=source`)).toEqual([
      'telegram',
    ])
  })

  it('is stored by the runner for each dataset with the column', async () => {
    const attributed = jobs.map(({ dataset }) => dataset).filter(({ isAttributed }) => isAttributed)
    expect(attributed.map(({ name }) => name).sort()).toEqual([
      ...['discord', 'holders', 'prices', 'telegram', 'twitter', 'twitter-sentiment'],
    ])
  })

  it('names the provider of a value in its provenance, also if its answers are not stored', async () => {
    const { provider, values } = JSON.parse(await get(`provenance?dataset=fees&id=${dao('Aave').id}`))
    expect(provider).toBe('defillama')
    expect(values).toEqual({ fees_usd: expect.any(Number), revenue_usd: null })
    const old = JSON.parse(
      await get(`provenance?dataset=holders&id=${pipeline.tokenOf('UNI').id}&at=2024-04-29T08:00:00Z`),
    )
    expect(old).toMatchObject({ provider: null, answers: [] })
    expect(Object.keys(old.values)).not.toContain('provider')
  })
})
