import { telegramDeclaration } from '../../../shared/config/providers/telegram.ts'
import { DataError } from '../../../shared/errors.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Provider } from '../../job/define-job.ts'
import { parseCount } from '../answer.ts'
import { type Members, type MembersSource, toMembers } from '../contracts/members.ts'

/** A public name, or a private invitation, which has the same page. */
const LINK = /^https:\/\/t\.me\/(\+[\w-]+|[A-Za-z]\w{3,31})\/?$/
/** For an invalid name, the host redirects to its home page. */
const NO_SUCH_NAME = [301, 302, 303]
/** One request at a time: the host's limit is not documented. */
const CONCURRENCY = 1

/** The preview page of a group or channel (docs/providers.md, section 14.2). No key. */
export const telegram: Provider<MembersSource, Dao> = {
  name: 'telegram',
  cost: telegramDeclaration.cost,
  covers: ({ telegram: link }) => toChatName(link) !== undefined,
  connect({ config, http }) {
    const headers = { accept: 'text/html', 'accept-language': 'en' }
    const client = http.open({ provider: 'telegram', ...config.providers.telegram, headers })
    return {
      concurrency: CONCURRENCY,
      async fetchMembers(dao, signal) {
        const path = `/${toChatName(dao.telegram)}`
        const page = await client.text({ path, route: '/{name}', signal, absent: NO_SUCH_NAME })
        return page === undefined ? NO_SUCH_CHAT : readPreview(page, path)
      },
    }
  },
}

const NO_SUCH_CHAT = 'no such group or channel'

/** Returns the name in a chat's link; undefined for other links and null. */
export function toChatName(link: string | null): string | undefined {
  return LINK.exec(link ?? '')?.[1]
}

const EXTRA = /class="[^"]*\btgme_page_extra\b[^"]*"[^>]*>(.*?)<\/div>/s
const NUMBERS = /^(?<total>.+?) (?:members?|subscribers?)(?:, (?<online>.+) online)?$/
const COMMUNITY = /\b(?:members?|subscribers?)\b/

/**
 * Reads the counts of a preview page; a channel's page has no online count. Returns a text with the reason if the page
 * is not about a group or channel: the page of an unknown name has no numbers, a person's page has the person's name
 * instead.
 * @throws DataError `provider_malformed` for a page that is not a preview, and for a count that is not a number.
 */
function readPreview(page: string, path: string): Members | string {
  const fail = (what: string) => new DataError('provider_malformed', `telegram ${path}: ${what}`)
  if (!page.includes('tgme_page')) throw fail('not a preview page')
  const [, html] = EXTRA.exec(page) ?? []
  if (html === undefined) return NO_SUCH_CHAT
  const text = toText(html)
  if (!COMMUNITY.test(text)) return 'not a group or channel'
  const { total, online } = NUMBERS.exec(text)?.groups ?? {}
  const members = total === undefined ? undefined : parseCount(total)
  if (members === undefined) throw fail(`expected a count of members, got ${JSON.stringify(text.slice(0, 100))}`)
  return toMembers({ active_members: (online && parseCount(online)) ?? null, total_members: members })
}

const NAMED_SPACES = /^(?:nbsp|ensp|emsp|thinsp|numsp|puncsp|hairsp|MediumSpace|NoBreak|NonBreakingSpace|ThinSpace)$/

/** Converts HTML to text: removes tags, decodes entities and collapses white space to one space. */
const toText = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&#(?:x([0-9a-f]+)|(\d+));/gi, (entity, hex?: string, decimal?: string) => {
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
      return code <= 0x10ffff ? String.fromCodePoint(code) : entity
    })
    .replaceAll(/&(\w+);/g, (entity, name: string) => (NAMED_SPACES.test(name) ? ' ' : entity))
    .replaceAll(/[\s\u200b\u2060]+/g, ' ')
    .trim()
