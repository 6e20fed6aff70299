import { afterEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { discordMembers } from '../../shared/datasets/discord.ts'
import { discord } from '../../workers/providers/discord/members.ts'
import { telegramBot } from '../../workers/providers/telegram/bot.ts'
import { telegram } from '../../workers/providers/telegram/members.ts'
import { sendJson } from '../provider-server.ts'
import { alfa, closeServers, connect, failure } from '../support/social-providers.ts'

const { signal } = new AbortController()
const observed_at = '2024-05-06T00:00:00.000Z'
const plain = parseConfig({})

afterEach(closeServers)

describe('Discord', () => {
  const invite = { type: 0, code: 'AlFa12', expires_at: null, guild: { id: '1', name: 'Alfa' } }

  it('returns total and online members, with the required user agent', async () => {
    const { server, calls, source } = await connect(discord, (_, response) =>
      sendJson(response, { ...invite, approximate_member_count: 4_321, approximate_presence_count: 345 }),
    )
    expect(await source.fetchMembers(alfa, signal)).toEqual({ active_members: 345, total_members: 4_321 })
    expect(server.requests[0]?.url.href).toMatch(/\/invites\/AlFa12\?with_counts=true$/)
    expect(server.requests[0]?.headers['user-agent']).toBe('DiscordBot (https://data.example, 1.0)')
    expect(server.requests[0]?.headers.authorization).toBeUndefined()
    expect(calls[0]?.path).toBe('/invites/{code}')
  })

  it('sends a bot token if configured', async () => {
    const { server, source } = await connect(discord, (_, response) => sendJson(response, invite), {
      DISCORD_BOT_TOKEN: 'bot',
    })
    await source.fetchMembers(alfa, signal)
    expect(server.requests[0]?.headers.authorization).toBe('Bot bot')
  })

  it('returns a reason without a number for an expired invite, with one request', async () => {
    const { server, source } = await connect(discord, (_, response) =>
      sendJson(response, { message: 'Unknown Invite', code: 10_006 }, 404),
    )
    expect(await source.fetchMembers(alfa, signal)).toBe('Unknown Invite (10006)')
    expect(server.requests).toHaveLength(1)
  })

  it('treats a missing count as unknown, and two as nothing to store', async () => {
    const answers = [{ ...invite, approximate_member_count: 9 }, invite]
    const { source } = await connect(discord, (_, response) => sendJson(response, answers.shift()))
    const members = await source.fetchMembers(alfa, signal)
    expect(members).toEqual({ active_members: null, total_members: 9 })
    expect(discordMembers.row.safeParse({ dao: 1, observed_at, ...(members as object) }).success).toBe(true)
    expect(await source.fetchMembers(alfa, signal)).toBe('no counts in the answer')
    const none = { dao: 1, observed_at, active_members: null, total_members: null }
    expect(discordMembers.row.safeParse(none).success).toBe(false)
  })

  it('waits fractions of seconds, and delays the job for long waits', async () => {
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

  it('parses the code of every form of a link', () => {
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
    ['6&#8239;400&#8239;358 subscribers', 6_400_358, null],
    ['6&#x202F;400&#x202f;358 members, 1&thinsp;102 online', 6_400_358, 1_102],
    ['12\u2009345 members, 1\u3000102 online', 12_345, 1_102],
    ["12'345 members, 1.102 online", 12_345, 1_102],
    ['<span>12 345</span> members', 12_345, null],
    ['6.4M subscribers', 6_400_000, null],
    ['1,5K members, 1,2,3 online', 1_500, null],
  ])('parses "%s"', async (text, total_members, active_members) => {
    expect(await read(extra(text))).toEqual({ active_members, total_members })
  })

  it.each([
    '12 34 subscribers',
    '12 345,678 subscribers',
    'about 12 345 subscribers',
    '1.2345M subscribers',
    '12&unknown;345 members',
    '99999999999999999999 members',
  ])('rejects "%s"', async (text) => {
    expect(await failure(read(extra(text)))).toMatchObject({ code: 'provider_malformed' })
  })

  it('returns a reason without a number for an unknown name and for a person', async () => {
    expect(await read(page(''))).toBe('no such group or channel')
    expect(await read(extra('\n  @alfachat\n'))).toBe('not a group or channel')
  })

  it('returns a reason without a number for a redirect', async () => {
    const { server, source } = await connect(telegram, (_, response) => {
      response.writeHead(302, { location: 'https://telegram.org/' })
      response.end()
    })
    expect(await source.fetchMembers(alfa, signal)).toBe('no such group or channel')
    expect(server.requests).toHaveLength(1)
  })

  it('rejects a page that is not a preview', async () => {
    expect(await failure(read('<html><body>Sign in</body></html>'))).toMatchObject({ code: 'provider_malformed' })
  })

  it("requests the page of the link's name", async () => {
    const { server, calls, source } = await connect(telegram, (_, response) => response.end(extra('5 members')))
    await source.fetchMembers({ ...alfa, telegram: 'https://t.me/+AbC-1_2' }, signal)
    expect(server.requests[0]?.url.pathname).toBe('/+AbC-1_2')
    expect(calls[0]?.path).toBe('/{name}')
    for (const name of ['s/alfa/1', 'abc', '1alfa', '_alfa', 'alfa-chat', 'a'.repeat(33)])
      expect(telegram.covers({ ...alfa, telegram: `https://t.me/${name}` }, plain)).toBe(false)
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

  it('follows the migration of a group once', async () => {
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
  ])('returns a reason without a number on %d', async (status, description) => {
    const { source } = await connect(telegramBot, (_, response) =>
      sendJson(response, error(status, description), status),
    )
    expect(await source.fetchMembers(alfa, signal)).toBe(description)
  })

  it('uses the wait of a 429 response', async () => {
    const { source } = await connect(telegramBot, (_, response) =>
      sendJson(response, error(429, 'Too Many Requests: retry after 500', { retry_after: 500 }), 429),
    )
    expect(await failure(source.fetchMembers(alfa, signal))).toMatchObject({
      code: 'provider_unavailable',
      retryAfterMs: 500_000,
    })
  })

  it('names the setting of an invalid token, but not the token', async () => {
    const { source: wrong } = await connect(telegramBot, (_, response) =>
      sendJson(response, error(401, 'Unauthorized'), 401),
    )
    const refusal = await failure(wrong.fetchMembers(alfa, signal))
    expect(refusal.code).toBe('provider_rejected')
    expect(refusal.message).toContain('TELEGRAM_BOT_TOKEN')
    expect(refusal.message).not.toContain('bot-secret')
  })
})
