import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createUpstream, type Upstream } from '../upstream/server.ts'

const registry = loadRegistry()
const NOW = Date.UTC(2026, 10, 20, 12, 3, 20)
const DAY = 86_400_000
const count = z.int().nonnegative()
/** One request takes at most 100 names. */
const handles = registry.daos
  .flatMap(({ twitter }) => (twitter ? [twitter.slice(twitter.lastIndexOf('/') + 1)] : []))
  .slice(0, 100)

const metrics = { followers_count: count, following_count: count, listed_count: count }
const Users = z.strictObject({
  data: z.array(
    z.strictObject({
      id: z.string().regex(/^\d+$/),
      name: z.string(),
      username: z.string(),
      public_metrics: z.union([
        z.strictObject({ ...metrics, tweet_count: count }),
        z.strictObject({ ...metrics, post_count: count }),
      ]),
    }),
  ),
  errors: z.array(z.looseObject({ value: z.string(), title: z.literal('Not Found Error') })),
})
const Posts = z.strictObject({
  data: z.array(
    z.strictObject({ id: z.string(), text: z.string(), edit_history_tweet_ids: z.array(z.string()), lang: z.string() }),
  ),
  meta: z.strictObject({ newest_id: z.string(), oldest_id: z.string(), result_count: count, next_token: z.string() }),
})

let upstream: Upstream
beforeAll(async () => {
  upstream = await createUpstream({ registry, now: () => NOW })
})
afterAll(() => upstream.close())

const AGENT = 'DiscordBot (https://data.example, 1.0)'
const get = (path: string, headers: Record<string, string> = { authorization: 'Bearer demo', 'user-agent': AGENT }) =>
  fetch(upstream.url + path, { headers })
const Invite = z.looseObject({
  code: z.union([z.string(), z.literal(10_006)]),
  approximate_member_count: count.optional(),
})
const Count = z.looseObject({ ok: z.boolean(), result: count.optional() })
const users = async (at = '') =>
  Users.parse(await (await get(`${at}/x/2/users/by?usernames=${handles}&user.fields=public_metrics`)).json())
const search = (query: string) => get(`/x/2/tweets/search/recent?tweet.fields=lang&${query}`)
const posts = async (query: string) => Posts.parse(await (await search(query)).json())

describe('stand-in of X', () => {
  test('returns counts with both member names, unknown accounts and its rate limit', async () => {
    const { data, errors } = await users()
    expect(data.length + errors.length).toBe(handles.length)
    expect(errors.length).toBeGreaterThan(0)
    expect(data.filter(({ public_metrics }) => 'post_count' in public_metrics).length).toBeGreaterThan(3)
    const { headers } = await get('/x/2/users/by?usernames=aave')
    expect(Number(headers.get('x-rate-limit-reset')) * 1000).toBeGreaterThan(NOW)
    expect((await get('/x/2/users/by?usernames=aave', {})).status).toBe(401)
    expect((await get('/x/2/users/by?usernames=not-a-name')).status).toBe(400)
  })

  test('changes slowly from day to day, equally for all clients', async () => {
    const [before, after] = [await users(`/at/${NOW - 30 * DAY}`), await users(`/at/${NOW}`)]
    expect(after).toEqual(await users())
    const ratios = after.data.map(
      ({ public_metrics }, index) =>
        public_metrics.followers_count / (before.data[index]?.public_metrics.followers_count ?? Number.NaN),
    )
    expect(ratios.every((ratio) => ratio > 0.97 && ratio < 1.1)).toBe(true)
    expect(new Set(ratios).size).toBeGreaterThan(40)
  })

  test('pages through posts, newest first, with mixed words', async () => {
    const query = `query=${encodeURIComponent('@aave -from:aave lang:en -is:retweet')}`
    const full = await posts(`${query}&max_results=60`)
    const first = await posts(`${query}&max_results=30`)
    const second = await posts(`${query}&max_results=30&next_token=${first.meta.next_token}`)
    expect([...first.data, ...second.data]).toEqual(full.data)
    const ids = full.data.map(({ id }) => BigInt(id))
    expect(ids.every((id, index) => index === 0 || id < (ids[index - 1] ?? 0n))).toBe(true)
    expect(new Set(full.data.map(({ text }) => text)).size).toBeGreaterThan(15)
    expect(await (await search('query=%40nobody_at_all')).json()).toEqual({ meta: { result_count: 0 } })
    expect((await search(`${query}&max_results=9`)).status).toBe(400)
    expect((await search(`${query}&end_time=${new Date(NOW).toISOString()}`)).status).toBe(400)
  })
})

describe('stand-in of Discord', () => {
  test("returns invites with and without counts, unknown ones, and requires a bot's user agent", async () => {
    const codes = registry.daos.flatMap(({ discord }) => (discord ? [discord.slice(discord.lastIndexOf('/') + 1)] : []))
    const answers = await Promise.all(
      codes.map(async (code) =>
        Invite.parse(await (await get(`/discord/api/v10/invites/${code}?with_counts=true`)).json()),
      ),
    )
    const kinds = { counted: 0, uncounted: 0, unknown: 0 }
    for (const answer of answers) {
      kinds[answer.code === 10_006 ? 'unknown' : 'approximate_member_count' in answer ? 'counted' : 'uncounted'] += 1
    }
    expect(kinds.counted).toBeGreaterThan(30)
    expect(kinds.unknown).toBeGreaterThan(0)
    expect(kinds.uncounted).toBeGreaterThan(0)
    expect((await get('/discord/api/v10/invites/CvKUrqM', { 'user-agent': 'curl/8' })).status).toBe(403)
    upstream.faults.set('discord', { kind: 'status', status: 429 }, { times: 1 })
    const limited = await get('/discord/api/v10/invites/CvKUrqM')
    expect(limited.status).toBe(429)
    expect(await limited.json()).toMatchObject({ retry_after: 0.25 })
  })
})

describe('stand-in of Telegram', () => {
  test('returns groups, channels, persons and unknown names, with equal counts of its bot', async () => {
    const names = registry.daos.flatMap(({ telegram }) =>
      telegram ? [telegram.slice(telegram.lastIndexOf('/') + 1)] : [],
    )
    const kinds = { group: 0, channel: 0, other: 0 }
    for (const name of names) {
      const html = await (await get(`/telegram/${name}`)).text()
      const [, total] =
        /tgme_page_extra">([\d\u00a0 ]+) (?:members|subscribers)/.exec(html.replaceAll('&#8239;', ' ')) ?? []
      kinds[html.includes(' online') ? 'group' : html.includes(' subscribers') ? 'channel' : 'other'] += 1
      const answer = Count.parse(await (await get(`/telegram-bot/bot1:a/getChatMemberCount?chat_id=@${name}`)).json())
      expect(answer.ok).toBe(total !== undefined)
      if (total !== undefined) expect(answer.result).toBe(Number(total.replace(/\D/g, '')))
    }
    expect(kinds.group).toBeGreaterThan(10)
    expect(kinds.channel).toBeGreaterThan(0)
    expect(kinds.other).toBeGreaterThan(0)
    expect((await get('/telegram-bot/bot/getChatMemberCount')).status).toBe(401)
    const noName = await fetch(`${upstream.url}/telegram/abc`, { redirect: 'manual' })
    expect([noName.status, noName.headers.get('location')]).toEqual([302, 'https://telegram.org/'])
  })
})
