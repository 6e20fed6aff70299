import { afterEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config.ts'
import { discordMembers } from '../../shared/datasets/discord.ts'
import { twitterCounts } from '../../shared/datasets/twitter.ts'
import type { Dao } from '../../shared/registry/registry.ts'
import type { Entity, Provider } from '../../workers/define.ts'
import { discord } from '../../workers/providers/discord.ts'
import { telegram } from '../../workers/providers/telegram.ts'
import { telegramBot } from '../../workers/providers/telegram-bot.ts'
import { xCounts } from '../../workers/providers/x-counts.ts'
import { xPosts } from '../../workers/providers/x-posts.ts'
import { createObservedClients, sendJson, startProviderServer } from '../provider-server.ts'
import { toTestDao } from '../samples.ts'
import { silent } from '../support/silent.ts'

type Handler = Parameters<typeof startProviderServer>[0]

const { signal } = new AbortController()
const slot = Date.UTC(2024, 4, 6)
const observed_at = '2024-05-06T00:00:00.000Z'
const closers: (() => Promise<void>)[] = []

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

async function connect<Source, E extends Entity>(
  provider: Provider<Source, E>,
  handler: Handler,
  settings: Record<string, string> = {},
) {
  const server = await startProviderServer(handler)
  closers.push(server.close)
  const config = parseConfig({
    PUBLIC_URL: 'https://data.example',
    X_BASE_URL: server.baseUrl,
    X_BEARER_TOKEN: 'x-secret',
    X_REQUESTS_PER_MINUTE: '60000',
    DISCORD_BASE_URL: server.baseUrl,
    DISCORD_REQUESTS_PER_MINUTE: '60000',
    TELEGRAM_BASE_URL: server.baseUrl,
    TELEGRAM_BOT_BASE_URL: server.baseUrl,
    TELEGRAM_BOT_TOKEN: '123:bot-secret',
    TELEGRAM_REQUESTS_PER_MINUTE: '60000',
    ...settings,
  })
  const { http, calls } = createObservedClients()
  return { server, calls, source: provider.connect({ config, http, log: silent }) }
}

const plain = parseConfig({})
const alfa: Dao = {
  ...toTestDao(1, null),
  twitter: 'https://twitter.com/Alfa_DAO',
  discord: 'https://discord.gg/AlFa12',
  telegram: 'https://t.me/alfachat',
}
const bravo: Dao = { ...toTestDao(2, null), twitter: 'https://x.com/bravo' }
const user = (username: string, public_metrics?: object) => ({ id: '1', name: 'A name', username, public_metrics })
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => {
      throw new Error('nothing failed')
    },
    (error: unknown) => error as { code: string; message: string; retryAfterMs?: number },
  )

describe('X counts', () => {
  const counts = { followers_count: 583_423, following_count: 2_048, listed_count: 1_672 }

  it('reads both names of the number of posts, and what it cannot have of others', async () => {
    const { server, source } = await connect(xCounts, (_, response) =>
      sendJson(response, {
        data: [user('alfa_dao', { ...counts, tweet_count: 14_052 }), user('bravo', { ...counts, post_count: 7 })],
      }),
    )
    expect(await source.fetchCounts([alfa, bravo], slot, signal)).toEqual({
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

  it('keeps the found of a partial answer and names the others with their reason', async () => {
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
    expect(missing).toEqual([{ dao: 'dao-1', reason: 'Not Found Error' }])
    expect(rows.map((row) => twitterCounts.row.safeParse(row).success)).toEqual([true])
  })

  it('has no row where nobody is found or nothing is counted', async () => {
    const { source } = await connect(xCounts, (_, response) => sendJson(response, { errors: [] }))
    const nobody = await source.fetchCounts([alfa], slot, signal)
    expect(nobody).toEqual({ rows: [], missing: [{ dao: 'dao-1', reason: 'not in the answer' }] })
    const { source: other } = await connect(xCounts, (_, response) => sendJson(response, { data: [user('Alfa_DAO')] }))
    const uncounted = await other.fetchCounts([alfa], slot, signal)
    expect(uncounted).toEqual({ rows: [], missing: [{ dao: 'dao-1', reason: 'no counts in the answer' }] })
  })

  it('asks for a hundred names at once', async () => {
    const many = Array.from({ length: 230 }, (_, index) => ({
      ...toTestDao(index, null),
      twitter: `https://twitter.com/dao${index}`,
    }))
    const { server, source } = await connect(xCounts, (_, response, url) => {
      const names = url.searchParams.get('usernames')?.split(',') ?? []
      sendJson(response, { data: names.map((name) => user(name, { followers_count: names.length })) })
    })
    const { rows } = await source.fetchCounts(many, slot, signal)
    expect(server.requests).toHaveLength(3)
    expect(rows).toHaveLength(230)
    expect(rows.at(-1)?.followers).toBe(30)
  })

  it('waits for the end of its rate limit, and tells the queue how long where that is far', async () => {
    const resets = [Math.ceil(Date.now() / 1000) + 1]
    const limited = { title: 'Too Many Requests', detail: 'Too Many Requests', type: 'about:blank', status: 429 }
    const { server, source } = await connect(xCounts, (_, response) => {
      const reset = resets.shift()
      if (reset === undefined) return sendJson(response, { data: [user('Alfa_DAO', counts)] })
      const headers = { 'content-type': 'application/problem+json', 'x-rate-limit-reset': String(reset) }
      sendJson(response, limited, 429, headers)
    })
    const begun = Date.now()
    const firstReset = (resets[0] ?? 0) * 1000
    expect((await source.fetchCounts([alfa], slot, signal)).rows).toHaveLength(1)
    expect(server.requests).toHaveLength(2)
    expect(Date.now()).toBeGreaterThanOrEqual(Math.max(begun, firstReset))

    resets.push(Math.ceil(Date.now() / 1000) + 900)
    const { code, retryAfterMs } = await failure(source.fetchCounts([alfa], slot, signal))
    expect(code).toBe('provider_unavailable')
    expect(retryAfterMs).toBeGreaterThan(890_000)
    expect(server.requests).toHaveLength(3)
  })

  it('does not come back on the same day once the plan is used up', async () => {
    const { server, source } = await connect(xCounts, (_, response) =>
      sendJson(
        response,
        { title: 'UsageCapExceeded', detail: 'Usage cap', type: 'https://api.x.com/2/problems/usage-capped' },
        429,
        { 'x-rate-limit-reset': String(Math.ceil(Date.now() / 1000) + 2) },
      ),
    )
    const { code, message } = await failure(source.fetchCounts([alfa], slot, signal))
    expect(code).toBe('provider_rejected')
    expect(message).toContain('usage is capped')
    expect(server.requests).toHaveLength(1)
  })

  it('needs a token, names its setting and never shows it', async () => {
    const { source } = await connect(xCounts, () => {}, { X_BEARER_TOKEN: '' })
    expect(await failure(source.fetchCounts([alfa], slot, signal))).toMatchObject({
      code: 'provider_rejected',
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

  it('refuses an answer of another shape', async () => {
    const { source } = await connect(xCounts, (_, response) => sendJson(response, { data: 'none' }))
    expect(await failure(source.fetchCounts([alfa], slot, signal))).toMatchObject({ code: 'provider_malformed' })
  })

  it('covers accounts only', () => {
    expect(xCounts.covers(alfa, plain)).toBe(true)
    expect(xCounts.covers(toTestDao(3, null), plain)).toBe(false)
    expect(xPosts.covers({ ...alfa, twitter: 'https://twitter.com/i/lists/1' }, plain)).toBe(false)
  })
})

describe('X posts', () => {
  const post = (n: number, lang = 'en') => ({
    id: String(n),
    text: `post ${n}`,
    edit_history_tweet_ids: [String(n)],
    lang,
  })
  /** Pages of a hundred, of 250 posts at all. */
  const paging: Handler = (_, response, url) => {
    const from = Number(url.searchParams.get('next_token') ?? 0)
    const size = Number(url.searchParams.get('max_results'))
    const data = Array.from({ length: Math.min(size, 250 - from) }, (_, n) => post(from + n))
    const next = from + size < 250 ? { next_token: String(from + size) } : {}
    sendJson(response, { data, meta: { result_count: data.length, ...next } })
  }

  it('reads the newest posts of others before the slot, page by page, up to the sample', async () => {
    const { server, source } = await connect(xPosts, paging, { SENTIMENT_SAMPLE_SIZE: '205' })
    const texts = await source.fetchTexts(alfa, slot, signal)
    expect(texts).toHaveLength(205)
    expect(new Set(texts).size).toBe(205)
    const asked = server.requests.map(({ url }) => Object.fromEntries(url.searchParams))
    expect(asked.map(({ max_results }) => max_results)).toEqual(['100', '100', '10'])
    expect(asked[0]).toMatchObject({
      query: '@Alfa_DAO -from:Alfa_DAO lang:en -is:retweet',
      end_time: '2024-05-05T23:59:00Z',
      'tweet.fields': 'lang',
    })
  })

  it('ends with the last page, and takes no hits for none', async () => {
    const { source } = await connect(xPosts, paging, { SENTIMENT_SAMPLE_SIZE: '1000' })
    expect(await source.fetchTexts(alfa, slot, signal)).toHaveLength(250)
    const { source: quiet } = await connect(xPosts, (_, response) => sendJson(response, { meta: { result_count: 0 } }))
    expect(await quiet.fetchTexts(alfa, slot, signal)).toEqual([])
    const { server, source: endless } = await connect(xPosts, (_, response) =>
      sendJson(response, { meta: { result_count: 0, next_token: 'again' } }),
    )
    expect(await endless.fetchTexts(alfa, slot, signal)).toEqual([])
    expect(server.requests).toHaveLength(1)
  })

  it('leaves out what is not in English', async () => {
    const { source } = await connect(xPosts, (_, response) =>
      sendJson(response, { data: [post(1), post(2, 'und'), { id: '3', text: 'post 3' }], meta: { result_count: 3 } }),
    )
    expect(await source.fetchTexts(alfa, slot, signal)).toEqual(['post 1', 'post 3'])
  })

  it('uses the other name of its parameter where the setting says so', async () => {
    const { server, source } = await connect(xPosts, paging, { X_POST_FIELDS_PARAMETER: 'post.fields' })
    await source.fetchTexts(alfa, slot, signal)
    expect(server.requests[0]?.url.searchParams.get('post.fields')).toBe('lang')
  })
})

describe('Discord', () => {
  const invite = { type: 0, code: 'AlFa12', expires_at: null, guild: { id: '1', name: 'Alfa' } }

  it('counts members and those online, as the client that the host requires', async () => {
    const { server, calls, source } = await connect(discord, (_, response) =>
      sendJson(response, { ...invite, approximate_member_count: 4_321, approximate_presence_count: 345 }),
    )
    expect(await source.fetchMembers(alfa, signal)).toEqual({ active_members: 345, total_members: 4_321 })
    expect(server.requests[0]?.url.href).toMatch(/\/invites\/AlFa12\?with_counts=true$/)
    expect(server.requests[0]?.headers['user-agent']).toBe('DiscordBot (https://data.example, 1.0)')
    expect(server.requests[0]?.headers.authorization).toBeUndefined()
    expect(calls[0]?.path).toBe('/invites/{code}')
  })

  it('shows a bot token where there is one', async () => {
    const { server, source } = await connect(discord, (_, response) => sendJson(response, invite), {
      DISCORD_BOT_TOKEN: 'bot',
    })
    await source.fetchMembers(alfa, signal)
    expect(server.requests[0]?.headers.authorization).toBe('Bot bot')
  })

  it('has a reason and no number for an expired invite, and does not ask again', async () => {
    const { server, source } = await connect(discord, (_, response) =>
      sendJson(response, { message: 'Unknown Invite', code: 10_006 }, 404),
    )
    expect(await source.fetchMembers(alfa, signal)).toBe('Unknown Invite (10006)')
    expect(server.requests).toHaveLength(1)
  })

  it('takes a missing count for unknown, and two for nothing to store', async () => {
    const answers = [{ ...invite, approximate_member_count: 9 }, invite]
    const { source } = await connect(discord, (_, response) => sendJson(response, answers.shift()))
    const members = await source.fetchMembers(alfa, signal)
    expect(members).toEqual({ active_members: null, total_members: 9 })
    expect(discordMembers.row.safeParse({ dao: 1, observed_at, ...(members as object) }).success).toBe(true)
    expect(await source.fetchMembers(alfa, signal)).toBe('no counts in the answer')
    const none = { dao: 1, observed_at, active_members: null, total_members: null }
    expect(discordMembers.row.safeParse(none).success).toBe(false)
  })

  it('waits fractions of seconds, and tells the queue of long waits', async () => {
    const waits = [0.05]
    const limit = { message: 'You are being rate limited.', global: false }
    const { server, source } = await connect(discord, (_, response) => {
      const retry_after = waits.shift()
      if (retry_after === undefined) return sendJson(response, { ...invite, approximate_member_count: 9 })
      // The header rounds up to whole seconds; the body is exact.
      sendJson(response, { ...limit, retry_after }, 429, { 'retry-after': '7200' })
    })
    expect(await source.fetchMembers(alfa, signal)).toMatchObject({ total_members: 9 })
    expect(server.requests).toHaveLength(2)
    waits.push(64.57)
    expect(await failure(source.fetchMembers(alfa, signal))).toMatchObject({
      code: 'provider_unavailable',
      retryAfterMs: 64_570,
    })
  })

  it('finds the code in every form of a link', () => {
    const covers = (link: string | null) => discord.covers({ ...alfa, discord: link }, plain)
    for (const host of ['discord.gg', 'discord.com/invite', 'discordapp.com/invite', 'www.discord.com/invite']) {
      expect(covers(`https://${host}/AlFa12`)).toBe(true)
    }
    expect([covers('https://discord.com/channels/1/2'), covers('https://alfa.example/chat'), covers(null)]).toEqual([
      ...[false, false, false],
    ])
  })
})

describe('Telegram pages', () => {
  const page = (extra: string) =>
    `<html><head><meta property="og:title" content="Alfa"></head><body><div class="tgme_page">
<div class="tgme_page_title"><span>Alfa</span></div>${extra}</div></body></html>`
  const extra = (text: string) => page(`<div class="tgme_page_extra">${text}</div>`)
  const read = async (html: string) => {
    const { source } = await connect(telegram, (_, response) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
      response.end(html)
    })
    return source.fetchMembers(alfa, signal)
  }

  it.each([
    ['12 345 members, 102 online', 12_345, 102],
    ['12\u00a0345 members, 1\u00a0102 online', 12_345, 1_102],
    ['1&nbsp;012&nbsp;345 members, 102 online', 1_012_345, 102],
    ['12,345 members', 12_345, null],
    ['1 234 subscribers', 1_234, null],
    ['1 subscriber', 1, null],
  ])('reads "%s"', async (text, total_members, active_members) => {
    expect(await read(extra(text))).toEqual({ active_members, total_members })
  })

  it('has a reason and no number for an unknown name and for a person', async () => {
    expect(await read(page(''))).toBe('no such group or channel')
    expect(await read(extra('\n  @alfachat\n'))).toBe('not a group or channel')
  })

  it('refuses a page that is no preview', async () => {
    expect(await failure(read('<html><body>Sign in</body></html>'))).toMatchObject({ code: 'provider_malformed' })
  })

  it('asks for the page of the name in the link', async () => {
    const { server, calls, source } = await connect(telegram, (_, response) => response.end(extra('5 members')))
    await source.fetchMembers({ ...alfa, telegram: 'https://t.me/+AbC-1_2' }, signal)
    expect(server.requests[0]?.url.pathname).toBe('/+AbC-1_2')
    expect(calls[0]?.path).toBe('/{name}')
    expect(telegram.covers({ ...alfa, telegram: 'https://t.me/s/alfa/1' }, plain)).toBe(false)
  })
})

describe("Telegram's Bot API", () => {
  const error = (error_code: number, description: string, parameters?: object) => ({
    ok: false,
    error_code,
    description,
    parameters,
  })

  it('counts the members of a public name', async () => {
    const { server, calls, source } = await connect(telegramBot, (_, response) =>
      sendJson(response, { ok: true, result: 12_345 }),
    )
    expect(await source.fetchMembers(alfa, signal)).toEqual({ active_members: null, total_members: 12_345 })
    expect(server.requests[0]?.url.pathname).toBe('/bot123:bot-secret/getChatMemberCount')
    expect(server.requests[0]?.url.searchParams.get('chat_id')).toBe('@alfachat')
    expect(JSON.stringify(calls)).not.toContain('bot-secret')
    const withToken = parseConfig({ TELEGRAM_BOT_TOKEN: '1:a' })
    expect(telegramBot.covers(alfa, withToken)).toBe(true)
    expect(telegramBot.covers({ ...alfa, telegram: 'https://t.me/+AbC' }, withToken)).toBe(false)
    expect(telegramBot.covers(alfa, parseConfig({}))).toBe(false)
  })

  it('follows a group to what it became, once', async () => {
    const moved = error(400, 'Bad Request: group chat was upgraded', { migrate_to_chat_id: -1_001_234 })
    const answers: [object, number][] = [
      [moved, 400],
      [{ ok: true, result: 7 }, 200],
      [moved, 400],
      [moved, 400],
    ]
    const { server, source } = await connect(telegramBot, (_, response) => {
      const [body, status] = answers.shift() ?? [{}, 500]
      sendJson(response, body, status)
    })
    expect(await source.fetchMembers(alfa, signal)).toMatchObject({ total_members: 7 })
    expect(server.requests[1]?.url.searchParams.get('chat_id')).toBe('-1001234')
    expect(await source.fetchMembers(alfa, signal)).toBe('Bad Request: group chat was upgraded')
    expect(server.requests).toHaveLength(4)
  })

  it.each([
    [400, 'Bad Request: chat not found'],
    [403, 'Forbidden: bot was kicked from the supergroup chat'],
  ])('has a reason and no number on %d', async (status, description) => {
    const { source } = await connect(telegramBot, (_, response) =>
      sendJson(response, error(status, description), status),
    )
    expect(await source.fetchMembers(alfa, signal)).toBe(description)
  })

  it('waits as long as it is told', async () => {
    const { source } = await connect(telegramBot, (_, response) =>
      sendJson(response, error(429, 'Too Many Requests: retry after 500', { retry_after: 500 }), 429),
    )
    expect(await failure(source.fetchMembers(alfa, signal))).toMatchObject({
      code: 'provider_unavailable',
      retryAfterMs: 500_000,
    })
  })

  it('names the setting of a wrong token, and never the token', async () => {
    const { source: wrong } = await connect(telegramBot, (_, response) =>
      sendJson(response, error(401, 'Unauthorized'), 401),
    )
    const refusal = await failure(wrong.fetchMembers(alfa, signal))
    expect(refusal.code).toBe('provider_rejected')
    expect(refusal.message).toContain('TELEGRAM_BOT_TOKEN')
    expect(refusal.message).not.toContain('bot-secret')
  })
})
