import { createHmac } from 'node:crypto'
import { toLine } from '../../shared/text-line.ts'
import { toMailName } from './mail-name.ts'
import type { Channel } from './rules.ts'
import { toTime } from './state.ts'
import type { StoredFiring } from './state-rows.ts'
import { cutText, escapeDiscord, escapeMarkup, toTelegramHtml } from './texts.ts'

/** A message to a channel: one firing, or the firings of a digest. `id` stays the same over repeats. */
export interface Message {
  readonly id: string
  readonly type: 'alert.fired' | 'alert.digest' | 'alert.test'
  readonly rule: string
  readonly firings: readonly StoredFiring[]
}

export type ChatService = 'slack' | 'discord' | 'telegram'

/** An HTTP request that delivers a message. */
export interface OutgoingRequest {
  /** A chat service, whose answers are known; undefined for a receiver of the operator. */
  readonly service?: ChatService
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** An e-mail that delivers a message to an SMTP server. */
export interface OutgoingMail {
  readonly url: string
  /** The name in EHLO. */
  readonly name: string
  readonly auth: { readonly user: string; readonly pass: string } | undefined
  readonly mail: {
    readonly from: string
    readonly to: string
    readonly subject: string
    readonly text: string
    readonly html: string
    readonly messageId: string
    readonly date: Date
    readonly headers: Readonly<Record<string, string>>
  }
}

interface MessageContext {
  /** The base URL of links. */
  readonly publicUrl: string
  /** ALERTS_SMTP_NAME. */
  readonly smtpName?: string | undefined
  /** Unix milliseconds. */
  readonly now: number
}

const JSON_HEADERS = { 'content-type': 'application/json', 'user-agent': 'dao-data-alerts' }

type MailChannel = Extract<Channel, { type: 'email' }>

/** Builds the request of a message in the wire format of its channel. */
export function buildRequest(
  channel: Exclude<Channel, MailChannel>,
  message: Message,
  context: MessageContext,
): OutgoingRequest
export function buildRequest(
  channel: Channel,
  message: Message,
  context: MessageContext,
): OutgoingRequest | OutgoingMail
export function buildRequest(
  channel: Channel,
  message: Message,
  context: MessageContext,
): OutgoingRequest | OutgoingMail {
  if (channel.type === 'webhook') return buildWebhook(channel, message, context)
  if (channel.type === 'email') return buildMail(channel, message, context)
  if (channel.type === 'slack') return toJsonRequest('slack', channel.url, toSlack(message, context))
  if (channel.type === 'discord') return toJsonRequest('discord', channel.url, toDiscord(message, context))
  const url = `${channel.server.replace(/\/$/, '')}/bot${channel.token}/sendMessage`
  return toJsonRequest('telegram', url, { chat_id: channel.chat, ...toTelegram(message, context) })
}

const toJsonRequest = (service: ChatService, url: string, body: object): OutgoingRequest => ({
  service,
  url,
  headers: JSON_HEADERS,
  body: JSON.stringify(body),
})

const toLink = (path: string | null, { publicUrl }: MessageContext) => (path === null ? null : `${publicUrl}${path}`)

/** The record of a firing, as `/data/alerts` has it, with absolute links. Stored texts may be those of strangers. */
function toRecord(firing: StoredFiring, context: MessageContext) {
  const { id, rule, firedAt, title, text, entityType, entityId, entityName } = firing
  return {
    _id: id,
    rule,
    firedAt: toTime(firedAt),
    title: toLine(title),
    text: toLine(text),
    entity: entityType === '' ? null : { type: entityType, id: entityId, name: entityName },
    values: {
      observedAt: firing.observedAt === null ? null : toTime(firing.observedAt),
      ...{ value: firing.value, before: firing.before, threshold: firing.threshold },
      unit: firing.unit === '' ? null : firing.unit,
    },
    url: toLink(firing.page, context),
    request: toLink(firing.request, context),
  }
}

/**
 * Standard Webhooks, https://www.standardwebhooks.com: the signature is over id, time and body. There is one signature
 * per secret, so a receiver accepts the old or the new one while it changes its secret.
 */
function buildWebhook(
  { url, secrets }: Extract<Channel, { type: 'webhook' }>,
  { id, type, rule, firings }: Message,
  context: MessageContext,
): OutgoingRequest {
  const [first] = firings
  const body = JSON.stringify({
    type,
    timestamp: toTime(first?.firedAt ?? context.now),
    data: { rule, alerts: firings.map((firing) => toRecord(firing, context)) },
  })
  const timestamp = String(Math.floor(context.now / 1000))
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  })
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
  return { url, headers: { ...JSON_HEADERS, ...headers }, body }
}

const toHeadline = ({ type, rule, firings }: Message) =>
  type === 'alert.digest' ? `${rule}: ${firings.length} alerts` : toLine(firings[0]?.title ?? rule)

const toAnchor = (href: string, label: string) =>
  `<a href="${escapeMarkup(href).replaceAll('"', '&quot;')}">${label}</a>`

/** Limits of the chat services, in UTF-16 code units of the escaped texts; the services count no more than these. */
const MOST_SLACK_BLOCKS = 48
const MOST_SLACK_TITLE = 600
const MOST_SLACK_TEXT = 2_000
const MOST_EMBEDS = 10
const MOST_EMBEDDED = 6_000
const MOST_DISCORD_TITLE = 200
const MOST_DISCORD_TEXT = 280
const MOST_TELEGRAM_TEXT = 4_000
const MOST_TELEGRAM_TITLE = 300
const MOST_TELEGRAM_DETAIL = 500
/** A chat message omits longer links, such as those of long filters. */
const MOST_LINK = 800
/** A digest of thousands of alerts would be too large for mail servers. */
const MOST_MAIL_FIRINGS = 200
const MOST_SUBJECT = 250
const MOST_MAIL_TEXT = 4_000

/** How many firings a message leaves out. */
const toRest = (all: number, most: number) => (all > most ? `… and ${all - most} more` : '')

/** The record of a firing for a chat service. */
function toChatRecord(firing: StoredFiring, context: MessageContext) {
  const { url, request, ...rest } = toRecord(firing, context)
  const toShort = (link: string | null) => (link !== null && link.length <= MOST_LINK ? link : null)
  return { ...rest, url: toShort(url), request: toShort(request) }
}

/**
 * https://docs.slack.dev/messaging/formatting-message-text: `&`, `<` and `>` are control characters in every text. Texts
 * of strangers are plain text, in which Slack detects neither markup nor addresses.
 */
function toSlack(message: Message, context: MessageContext) {
  const { firings } = message
  const blocks = firings.slice(0, MOST_SLACK_BLOCKS).map((firing) => {
    const { title, text, url, request } = toChatRecord(firing, context)
    const lines = [cutText(title, MOST_SLACK_TITLE, escapeMarkup), cutText(text, MOST_SLACK_TEXT, escapeMarkup)]
    const links = [url && `<${escapeMarkup(url)}|Page>`, request && `<${escapeMarkup(request)}|Data>`]
    const shown = links.filter((link) => link).join(' · ')
    return {
      type: 'section',
      text: { type: 'plain_text', text: lines.map(escapeMarkup).join('\n'), emoji: false },
      ...(shown === '' ? {} : { fields: [{ type: 'mrkdwn', text: shown, verbatim: true }] }),
    }
  })
  const rest = toRest(firings.length, MOST_SLACK_BLOCKS)
  const more = rest === '' ? [] : [{ type: 'section', text: { type: 'plain_text', text: rest, emoji: false } }]
  const headline = escapeMarkup(cutText(toHeadline(message), MOST_SLACK_TITLE, escapeMarkup))
  return {
    // Of notifications only, as there are blocks.
    ...{ text: headline, mrkdwn: false, parse: 'none', link_names: false },
    blocks: [...blocks, ...more],
    ...{ unfurl_links: false, unfurl_media: false },
  }
}

/** https://docs.discord.com/developers/resources/webhook#execute-webhook: at most 6,000 characters in all embeds, without mentions, whatever a title contains. */
function toDiscord(message: Message, context: MessageContext) {
  const { firings } = message
  const all = firings.slice(0, MOST_EMBEDS).map((firing) => {
    const { title, text, firedAt, url, request } = toChatRecord(firing, context)
    const target = request?.replaceAll('(', '%28').replaceAll(')', '%29')
    const link = target === undefined ? '' : `\n[Data](${target})`
    return {
      title: escapeDiscord(cutText(title, MOST_DISCORD_TITLE, escapeDiscord)),
      description: `${escapeDiscord(cutText(text, MOST_DISCORD_TEXT, escapeDiscord))}${link}`,
      timestamp: firedAt,
      ...(url === null ? {} : { url }),
    }
  })
  let length = 0
  const tooLong = all.findIndex(({ title, description }) => {
    length += title.length + description.length
    return length > MOST_EMBEDDED
  })
  const embeds = tooLong < 0 ? all : all.slice(0, tooLong)
  const rest = toRest(firings.length, embeds.length)
  const content = message.type === 'alert.digest' ? [toHeadline(message), rest].filter((line) => line).join(' ') : ''
  return { ...(content === '' ? {} : { content }), embeds, allowed_mentions: { parse: [] } }
}

/** https://core.telegram.org/bots/api#sendmessage: HTML, at most 4,096 characters. Firings that do not fit are counted. */
function toTelegram(message: Message, context: MessageContext) {
  const lines: string[] = message.type === 'alert.digest' ? [`<b>${escapeMarkup(toHeadline(message))}</b>`] : []
  let length = lines.join('\n\n').length
  let shown = 0
  for (const firing of message.firings) {
    const { title, text, url, request } = toChatRecord(firing, context)
    const links = [url && toAnchor(url, 'Page'), request && toAnchor(request, 'Data')].filter((link) => link)
    const headline = toTelegramHtml(cutText(title, MOST_TELEGRAM_TITLE, escapeMarkup), 'b')
    const detail = toTelegramHtml(cutText(text, MOST_TELEGRAM_DETAIL, escapeMarkup))
    const line = `${headline}\n${detail}\n${links.join(' · ')}`
    if (shown > 0 && length + line.length > MOST_TELEGRAM_TEXT) break
    lines.push(line)
    length += line.length + 2
    shown += 1
  }
  const rest = toRest(message.firings.length, shown)
  const text = [...lines, ...(rest === '' ? [] : [rest])].join('\n\n')
  return { text, parse_mode: 'HTML', link_preview_options: { is_disabled: true } }
}

/**
 * An e-mail as text and as HTML. `Message-ID` and `Date` are the same at every attempt, so that mail servers and clients
 * recognize a repeat. `Auto-Submitted` prevents automatic replies (RFC 3834, section 5).
 */
function buildMail(channel: MailChannel, message: Message, context: MessageContext): OutgoingMail {
  const { url, user, password, from, to } = channel
  const { id, rule, firings } = message
  const records = firings.slice(0, MOST_MAIL_FIRINGS).map((firing) => {
    const { title, text, ...rest } = toRecord(firing, context)
    return { ...rest, title: cutText(title, MOST_MAIL_TEXT), text: cutText(text, MOST_MAIL_TEXT) }
  })
  const rest = toRest(firings.length, MOST_MAIL_FIRINGS)
  const more = rest === '' ? [] : [rest]
  const texts = records.map((record) =>
    [
      ...[record.title, record.text],
      ...(record.url === null ? [] : [`Page: ${record.url}`]),
      ...(record.request === null ? [] : [`Data: ${record.request}`]),
    ].join('\n'),
  )
  const paragraphs = records.map((record) => {
    const links = [record.url && toAnchor(record.url, 'Page'), record.request && toAnchor(record.request, 'Data')]
    const shown = links.filter((link) => link).join(' · ')
    return `<p><b>${escapeMarkup(record.title)}</b><br>\n${escapeMarkup(record.text)}<br>\n${shown}</p>`
  })
  return {
    url,
    name: toMailName(context.smtpName, context.publicUrl, from),
    auth: user === undefined || password === undefined ? undefined : { user, pass: password },
    mail: {
      ...{ from, to, subject: cutText(toHeadline(message), MOST_SUBJECT) },
      text: `${[...texts, ...more, `Rule: ${rule}`].join('\n\n')}\n`,
      html: `${[...paragraphs, ...more.map((line) => `<p>${line}</p>`), `<p>Rule: ${rule}</p>`].join('\n')}\n`,
      messageId: `<${id}@${from.slice(from.lastIndexOf('@') + 1)}>`,
      date: new Date(firings[0]?.firedAt ?? context.now),
      headers: { 'Auto-Submitted': 'auto-generated' },
    },
  }
}
