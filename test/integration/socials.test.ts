import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Route } from '../../api/route/define-route.ts'
import { historicDiscordRoute } from '../../api/routes/daos/socials/historic-discord.ts'
import { historicTelegramRoute } from '../../api/routes/daos/socials/historic-telegram.ts'
import { historicTwitterRoute } from '../../api/routes/daos/socials/historic-twitter.ts'
import { historicTwitterSentimentRoute } from '../../api/routes/daos/socials/historic-twitter-sentiment.ts'
import { socialsRoute } from '../../api/routes/daos/socials.ts'
import { twitterSentimentRoute } from '../../api/routes/daos/twitter-sentiment.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Job } from '../../workers/job/define-job.ts'
import discord from '../../workers/jobs/discord.ts'
import telegram from '../../workers/jobs/telegram.ts'
import twitter from '../../workers/jobs/twitter.ts'
import twitterSentiment from '../../workers/jobs/twitter-sentiment.ts'
import { runJob } from '../../workers/run/runner.ts'
import { getDao } from '../support/entities.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const DAY = 86_400_000
const TODAY = Date.parse('2024-05-06T00:00:00Z')
const JOBS = [twitter, discord, telegram, twitterSentiment]
const TABLES = ['twitter_counts', 'discord_members', 'telegram_members', 'twitter_sentiment']

interface SocialRecord {
  _id: string
  name: string
  discordData: { activeMembers: number | null; totalMembers: number | null; lastUpdated: string | null }
  twitterData: Record<'followers' | 'following' | 'tweets', number | null> &
    Record<'percentChange24h' | 'percentChange7d' | 'percentChange30d', number | null> & { lastUpdated: string | null }
}

let pipeline: ServedPipeline

beforeAll(async () => {
  pipeline = await createServedPipeline({ registry: loadRegistry(), now: TODAY + 3_600_000 })
})
afterAll(() => pipeline?.close())
beforeEach(() => {
  pipeline.upstream.faults.clear()
  pipeline.upstream.requests.clear()
})

/** Collects the day of the clock's time, and sends the change event. */
async function collect(job: Job) {
  const slot = Math.floor(pipeline.clock.now / DAY) * DAY
  const report = await runJob(job, job.connect(pipeline.context), pipeline.context, { kind: 'slot', slot, again: true })
  pipeline.changeFeed.commit(job.dataset.name)
  return report
}
const text = async (path: string) => {
  const response = await fetch(pipeline.url + path)
  expect(response.status, path).toBe(200)
  return response.text()
}
const get = async <Body>({ path, response }: Route, query = 'limit=500') =>
  response.parse(JSON.parse(await text(`${path}?${query}`))) as Body[]
const stored = () =>
  Promise.all(
    TABLES.map((table) =>
      pipeline.database.db.rows({
        name: 'stored',
        sql: `SELECT * EXCEPT collected_at FROM ${table} FINAL ORDER BY dao, observed_at`,
        schema: z.record(z.string(), z.unknown()),
      }),
    ),
  )
const daoOf = (slug: string) => getDao(pipeline.registry, slug)

describe('social counts and sentiment from provider to response', () => {
  it('are stored per day and network, each as a separate dataset', async () => {
    for (const job of JOBS) {
      const collected = job.entities(pipeline.registry)
      const report = await collect(job)
      expect(report.rows + report.uncovered, job.name).toBe(collected.length)
      expect(report.rejected).toBe(0)
      expect(report.rows, job.name).toBeGreaterThan(collected.length * 0.8)
    }
    const tables = await stored()
    for (const rows of tables) {
      expect(new Set(rows.map((row) => row.observed_at))).toEqual(new Set(['2024-05-06T00:00:00.000Z']))
    }
    expect(pipeline.upstream.requests.count('x', '/2/users/by')).toBe(1)
    expect((await get(socialsRoute)).length).toBeGreaterThanOrEqual(40)
    expect((await get(twitterSentimentRoute)).length).toBeGreaterThanOrEqual(40)
  })

  it("are served with the networks' values", async () => {
    const aave = daoOf('aave')
    const request = async (path: string, headers: Record<string, string>) =>
      (await fetch(pipeline.upstream.url + path, { headers })).json() as Promise<never>
    const users = '/x/2/users/by?usernames=aave&user.fields=public_metrics'
    const { data }: { data: { public_metrics: Record<string, number> }[] } = await request(users, {
      authorization: 'Bearer t',
    })
    const invite: Record<string, number> = await request('/discord/api/v10/invites/CvKUrqM?with_counts=true', {
      'user-agent': 'DiscordBot (http://test, 1.0)',
    })
    const metrics = data[0]?.public_metrics
    expect(await get(socialsRoute, `id=${aave.id}`)).toEqual([
      {
        _id: aave.id,
        name: aave.name,
        discordData: {
          activeMembers: invite.approximate_presence_count,
          totalMembers: invite.approximate_member_count,
          lastUpdated: '2024-05-06T00:00:00.000Z',
        },
        twitterData: {
          followers: metrics?.followers_count,
          following: metrics?.following_count,
          tweets: metrics?.tweet_count ?? metrics?.post_count,
          percentChange24h: null,
          percentChange7d: null,
          percentChange30d: null,
          lastUpdated: '2024-05-06T00:00:00.000Z',
        },
      },
    ])
  })

  it('are null for a network without an account', async () => {
    const all = await get<SocialRecord>(socialsRoute)
    const uniswap = all.find(({ _id }) => _id === daoOf('uniswap').id)
    expect(uniswap?.discordData).toEqual({ activeMembers: null, totalMembers: null, lastUpdated: null })
    expect(uniswap?.twitterData.followers).toBeGreaterThan(0)
  })

  it('have shares of posts that sum to exactly one', async () => {
    const records = await get<{ twitterSentiment: { positive: number; neutral: number; negative: number } }>(
      twitterSentimentRoute,
    )
    const tenThousandths = records.map(({ twitterSentiment: { positive, neutral, negative } }) =>
      [positive, neutral, negative].map((share) => share * 10_000),
    )
    for (const shares of tenThousandths) {
      const full = shares.map(Math.round)
      expect(full.every((share, index) => Math.abs(share - (shares[index] ?? 0)) < 1e-6)).toBe(true)
      expect(full.reduce((sum, share) => sum + share)).toBe(10_000)
    }
    // Every mood appears.
    for (const mood of [0, 1, 2]) expect(tenThousandths.some((shares) => (shares[mood] ?? 0) > 1_000)).toBe(true)
  })

  it('contain no text of a post', async () => {
    const [, , , sentiment = []] = await stored()
    expect(Object.keys(sentiment[0] ?? {}).sort()).toEqual([
      ...['dao', 'lexicon', 'model', 'negative_posts', 'negative_share', 'neutral_posts', 'observed_at'],
      ...['positive_posts', 'positive_share', 'provider', 'unknown_posts'],
    ])
  })

  it('do not change when the day is collected again', async () => {
    const texts = () =>
      Promise.all([text('/data/daos/socials?limit=500'), text('/data/daos/twitter-sentiment?limit=500')])
    const before = [await stored(), await texts()]
    await Promise.all([...JOBS, ...JOBS].map(collect))
    expect([await stored(), await texts()]).toEqual(before)
  })

  it.each([
    ['twitter', ['x'], twitter],
    ['discord', ['discord'], discord],
    ['telegram', ['telegram', 'telegram-bot'], telegram],
  ] as const)('are stored for the other networks if %s fails', async (_, providers, failing) => {
    pipeline.clock.now += DAY
    for (const provider of providers) pipeline.upstream.faults.set(provider, { kind: 'status', status: 401 })
    const rest = [twitter, discord, telegram].filter((job) => job !== failing)
    await expect(collect(failing)).rejects.toMatchObject({ code: 'provider_rejected' })
    for (const job of rest) expect((await collect(job)).rows).toBeGreaterThan(0)
    const [aave] = await get<SocialRecord>(socialsRoute, `id=${daoOf('aave').id}`)
    const day = new Date(Math.floor(pipeline.clock.now / DAY) * DAY).toISOString()
    const fresh = { twitter: aave?.twitterData.lastUpdated === day, discord: aave?.discordData.lastUpdated === day }
    expect(fresh).toEqual({ twitter: failing !== twitter, discord: failing !== discord })
  })

  it('use the bot for groups without a count on their page', async () => {
    pipeline.clock.now += DAY
    pipeline.upstream.faults.set('telegram', { kind: 'empty' }, { match: '/Aavesome' })
    const report = await collect(telegram)
    expect(report.providers).toEqual(['telegram', 'telegram-bot'])
    const [newest] = await get<Record<string, unknown>>(historicTelegramRoute, `id=${daoOf('aave').id}&limit=1`)
    expect(newest).toMatchObject({ activeMembers: null, totalMembers: expect.any(Number) })
  })

  it.each([
    ['timeout', { kind: 'timeout' }],
    ['reset', { kind: 'reset' }],
    ['truncate', { kind: 'truncate' }],
    ['content-type', { kind: 'content-type' }],
    ['empty', { kind: 'empty' }],
    ['html 500', { kind: 'status', status: 500 }],
  ] as const)('are not stored on %s, and the job fails', async (_, fault) => {
    pipeline.clock.now += DAY
    const before = await stored()
    const { providers } = pipeline.context.config
    const short = <S extends object>(settings: S) => ({ ...settings, timeoutMs: 100 })
    const config = {
      ...pipeline.context.config,
      providers: {
        ...providers,
        x: short(providers.x),
        discord: short(providers.discord),
        telegram: short(providers.telegram),
        telegramBot: short(providers.telegramBot),
      },
    }
    for (const provider of ['x', 'discord', 'telegram', 'telegram-bot']) pipeline.upstream.faults.set(provider, fault)
    const slot = Math.floor(pipeline.clock.now / DAY) * DAY
    for (const job of JOBS) {
      const collectors = job.connect({ ...pipeline.context, config })
      const run = runJob(job, collectors, { ...pipeline.context, config }, { kind: 'slot', slot, again: true })
      await expect(run, job.name).rejects.toMatchObject({
        code: expect.stringMatching(/^provider_(unavailable|malformed)$/),
      })
    }
    expect(await stored()).toEqual(before)
  })

  it('have changes against exactly 1, 7 and 30 days ago', async () => {
    const dao = daoOf('uniswap').key
    const day = (ago: number) => new Date(Date.parse('2024-06-30T00:00:00Z') - ago * DAY).toISOString()
    const row = (ago: number, followers: number | null) => ({
      dao,
      observed_at: day(ago),
      followers,
      following: 1,
      tweets: 2,
    })
    const rows = [row(0, 1_500), row(1, 1_000), row(6, 10), row(8, 10), row(30, 3_000)]
    await pipeline.database.db.insert({ table: 'twitter_counts', rows })
    pipeline.changeFeed.commit('twitter')
    const read = async () => (await get<SocialRecord>(socialsRoute, `id=${daoOf('uniswap').id}`))[0]?.twitterData
    const changes = { percentChange24h: 50, percentChange7d: null, percentChange30d: -50 }
    expect(await read()).toMatchObject({ followers: 1_500, lastUpdated: day(0), ...changes })
    await pipeline.database.db.insert({ table: 'twitter_counts', rows: [row(-1, null)] })
    pipeline.changeFeed.commit('twitter')
    // The newest day's count is unknown: no earlier count replaces it.
    expect(await read()).toMatchObject({ followers: null, percentChange24h: null, lastUpdated: day(-1) })
  })

  it('have one point a day in every series, newest first', async () => {
    const aave = daoOf('aave')
    for (const route of [
      historicTwitterRoute,
      historicDiscordRoute,
      historicTelegramRoute,
      historicTwitterSentimentRoute,
    ]) {
      const points = await get<Record<string, string>>(route, `id=${aave.id}`)
      const days = points.map((point) => String(point.lastUpdated ?? point.recordedAt).slice(0, 10))
      expect(days).toEqual([...new Set(days)].sort().reverse())
      expect(points.length).toBeGreaterThan(0)
    }
  })
})
