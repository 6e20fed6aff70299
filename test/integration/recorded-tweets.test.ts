import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Dao } from '../../shared/registry/entities.ts'
import { toCounts, xCounts } from '../../workers/providers/x/counts.ts'
import { toPosts, xPosts } from '../../workers/providers/x/posts.ts'
import { sendJson } from '../provider-server.ts'
import { toTestDao } from '../samples.ts'
import { alfa, closeServers, connect, failure, readTexts } from '../support/social-providers.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const folder = join(dataDir, 'fixtures-twitter-tweepy')
const isThere = existsSync(folder)
if (!isThere) console.log(`no recordings at ${folder}: their tests are skipped`)

interface Recording<Body> {
  request: { uri: string }
  response: { headers: Record<string, string[]>; body: Body }
}
interface Posts {
  data: { id: string; text: string }[]
  meta?: { next_token?: string }
}
interface OldUser {
  screen_name: string
  followers_count: number
  friends_count: number
  statuses_count: number
}

const read = <Body>(name: string): Recording<Body>[] => JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'))
const { signal } = new AbortController()
const slot = Date.UTC(2024, 4, 6)
const toDao = (key: number, name: string): Dao => ({ ...toTestDao(key, null), twitter: `https://twitter.com/${name}` })

afterEach(closeServers)

describe.skipIf(!isThere)('recorded responses of X', () => {
  it('store no counts for users without metrics', () => {
    for (const { response } of [...read('test_client_get_users'), ...read('test_asyncclient_get_users')]) {
      const { rows, missing } = toCounts(response.body, [toDao(1, 'twitter'), toDao(2, 'TwitterDev')], slot)
      expect(rows).toEqual([])
      expect(missing.map(({ reason }) => reason)).toEqual(['no counts in the answer', 'no counts in the answer'])
    }
  })

  it('store the exact counts of the older API', () => {
    const users = read<OldUser[]>('testlookupusers').flatMap(({ response }) => response.body)
    users.push(...read<OldUser>('testgetuser').map(({ response }) => response.body))
    expect(users.length).toBeGreaterThan(2)
    // The same account was recorded several times, at different times.
    for (const { screen_name, followers_count, friends_count, statuses_count } of users) {
      const public_metrics = { followers_count, following_count: friends_count, tweet_count: statuses_count }
      const answer = { data: [{ username: screen_name, public_metrics }] }
      expect(toCounts(answer, [toDao(1, screen_name.toUpperCase())], slot)).toMatchObject({
        rows: [{ dao: 1, followers: followers_count, following: friends_count, tweets: statuses_count }],
        missing: [],
      })
    }
    expect(users.map((user) => user.followers_count)).toContain(59_112_688)
  })

  it('have the texts of searches and timelines and the token of the next page', () => {
    for (const name of ['search_recent_tweets', 'get_users_tweets', 'get_users_mentions', 'get_tweets']) {
      for (const { response } of read<Posts>(`test_client_${name}`)) {
        // A lookup of posts by id has no pages.
        const { data = [], meta } = toPosts({ data: response.body.data, meta: response.body.meta ?? {} })
        expect(data.map((post) => post?.text)).toEqual(response.body.data.map(({ text }) => text))
        expect(meta.next_token).toBe(response.body.meta?.next_token)
      }
    }
  })

  it('are read page by page for searches', async () => {
    const [page] = read<Posts>('test_client_search_recent_tweets')
    if (page === undefined) throw new Error('the recording is empty')
    const { body, headers } = page.response
    const { server, source } = await connect(
      xPosts,
      (_, response, url) => {
        const isLast = url.searchParams.has('next_token')
        const sent = Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, values.join(', ')]))
        sendJson(response, isLast ? { ...body, meta: {} } : body, 200, sent)
      },
      { SENTIMENT_SAMPLE_SIZE: '15' },
    )
    const texts = await readTexts(source, alfa, slot, signal)
    expect(texts).toEqual([...body.data, ...body.data].slice(0, 15).map(({ text }) => text))
    expect(server.requests.map(({ url }) => url.searchParams.get('next_token'))).toEqual([null, body.meta?.next_token])
  })

  it('have the remaining quota of rate limits, and a reset in the past causes no wait', async () => {
    const [{ response: recorded } = { response: { headers: {} as Record<string, string[]>, body: {} } }] =
      read<object>('test_client_get_users')
    const [remaining, reset] = ['x-rate-limit-remaining', 'x-rate-limit-reset'].map(
      (name) => recorded.headers[name]?.[0] ?? '',
    )
    const headers = { 'x-rate-limit-remaining': remaining ?? '', 'x-rate-limit-reset': reset ?? '' }
    const { calls, source } = await connect(xCounts, (_, response) => sendJson(response, recorded.body, 200, headers))
    await source.fetchCounts([alfa], slot, signal)
    expect(calls[0]?.remainingQuota).toBe(299)
    const { source: limited } = await connect(xCounts, (_, response) => sendJson(response, {}, 429, headers))
    expect((await failure(limited.fetchCounts([alfa], slot, signal))).retryAfterMs).toBeUndefined()
  })
})
