import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Job } from '../../workers/job/define-job.ts'
import twitter from '../../workers/jobs/twitter.ts'
import twitterSentiment from '../../workers/jobs/twitter-sentiment.ts'
import { type JobContext, runJob } from '../../workers/run/runner.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { toTestDao } from '../samples.ts'
import { createPipeline } from '../support/pipeline.ts'

const SLOT = Date.parse('2024-05-06T00:00:00Z')

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const toDaos = (count: number): Dao[] =>
  Array.from({ length: count }, (_, n) => ({ ...toTestDao(n + 1, null), twitter: `https://x.com/dao${n + 1}` }))

const toNames = (url: URL) => (url.searchParams.get('usernames') ?? '').split(',')
const toPageName = (url: URL) => `${url.searchParams.get('query')?.split(' ')[0]} ${url.searchParams.get('next_token')}`

/** X with endless posts about every account. The stand-in bills each response; `fail` sends an error instead. */
async function startX(
  fail: (url: URL, respond: (status: number, headers?: Record<string, string>) => void) => boolean,
) {
  const pages: string[] = []
  const accounts: string[] = []
  const server = await startProviderServer((_, response, url) => {
    if (fail(url, (status, headers = {}) => sendJson(response, { title: 'no' }, status, headers))) return
    if (url.pathname === '/2/users/by') {
      accounts.push(...toNames(url))
      const data = toNames(url).map((username) => ({ username, public_metrics: { followers_count: 7 } }))
      return sendJson(response, { data })
    }
    pages.push(toPageName(url))
    const from = Number(url.searchParams.get('next_token') ?? 0)
    const size = Number(url.searchParams.get('max_results'))
    const data = Array.from({ length: size }, (__, n) => ({ text: n % 2 === 0 ? 'great' : 'terrible', lang: 'en' }))
    sendJson(response, { data, meta: { next_token: String(from + size) } })
  })
  closers.push(server.close)
  return { ...server, pages, accounts }
}

/** A pipeline for these DAOs, with chunks of `pages` pages. */
async function start(baseUrl: string, daos: Dao[], pages: number, sampleSize: number) {
  const settings = {
    X_BASE_URL: baseUrl,
    X_BEARER_TOKEN: 'token',
    X_REQUESTS_PER_MINUTE: '60000',
    SENTIMENT_SAMPLE_SIZE: String(sampleSize),
  }
  const pipeline = await createPipeline({ now: SLOT + 3_600_000, settings })
  closers.push(pipeline.close)
  const { config, registry } = pipeline
  // The first client to open sets the rate limit, which is high here.
  twitterSentiment.connect(pipeline.context)
  const x = { ...config.providers.x, requestsPerMinute: pages }
  const onInsert = { current: (_table: string): void => {} }
  const db: Database = {
    ...pipeline.context.db,
    insert: async (insert) => {
      onInsert.current(insert.table)
      return pipeline.context.db.insert(insert)
    },
  }
  const daoById = new Map(daos.map((dao) => [dao.id, dao]))
  const context: JobContext = {
    ...pipeline.context,
    db,
    config: { ...config, providers: { ...config.providers, x } },
    registry: { ...registry, daos, daoById },
  }
  // Runs like a new process: unstored state is lost.
  const collect = (job: Job, more: Partial<JobContext> = {}) =>
    runJob(job, job.connect({ ...pipeline.context, ...context }), { ...context, ...more }, { kind: 'slot', slot: SLOT })
  const count = async (sql: string) => {
    const schema = z.object({ rows: z.number(), posts: z.number() })
    return (await pipeline.database.db.rows({ name: 'count', sql, schema }))[0]
  }
  return {
    collect,
    onInsert,
    countMoods: () =>
      count(
        'SELECT count() AS rows, sum(positive_posts + neutral_posts + negative_posts) AS posts FROM twitter_sentiment FINAL',
      ),
    countAccounts: () => count('SELECT count() AS rows, sum(followers) AS posts FROM twitter_counts FINAL'),
  }
}

describe('paid reading of posts', () => {
  const never = () => false

  it('runs in chunks up to the sample size, and stores each before the next', async () => {
    const { baseUrl, pages } = await startX(never)
    const run = await start(baseUrl, toDaos(6), 4, 300)
    const inserts: number[] = []
    run.onInsert.current = (table) => void (table === 'twitter_sentiment' && inserts.push(pages.length))
    expect(await run.collect(twitterSentiment)).toMatchObject({ rows: 6, uncovered: 0 })
    expect(await run.countMoods()).toEqual({ rows: 6, posts: 1_800 })
    expect(pages).toHaveLength(18)
    expect(inserts.length).toBeGreaterThanOrEqual(3)
  })

  it('buys no page again after a rate limit, a provider failure or a killed process', async () => {
    const troubles = new Map<string, { status: number; times: number }>([
      ['@dao2 100', { status: 429, times: 1 }],
      ['@dao4 200', { status: 500, times: 4 }],
    ])
    const { baseUrl, pages } = await startX((url, respond) => {
      const trouble = troubles.get(toPageName(url))
      if (trouble === undefined || trouble.times === 0) return false
      trouble.times -= 1
      const reset = String(Math.ceil(Date.now() / 1000) + 900)
      respond(trouble.status, trouble.status === 429 ? { 'x-rate-limit-reset': reset } : {})
      return true
    })
    const run = await start(baseUrl, toDaos(6), 5, 300)
    const tries: string[] = []
    const attempt = async (more?: Partial<JobContext>) => {
      tries.push(await run.collect(twitterSentiment, more).then(() => 'done', String))
      run.onInsert.current = () => {}
    }
    const handBack = new AbortController()
    let saved = 0
    run.onInsert.current = (table) => {
      saved += table === 'job_state' ? 1 : 0
      if (saved === 2) handBack.abort(new Error('handed back'))
    }
    await attempt({ handBack: handBack.signal })
    expect(pages.length).toBeLessThan(6)
    // The limit for one account and a failure for another; then a kill before the rows are stored.
    await attempt()
    expect(await run.countMoods()).toEqual({ rows: 4, posts: 1_200 })
    run.onInsert.current = (table) => {
      if (table === 'twitter_sentiment') throw new DataError('storage', 'killed')
    }
    await attempt()
    await attempt()
    expect(tries).toMatchObject([
      expect.stringContaining('handed back'),
      expect.stringContaining('2 without an answer'),
      expect.stringContaining('killed'),
      'done',
    ])
    expect(await run.countMoods()).toEqual({ rows: 6, posts: 1_800 })
    expect(new Set(pages).size).toBe(18)
    // Only requests in flight when the job was returned may be sent twice.
    expect(pages.length).toBeLessThanOrEqual(18 + 2)

    const bought = pages.length
    await run.collect(twitterSentiment)
    expect(pages).toHaveLength(bought)
  })
})

describe('paid reading of accounts', () => {
  it("stores each request's rows, so that a failed request does not lose those of others", async () => {
    let failing = true
    const { baseUrl, accounts } = await startX((url, respond) => {
      if (!failing || !toNames(url).includes('dao150')) return false
      respond(429, { 'x-rate-limit-reset': String(Math.ceil(Date.now() / 1000) + 900) })
      return true
    })
    const daos = toDaos(230)
    const run = await start(baseUrl, daos, 5, 100)
    await expect(run.collect(twitter)).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await run.countAccounts()).toMatchObject({ rows: 100 })
    failing = false
    await run.collect(twitter)
    expect(await run.countAccounts()).toEqual({ rows: 230, posts: 230 * 7 })
    expect(new Set(accounts).size).toBe(230)
  })
})
