import { htmlReply, jsonReply, type Provider, type Reply } from '../exchange.ts'
import type { Chat } from '../socials.ts'

/** The preview pages of groups, channels and people. Source: docs/providers.md, section 14.2. */
export const telegram: Provider = {
  name: 'telegram',
  handle({ path, now }, { socials }) {
    const name = path.slice(1)
    if (!/^(\+[\w-]+|[a-z]\w{3,31})$/i.test(name)) return toHome()
    return htmlReply(toPage(name, socials.chat(name, now)))
  },
  failure: (status) => htmlReply('<html><body>Sorry, something went wrong.</body></html>', status),
  empty: ({ path }) => htmlReply(toPage(path.slice(1), null)),
}

/** Invalid names are redirected. */
const toHome = (): Reply => ({ ...htmlReply('', 302), headers: { location: 'https://telegram.org/' } })

/** An unknown name has a page too, without numbers. */
function toPage(name: string, chat: Chat | null): string {
  const title = chat === null ? `Telegram: Contact @${name}` : chat.title
  const about =
    chat === null
      ? ''
      : `<div class="tgme_page_title" dir="auto"><span dir="auto">${chat.title}</span></div>
<div class="tgme_page_extra">${toExtra(name, chat)}</div>`
  return `<!DOCTYPE html>
<html><head><title>Telegram: Contact @${name}</title><meta property="og:title" content="${title}"></head>
<body class="no_transition"><div class="tgme_page_wrap"><div class="tgme_page">
${about}
<div class="tgme_page_action"><a class="tgme_action_button_new" href="tg://resolve?domain=${name}">Open</a></div>
</div></div></body></html>`
}

function toExtra(name: string, { kind, members, online }: Chat): string {
  if (kind === 'user') return `\n  @${name}\n`
  if (kind === 'channel') return `${toGrouped(members, '&#8239;')} subscribers`
  return `${toGrouped(members, '\u00a0')} members, ${toGrouped(online, '\u00a0')} online`
}

const toGrouped = (count: number, separator: string) => String(count).replace(/\B(?=(\d{3})+$)/g, separator)

/** The Bot API's member count. Source: docs/providers.md, section 14.3. */
export const telegramBot: Provider = {
  name: 'telegram-bot',
  handle({ path, query, now }, { socials }) {
    const [, token, method] = /^\/bot([^/]*)\/(\w+)$/.exec(path) ?? []
    if (!token) return toError(401, 'Unauthorized')
    if (method !== 'getChatMemberCount') return toError(404, 'Not Found')
    const [, name = ''] = /^@(\w+)$/.exec(query.get('chat_id') ?? '') ?? []
    const chat = socials.chat(name, now)
    if (chat === null || chat.kind === 'user') return toError(400, 'Bad Request: chat not found')
    return jsonReply({ ok: true, result: chat.members })
  },
  failure(status) {
    if (status !== 429) return toError(status, `Error ${status}`)
    const reply = toError(429, 'Too Many Requests: retry after 1', { retry_after: 1 })
    return { ...reply, headers: { ...reply.headers, 'retry-after': '1' } }
  },
  empty: () => jsonReply({ ok: true, result: null }),
}

function toError(status: number, description: string, parameters?: object): Reply {
  return jsonReply({ ok: false, error_code: status, description, ...(parameters ? { parameters } : {}) }, status)
}
