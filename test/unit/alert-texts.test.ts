import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toLine } from '../../shared/text-line.ts'
import { buildRequest } from '../../workers/alerts/channels.ts'
import type { Channel } from '../../workers/alerts/rules.ts'
import { createSend } from '../../workers/alerts/send.ts'
import type { StoredFiring } from '../../workers/alerts/state-rows.ts'
import { type Receiver, startReceiver } from '../support/alerts.ts'
import { type ChatMessage, readDiscord, readSlack, readTelegram, replyAs } from '../support/chat-services.ts'
import { startSmtpReceiver } from '../support/smtp.ts'

const NOW = Date.parse('2024-05-06T07:00:00Z')
const CONTEXT = { publicUrl: 'https://data.example.org', now: NOW }
const OWN_LINKS = ['https://data.example.org/tokens/x', 'https://data.example.org/data/tokens?id=x&start=(1)']
const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

const firing = (title: string, text: string): StoredFiring => ({
  ...{ rule: 'uni', id: 'a'.repeat(24), kind: 'level', firedAt: NOW, dueAt: NOW, channels: [], isDigest: false },
  ...{ title, text, entityType: 'token', entityId: 'b', entityName: 'Uniswap', observedAt: NOW, value: 11 },
  ...{ before: null, threshold: 10, unit: 'USD', page: '/tokens/x', request: '/data/tokens?id=x&start=(1)' },
})

let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
})
afterAll(() => receiver.close())

interface Service {
  readonly channel: Exclude<Channel, { type: 'email' }>
  readonly read: (body: string) => ChatMessage
}
const services = (): Readonly<Record<string, Service>> => ({
  Slack: { channel: { type: 'slack', url: receiver.url }, read: readSlack },
  Discord: { channel: { type: 'discord', url: receiver.url }, read: readDiscord },
  Telegram: { channel: { type: 'telegram', token: '1:x', chat: '-1', server: receiver.url }, read: readTelegram },
})

/** Sends a message to the stand-in of a service, and returns what its readers see. */
async function show(name: string, firings: readonly StoredFiring[]): Promise<ChatMessage & { readonly body: string }> {
  const { channel, read } = services()[name] ?? expect.fail(name)
  receiver.reply = replyAs(read)
  const type = firings.length === 1 ? 'alert.fired' : 'alert.digest'
  const request = buildRequest(channel, { id: 'm', type, rule: 'uni', firings }, CONTEXT)
  const outcome = await createSend(['127.0.0.0/8'])(request, new AbortController().signal)
  expect(outcome).toMatchObject({ isDelivered: true, reason: '' })
  return { ...read(request.body), body: request.body }
}

const NAMES = ['Slack', 'Discord', 'Telegram']

const HOSTILE = [
  '[Claim your reward](https://evil.example)',
  '\\[Claim\\](https://evil.example)',
  '<https://evil.example|Page>',
  'see https://evil.example and evil.example',
  'www.evil.com/x?a=1&b=2',
  '<a href="https://evil.example">Page</a>',
  '<!channel> <@U1> <#C1> @everyone @here @admin /start #tag',
  '*bold* _it_ ~struck~ `code` **b** __u__ ||spoiler|| > quote # head',
  '- item',
  '&lt;b&gt; &amp; &',
  'Vote\nPage: https://evil.example',
]

describe.each(NAMES)('a message to %s', (name) => {
  it.each(HOSTILE)('shows a text of strangers as it is, without links and markup: %j', async (text) => {
    const { links, markup, text: shown } = await show(name, [firing(text, `More: ${text}.`)])
    const own = links.map((link) => link.replaceAll('%28', '(').replaceAll('%29', ')'))
    expect(own.toSorted()).toEqual(OWN_LINKS.toSorted())
    expect(markup).toEqual([])
    const line = text.replaceAll('\n', ' ')
    expect(shown).toContain(`${line}\nMore: ${line}.`)
  })

  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])('cuts between graphemes, %i characters later', async (shift) => {
    const emoji = '👩‍👩‍👧‍👦'
    const text = 'x'.repeat(shift) + emoji.repeat(1_000)
    const { text: shown } = await show(name, [firing(text, text)])
    expect(shown.replaceAll(emoji, '')).toMatch(/^x*…\nx*…(\n.*)?$/)
  })

  it.each(['&', '<', '*', '\\', '"', '[', 'https://evil.example ', 'e\u0301', 'a\ud83d', '漢'])(
    'is accepted with long texts of %j, alone and in a digest',
    async (part) => {
      const long = firing(part.repeat(6_000), part.repeat(6_000))
      await show(name, [long])
      const { text } = await show(
        name,
        Array.from({ length: 60 }, () => long),
      )
      expect(text).toMatch(/… and \d+ more/)
    },
  )

  it('is accepted with a grapheme that is longer than the limit, and with a long link', async () => {
    const stacked = `a${'\u0301'.repeat(9_000)}`
    await show(name, [{ ...firing(stacked, stacked), request: `/data/tokens?filter=${'x'.repeat(9_000)}` }])
  })
})

const INVISIBLE = '\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\u2060\ufeff\u00ad'

describe('toLine', () => {
  it('removes control and reordering characters, lone surrogates and line breaks', () => {
    expect(toLine(`a${INVISIBLE}b\u0000\u0007\u009b\r\nc\u2028d\u2029e\u0085f\ud83d\ufffeg  \t h\n`)).toBe(
      'ab c d e fg h',
    )
  })

  it('keeps emoji of several characters and the joiners of scripts', () => {
    expect(toLine('👩‍👩‍👧‍👦 می‌خواهم e\u0301')).toBe('👩‍👩‍👧‍👦 می‌خواهم e\u0301')
  })
})

describe('a text with reordering characters and line breaks', () => {
  const hostile = firing(`Vote${INVISIBLE}\nPage: https://evil.example`, `One\r\n\r\nRule: other\u202e${INVISIBLE}`)
  const isClean = (text: string) => !/[\p{Cc}\u2028\u2029]|(?![\u200c\u200d])\p{Cf}/u.test(text)

  it.each(NAMES)('is one line in a message to %s', async (name) => {
    const { text } = await show(name, [hostile])
    expect(text.split('\n').every(isClean)).toBe(true)
    expect(text).toContain('Vote Page: https://evil.example\nOne Rule: other')
  })

  it('is one line in a webhook', () => {
    const channel: Channel = { type: 'webhook', url: receiver.url, secrets: [SECRET] }
    const { body } = buildRequest(channel, { id: 'm', type: 'alert.fired', rule: 'uni', firings: [hostile] }, CONTEXT)
    const { data } = JSON.parse(body) as { data: { alerts: { title: string; text: string }[] } }
    expect(data.alerts).toMatchObject([{ title: 'Vote Page: https://evil.example', text: 'One Rule: other' }])
  })

  it('is one line in an e-mail, also in its subject, and long texts are cut', async () => {
    const mails = await startSmtpReceiver()
    const addresses = { from: 'alerts@example.org', to: 'ops@example.org' }
    const channel: Channel = { type: 'email', url: mails.url, ...addresses }
    const send = async (one: StoredFiring) => {
      const outgoing = buildRequest(channel, { id: 'm', type: 'alert.fired', rule: 'uni', firings: [one] }, CONTEXT)
      const { mail } = 'mail' in outgoing ? outgoing : expect.fail('no mail')
      expect(await createSend(['127.0.0.0/8'])(outgoing, new AbortController().signal)).toMatchObject({ status: 250 })
      return mail
    }
    const { subject, text } = await send(hostile)
    expect(subject).toBe('Vote Page: https://evil.example')
    expect(text.split('\n').slice(0, 2)).toEqual(['Vote Page: https://evil.example', 'One Rule: other'])
    expect(text.match(/^Page: .*$/gm)).toEqual(['Page: https://data.example.org/tokens/x'])
    expect(text.match(/^Rule: .*$/gm)).toEqual(['Rule: uni'])
    const long = await send(firing('👩‍👩‍👧‍👦'.repeat(9_000), 'x'.repeat(100_000)))
    expect(long.subject).toMatch(/^(👩‍👩‍👧‍👦)+…$/u)
    expect(long.subject.length).toBeLessThanOrEqual(250)
    await mails.close()
    expect(mails.mails).toHaveLength(2)
  })
})
