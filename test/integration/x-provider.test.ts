import { afterEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { twitterCounts } from '../../shared/datasets/twitter.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { xCounts } from '../../workers/providers/x/counts.ts'
import { xPosts } from '../../workers/providers/x/posts.ts'
import { sendJson, type startProviderServer } from '../provider-server.ts'
import { toTestDao } from '../samples.ts'
import { alfa, closeServers, connect, failure, readTexts } from '../support/social-providers.ts'

type Handler = Parameters<typeof startProviderServer>[0]

const { signal } = new AbortController()
const slot = Date.UTC(2024, 4, 6)
const observed_at = '2024-05-06T00:00:00.000Z'
const plain = parseConfig({})
const bravo: Dao = { ...toTestDao(2, null), twitter: 'https://x.com/bravo' }
const user = (username: string, public_metrics?: object) => ({ id: '1', name: 'A name', username, public_metrics })

afterEach(closeServers)

describe('X counts client', () => {
  const counts = { followers_count: 583_423, following_count: 2_048, listed_count: 1_672 }

  it('reads both names of the number of posts, and null for missing counts', async () => {
    const { server, source } = await connect(xCounts, (_, response) =>
      sendJson(response, {
        data: [user('alfa_dao', { ...counts, tweet_count: 14_052 }), user('bravo', { ...counts, post_count: 7 })],
      }),
    )
    expect(await source.fetchCounts([alfa, bravo], slot, signal)).toEqual({
      ids: new Map([
        [1, '1'],
        [2, '1'],
      ]),
      rows: [
        { dao: 1, observed_at, followers: 583_423, following: 2_048, tweets: 14_052 },
        { dao: 2, observed_at, followers: 583_423, following: 2_048, tweets: 7 },
      ],
      missing: [],
    })
    const { url, headers } = server.requests[0] ?? {}
    expect(url?.pathname).toBe('/2/users/by')
    expect(Object.fromEntries(url?.searchParams ?? [])).toEqual({
      usernames: 'Alfa_DAO,bravo',
      'user.fields': 'public_metrics',
    })
    expect(headers?.authorization).toBe('Bearer x-secret')
  })

  it('keeps the found accounts of a partial response and returns a reason for the others', async () => {
    const { source } = await connect(xCounts, (_, response) =>
      sendJson(response, {
        data: [user('bravo', { followers_count: 5 })],
        errors: [
          { value: 'Alfa_DAO', title: 'Not Found Error', type: 'https://api.x.com/2/problems/resource-not-found' },
        ],
      }),
    )
    const { rows, missing } = await source.fetchCounts([alfa, bravo], slot, signal)
    expect(rows).toEqual([{ dao: 2, observed_at, followers: 5, following: null, tweets: null }])
    expect(missing).toEqual([{ dao: alfa, reason: 'Not Found Error', isExplicit: true }])
    expect(rows.map((row) => twitterCounts.row.safeParse(row).success)).toEqual([true])
  })

  it('returns no row without a found account or a count', async () => {
    const { source } = await connect(xCounts, (_, response) => sendJson(response, { errors: [] }))
    const nobody = await source.fetchCounts([alfa], slot, signal)
    expect(nobody).toMatchObject({ rows: [], missing: [{ dao: alfa, reason: 'not in the answer', isExplicit: false }] })
    const { source: second } = await connect(xCounts, (_, response) => sendJson(response, { data: [user('Alfa_DAO')] }))
    const uncounted = await second.fetchCounts([alfa], slot, signal)
    expect(uncounted).toMatchObject({
      rows: [],
      missing: [{ dao: alfa, reason: 'no counts in the answer', isExplicit: false }],
    })
  })

  it("delays the job until the rate limit's reset, and retries if it has passed", async () => {
    const limited = { title: 'Too Many Requests', detail: 'Too Many Requests', type: 'about:blank', status: 429 }
    const resets = [1, Math.ceil(Date.now() / 1000) + 900]
    const { server, source } = await connect(xCounts, (_, response) => {
      const headers = { 'content-type': 'application/problem+json', 'x-rate-limit-reset': String(resets.shift()) }
      sendJson(response, limited, 429, headers)
    })
    const { code, retryAfterMs } = await failure(source.fetchCounts([alfa], slot, signal))
    expect(code).toBe('provider_unavailable')
    expect(retryAfterMs).toBeGreaterThan(800_000)
    expect(retryAfterMs).toBeLessThanOrEqual(901_000)
    expect(server.requests).toHaveLength(2)
  })

  it('does not retry on the same day if the plan is exhausted', async () => {
    const { server, source } = await connect(xCounts, (_, response) =>
      sendJson(
        response,
        { title: 'UsageCapExceeded', detail: 'Usage cap', type: 'https://api.x.com/2/problems/usage-capped' },
        429,
        { 'x-rate-limit-reset': String(Math.ceil(Date.now() / 1000) + 2) },
      ),
    )
    const { code, message, retryAfterMs = 0 } = await failure(source.fetchCounts([alfa], slot, signal))
    expect(code).toBe('provider_exhausted')
    expect(message).toContain('usage is capped')
    // Not the reset of the rate limit, which is seconds away.
    expect((Date.now() + retryAfterMs) % 86_400_000).toSatisfy((ms: number) => ms < 60_000 || ms > 86_340_000)
    expect(server.requests).toHaveLength(1)
  })

  it.each([
    [
      'without credits',
      402,
      { title: 'CreditsDepleted', type: 'https://api.x.com/2/problems/credits' },
      /no credits left/,
    ],
    ['without credits, by the type', 403, { type: 'https://api.x.com/2/problems/credits-depleted' }, /no credits left/],
    ['at its spending limit', 403, { title: 'SpendCapReached', reset_date: 'soon' }, /spending limit is reached/],
  ])('is exhausted until the next day %s, with one request', async (_, status, body, hint) => {
    const { server, source } = await connect(xCounts, (_, response) => sendJson(response, body, status))
    const { code, message, retryAfterMs = 0 } = await failure(source.fetchCounts([alfa], slot, signal))
    expect([code, message]).toEqual(['provider_exhausted', expect.stringMatching(hint)])
    expect(retryAfterMs).toBeGreaterThan(0)
    expect(retryAfterMs).toBeLessThanOrEqual(86_400_000)
    expect(server.requests).toHaveLength(1)
  })

  it('is exhausted until the reset date of its spending limit', async () => {
    const reset = new Date(Date.now() + 12 * 86_400_000).toISOString().slice(0, 10)
    const body = { title: 'SpendCapReached', reset_date: reset, type: 'https://api.twitter.com/2/problems/credits' }
    const { server, source } = await connect(xCounts, (_, response) => sendJson(response, body, 403))
    for (let request = 0; request < 3; request += 1) {
      const { code, retryAfterMs = 0 } = await failure(source.fetchCounts([alfa], slot, signal))
      expect(code).toBe('provider_exhausted')
      expect(Math.abs(Date.now() + retryAfterMs - Date.parse(reset))).toBeLessThan(60_000)
    }
    expect(server.requests).toHaveLength(1)
  })

  it('returns the other counts if one user is malformed', async () => {
    const users = [null, { username: 7 }, { username: 'Alfa_DAO', public_metrics: { followers_count: 5 } }]
    const { source } = await connect(xCounts, (_, response) => sendJson(response, { data: users, errors: [null] }))
    expect((await source.fetchCounts([alfa], slot, signal)).rows).toMatchObject([{ dao: alfa.key, followers: 5 }])
  })

  it('requires a token, and names its setting but not its value', async () => {
    const { source } = await connect(xCounts, () => {}, { X_BEARER_TOKEN: '' })
    expect(await failure(source.fetchCounts([alfa], slot, signal))).toMatchObject({
      code: 'provider_unconfigured',
      message: expect.stringContaining('X_BEARER_TOKEN'),
    })
    const { source: refused } = await connect(xCounts, (_, response) =>
      sendJson(response, { title: 'Unauthorized', detail: 'x-secret' }, 401),
    )
    const { code, message } = await failure(refused.fetchCounts([alfa], slot, signal))
    expect(code).toBe('provider_rejected')
    expect(message).toContain('X_BEARER_TOKEN')
    expect(message).not.toContain('x-secret')
  })

  it('rejects an unexpected format', async () => {
    const { source } = await connect(xCounts, (_, response) => sendJson(response, { data: 'none' }))
    expect(await failure(source.fetchCounts([alfa], slot, signal))).toMatchObject({ code: 'provider_malformed' })
  })

  it('covers account links only', () => {
    expect(xCounts.covers(alfa, plain)).toBe(true)
    expect(xCounts.covers(toTestDao(3, null), plain)).toBe(false)
    expect(xPosts.covers({ ...alfa, twitter: 'https://twitter.com/i/lists/1' }, plain)).toBe(false)
  })
})

describe('X posts client', () => {
  const post = (n: number, lang = 'en') => ({
    id: String(n),
    text: `post ${n}`,
    edit_history_tweet_ids: [String(n)],
    lang,
  })
  /** Pages of a hundred posts, of 250 in total. */
  const paging: Handler = (_, response, url) => {
    const from = Number(url.searchParams.get('next_token') ?? 0)
    const size = Number(url.searchParams.get('max_results'))
    const data = Array.from({ length: Math.min(size, 250 - from) }, (_, n) => post(from + n))
    const next = from + size < 250 ? { next_token: String(from + size) } : {}
    sendJson(response, { data, meta: { result_count: data.length, ...next } })
  }

  it("reads other accounts' newest posts before the slot, page by page, up to the sample size", async () => {
    const { server, source } = await connect(xPosts, paging, { SENTIMENT_SAMPLE_SIZE: '205' })
    const texts = await readTexts(source, alfa, slot, signal)
    expect(texts).toHaveLength(205)
    expect(new Set(texts).size).toBe(205)
    const requests = server.requests.map(({ url }) => Object.fromEntries(url.searchParams))
    expect(requests.map(({ max_results }) => max_results)).toEqual(['100', '100', '10'])
    expect(requests[0]).toMatchObject({
      query:
        '@Alfa_DAO -from:Alfa_DAO (lang:en OR lang:ar OR lang:de OR lang:es OR lang:fr OR lang:hi OR lang:it OR lang:pt) -is:retweet',
      end_time: '2024-05-05T23:59:00Z',
      'tweet.fields': 'lang',
    })
  })

  it('stops at the last page, and returns an empty list without hits', async () => {
    const { source } = await connect(xPosts, paging, { SENTIMENT_SAMPLE_SIZE: '1000' })
    expect(await readTexts(source, alfa, slot, signal)).toHaveLength(250)
    const { source: quiet } = await connect(xPosts, (_, response) => sendJson(response, { meta: { result_count: 0 } }))
    expect(await readTexts(quiet, alfa, slot, signal)).toEqual([])
    const { server, source: endless } = await connect(xPosts, (_, response) =>
      sendJson(response, { meta: { result_count: 0, next_token: 'again' } }),
    )
    expect(await readTexts(endless, alfa, slot, signal)).toEqual([])
    expect(server.requests).toHaveLength(1)
  })

  it('skips posts in languages that are not judged', async () => {
    const data = [post(1), post(2, 'und'), { id: '3', text: 'post 3' }, post(4, 'es'), post(5, 'ja')]
    const { source } = await connect(xPosts, (_, response) => sendJson(response, { data, meta: { result_count: 5 } }))
    expect(await readTexts(source, alfa, slot, signal)).toEqual(['post 1', 'post 3', 'post 4'])
  })

  it('uses the configured name of its fields parameter', async () => {
    const { server, source } = await connect(xPosts, paging, { X_POST_FIELDS_PARAMETER: 'post.fields' })
    await readTexts(source, alfa, slot, signal)
    expect(server.requests[0]?.url.searchParams.get('post.fields')).toBe('lang')
  })
})
