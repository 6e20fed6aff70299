import { createHmac } from 'node:crypto'
import type { Channel } from './rules.ts'
import { type StoredFiring, toTime } from './state.ts'

/** A message to a channel: one firing, or the firings of a digest. `id` stays the same over repeats. */
export interface Message {
  readonly id: string
  readonly type: 'alert.fired' | 'alert.digest' | 'alert.test'
  readonly rule: string
  readonly firings: readonly StoredFiring[]
}

/** An HTTP request that delivers a message. */
export interface OutgoingRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** An e-mail that delivers a message to an SMTP server. */
export interface OutgoingMail {
  readonly url: string
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
  if (channel.type === 'slack') return toJsonRequest(channel.url, toSlack(message, context))
  if (channel.type === 'discord') return toJsonRequest(channel.url, toDiscord(message, context))
  const url = `${channel.server.replace(/\/$/, '')}/bot${channel.token}/sendMessage`
  return toJsonRequest(url, { chat_id: channel.chat, ...toTelegram(message, context) })
}

const toJsonRequest = (url: string, body: object): OutgoingRequest => ({
  url,
  headers: JSON_HEADERS,
  body: JSON.stringify(body),
})

const toLink = (path: string | null, { publicUrl }: MessageContext) => (path === null ? null : `${publicUrl}${path}`)

/** The record of a firing, as `/data/alerts` has it, with absolute links. */
function toRecord(firing: StoredFiring, context: MessageContext) {
  const { id, rule, firedAt, title, text, entityType, entityId, entityName } = firing
  return {
    _id: id,
    rule,
    firedAt: toTime(firedAt),
    title,
    text,
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
  type === 'alert.digest' ? `${rule}: ${firings.length} alerts` : (firings[0]?.title ?? rule)

const cut = (text: string, most: number) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`)

const escapeMarkup = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const toAnchor = (href: string, label: string) =>
  `<a href="${escapeMarkup(href).replaceAll('"', '&quot;')}">${label}</a>`

/** Limits of the chat services. */
const MOST_SLACK_BLOCKS = 48
const MOST_SLACK_TEXT = 2_800
const MOST_EMBEDS = 10
const MOST_TELEGRAM_TEXT = 4_000
/** A digest of thousands of alerts would be too large for mail servers. */
const MOST_MAIL_FIRINGS = 200

/** How many firings a message leaves out. */
const toRest = (all: number, most: number) => (all > most ? `… and ${all - most} more` : '')

/** https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks: `&`, `<` and `>` are markup. */
function toSlack(message: Message, context: MessageContext) {
  const { firings } = message
  const blocks = firings.slice(0, MOST_SLACK_BLOCKS).map((firing) => {
    const { title, text, url, request } = toRecord(firing, context)
    const links = [url && `<${url}|Page>`, request && `<${request}|Data>`].filter((link) => link).join(' · ')
    const body = `*${escapeMarkup(title)}*\n${escapeMarkup(cut(text, MOST_SLACK_TEXT - 800))}\n${links}`
    return { type: 'section', text: { type: 'mrkdwn', text: cut(body, MOST_SLACK_TEXT) } }
  })
  const rest = toRest(firings.length, MOST_SLACK_BLOCKS)
  const more = rest === '' ? [] : [{ type: 'section', text: { type: 'mrkdwn', text: rest } }]
  return { text: escapeMarkup(toHeadline(message)), blocks: [...blocks, ...more], unfurl_links: false }
}

/** https://docs.discord.com/developers/resources/webhook#execute-webhook: at most 6,000 characters in all embeds, without mentions, whatever a title contains. */
function toDiscord(message: Message, context: MessageContext) {
  const { firings } = message
  const embeds = firings.slice(0, MOST_EMBEDS).map((firing) => {
    const { title, text, firedAt, url, request } = toRecord(firing, context)
    const link = request === null ? '' : `\n[Data](${request})`
    return {
      ...{ title: cut(title, 200), description: `${cut(text, 280)}${link}`, timestamp: firedAt },
      ...(url === null ? {} : { url }),
    }
  })
  const rest = toRest(firings.length, MOST_EMBEDS)
  const content = message.type === 'alert.digest' ? [toHeadline(message), rest].filter((line) => line).join(' ') : ''
  return { ...(content === '' ? {} : { content }), embeds, allowed_mentions: { parse: [] } }
}

/** https://core.telegram.org/bots/api#sendmessage: HTML, at most 4,096 characters. Firings that do not fit are counted. */
function toTelegram(message: Message, context: MessageContext) {
  const lines: string[] = message.type === 'alert.digest' ? [`<b>${escapeMarkup(toHeadline(message))}</b>`] : []
  let length = lines.join('\n\n').length
  let shown = 0
  for (const firing of message.firings) {
    const { title, text, url, request } = toRecord(firing, context)
    const links = [url && toAnchor(url, 'Page'), request && toAnchor(request, 'Data')].filter((link) => link)
    const line = `<b>${escapeMarkup(cut(title, 300))}</b>\n${escapeMarkup(cut(text, 500))}\n${links.join(' · ')}`
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
  const records = firings.slice(0, MOST_MAIL_FIRINGS).map((firing) => toRecord(firing, context))
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
    auth: user === undefined || password === undefined ? undefined : { user, pass: password },
    mail: {
      ...{ from, to, subject: toHeadline(message) },
      text: `${[...texts, ...more, `Rule: ${rule}`].join('\n\n')}\n`,
      html: `${[...paragraphs, ...more.map((line) => `<p>${line}</p>`), `<p>Rule: ${rule}</p>`].join('\n')}\n`,
      messageId: `<${id}@${from.slice(from.lastIndexOf('@') + 1)}>`,
      date: new Date(firings[0]?.firedAt ?? context.now),
      headers: { 'Auto-Submitted': 'auto-generated' },
    },
  }
}
