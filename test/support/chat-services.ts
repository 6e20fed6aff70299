import type { Received, Reply } from './alerts.ts'

/** The result of a message at a chat service: its refusal, or the text and the links that its readers see. */
export interface ChatMessage {
  readonly refusal?: Reply
  readonly text: string
  readonly links: readonly string[]
  /** Formatting and mentions in a text. */
  readonly markup: readonly string[]
}

const refuse = (status: number, body: string): ChatMessage => ({
  ...{ refusal: { status, body }, text: '', links: [], markup: [] },
})

const isWellFormed = (value: unknown): boolean =>
  typeof value === 'string'
    ? !/\p{Cs}/u.test(value)
    : typeof value !== 'object' || value === null || Object.values(value).every(isWellFormed)

const isLength = (text: unknown, most: number): text is string =>
  typeof text === 'string' && text.trim() !== '' && text.length <= most

interface SlackText {
  readonly type: string
  readonly text: string
  readonly verbatim?: boolean
}
interface SlackBlock {
  readonly type: string
  readonly text: SlackText
  readonly fields?: readonly SlackText[]
}

const unescapeMarkup = (text: string) =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&')

/** https://docs.slack.dev/messaging/formatting-message-text, and the limits of each block. */
export function readSlack(body: string): ChatMessage {
  const { text: fallback, blocks } = JSON.parse(body) as { text: string; blocks: readonly SlackBlock[] }
  if (!isWellFormed(JSON.parse(body)) || !isLength(fallback, 40_000)) return refuse(400, 'invalid_payload')
  const isValid = (block: SlackBlock) =>
    block.type === 'section' &&
    isLength(block.text.text, 3_000) &&
    (block.fields?.length ?? 1) <= 10 &&
    (block.fields ?? []).every(({ text }) => isLength(text, 2_000))
  if (blocks.length > 50 || !blocks.every(isValid)) return refuse(400, 'invalid_blocks')
  const [links, markup]: [string[], string[]] = [[], []]
  const texts = blocks.flatMap(({ text, fields = [] }) => [text, ...fields])
  const shown = texts.map(({ type, text, verbatim = false }) => {
    // An ampersand that is not an entity, and angle brackets without a link, are control characters.
    if (/&(?!amp;|lt;|gt;)/.test(text)) markup.push(text)
    if (type === 'plain_text') {
      if (/[<>]/.test(text)) markup.push(text)
      return unescapeMarkup(text)
    }
    const rest = text.replaceAll(/<([^<>|]+)\|([^<>|]+)>/g, (_, link: string, label: string) => {
      links.push(unescapeMarkup(link))
      return label
    })
    if (!verbatim) links.push(...(rest.match(/https?:\/\/\S+/g) ?? []))
    if (/[<>*_~`]/.test(rest)) markup.push(rest)
    return unescapeMarkup(rest)
  })
  return { text: shown.join('\n'), links, markup }
}

/** Reads Discord's Markdown: backslashes, masked links, detected URLs. */
function readMarkdown(text: string) {
  const [links, markup]: [string[], string[]] = [[], []]
  const token =
    /\\([^0-9A-Za-z\s])|\[((?:\\.|[^[\]\\])+)\]\((https?:\/\/[^\s()]+)\)|(https?:\/\/\S+)|(<[@#:/t][^>]*>|@everyone|@here|[*_~`|<>]|^[#-])/gm
  const shown = text.replaceAll(token, (whole, literal?: string, label?: string, target?: string, url?: string) => {
    if (literal !== undefined) return literal
    const link = target ?? url
    if (link === undefined) markup.push(whole)
    else links.push(link)
    return label ?? whole
  })
  return { text: shown, links, markup }
}

interface DiscordEmbed {
  readonly title: string
  readonly description: string
  readonly url?: string
}

/** https://docs.discord.com/developers/resources/message#embed-object-embed-limits */
export function readDiscord(body: string): ChatMessage {
  const { content = '', embeds } = JSON.parse(body) as { content?: string; embeds: readonly DiscordEmbed[] }
  const all = embeds.reduce((sum, { title, description }) => sum + title.length + description.length, 0)
  const isValid = ({ title, description, url = '' }: DiscordEmbed) =>
    isLength(title, 256) && isLength(description, 4_096) && url.length <= 2_048
  if (!isWellFormed(JSON.parse(body)) || content.length > 2_000 || embeds.length > 10 || all > 6_000)
    return refuse(400, '{"message": "Invalid Form Body", "code": 50035}')
  if (!embeds.every(isValid)) return refuse(400, '{"embeds": ["0"]}')
  const read = [
    ...(content === '' ? [] : [content]),
    ...embeds.flatMap(({ title, description }) => [title, description]),
  ].map(readMarkdown)
  return {
    text: read.map(({ text }) => text).join('\n'),
    links: [...embeds.flatMap(({ url }) => url ?? []), ...read.flatMap(({ links }) => links)],
    markup: read.flatMap(({ markup }) => markup),
  }
}

/** https://core.telegram.org/bots/api#html-style: the limit counts what remains without tags and entities. */
export function readTelegram(body: string): ChatMessage {
  const fail = (description: string) => refuse(400, JSON.stringify({ ok: false, error_code: 400, description }))
  const { text } = JSON.parse(body) as { text: string }
  if (!isWellFormed(text)) return fail('Bad Request: strings must be encoded in UTF-8')
  const links: string[] = []
  let [shown, open]: [string, string[]] = ['', []]
  let end = 0
  for (const { 0: tag, 1: close, 2: name = '', 3: href, index } of text.matchAll(
    /<(\/?)([a-z]+)(?: href="([^"<>]*)")?>/g,
  )) {
    const part = text.slice(end, index)
    if (/[<>]|&(?!amp;|lt;|gt;|quot;)/.test(part)) return fail("Bad Request: can't parse entities")
    shown += unescapeMarkup(part)
    if (!open.includes('code') && !open.includes('a')) links.push(...findLinks(unescapeMarkup(part)))
    if (close === '') {
      if (open.includes('code') || !['a', 'b', 'code'].includes(name)) return fail("Bad Request: can't parse entities")
      open = [...open, name]
      if (href !== undefined) links.push(unescapeMarkup(href))
    } else if (open.at(-1) !== name) return fail("Bad Request: can't parse entities")
    else open = open.slice(0, -1)
    end = index + tag.length
  }
  const rest = text.slice(end)
  if (open.length > 0 || /[<>]|&(?!amp;|lt;|gt;|quot;)/.test(rest)) return fail("Bad Request: can't parse entities")
  shown += unescapeMarkup(rest)
  links.push(...findLinks(unescapeMarkup(rest)))
  if (shown.trim() === '') return fail('Bad Request: message text is empty')
  return shown.length > 4_096 ? fail('Bad Request: message is too long') : { text: shown, links, markup: [] }
}

/** Telegram makes links of addresses, known domains, mentions, commands and tags. */
const findLinks = (text: string) =>
  text.match(/https?:\/\/\S+|[\w-]+\.(?:com|org|example)\b\S*|(?:^|(?<=\s))[@#/]\w+/g) ?? []

/** Answers as a service does: 200, or its refusal of the message. */
export const replyAs =
  (read: (body: string) => ChatMessage) =>
  ({ body }: Received): Reply =>
    read(body).refusal ?? { status: 200, body: 'ok' }
