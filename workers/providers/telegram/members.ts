import { DataError } from '../../../shared/errors.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Provider } from '../../job/define-job.ts'
import { type Members, type MembersSource, toMembers } from '../contracts/members.ts'

/** A public name, or a private invitation, which shows the same page. */
const LINK = /^https:\/\/t\.me\/(\+[\w-]+|[A-Za-z]\w{3,31})\/?$/
/** For what it takes for no name the host has no page, and leads to its home page elsewhere. */
const NO_SUCH_NAME = [301, 302, 303]
/** One after the other: the host's limit is not documented. */
const CONCURRENCY = 1

/** The preview page of a group or channel (providers document, section 14.2). No key. */
export const telegram: Provider<MembersSource, Dao> = {
  name: 'telegram',
  cost: 'free',
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

/** The name in a chat's link; undefined for other links and for none. */
export function toChatName(link: string | null): string | undefined {
  return LINK.exec(link ?? '')?.[1]
}

/** Digits in groups: by a plain or a no-break space, by a comma. */
const GROUPED = String.raw`(\d[\d\s,]*)`
const EXTRA = /class="tgme_page_extra">([^<]+)</
const TOTAL = new RegExp(`${GROUPED}(?:members?|subscribers?)\\b`)
const ONLINE = new RegExp(`${GROUPED}online\\b`)

/**
 * The numbers of a preview page; a channel's page does not say who is online. A text, the reason, where the page is
 * about no group or channel: the page of an unknown name has no numbers, a person's has their name instead.
 * @throws DataError `provider_malformed` for a page that is no preview at all.
 */
function readPreview(page: string, path: string): Members | string {
  if (!page.includes('tgme_page')) throw new DataError('provider_malformed', `telegram ${path}: not a preview page`)
  const extra = EXTRA.exec(page)?.[1]?.replace(/&nbsp;|&#160;/g, ' ')
  if (extra === undefined) return NO_SUCH_CHAT
  const total = TOTAL.exec(extra)?.[1]
  if (total === undefined) return 'not a group or channel'
  const online = ONLINE.exec(extra)?.[1]
  return toMembers({ active_members: online === undefined ? null : toCount(online), total_members: toCount(total) })
}

const toCount = (grouped: string) => Number(grouped.replace(/\D/g, ''))
