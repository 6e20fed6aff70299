import { z } from 'zod'
import { discordDeclaration } from '../../../shared/config/providers/discord.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { ErrorReading } from '../../http/client.ts'
import type { Provider } from '../../job/define-job.ts'
import { asSent, checkAnswer, toJsonValue, toNumber } from '../answer.ts'
import { type MembersSource, toMembers } from '../contracts/members.ts'

const INVITE = /^https:\/\/(?:www\.)?(?:discord\.gg|discord(?:app)?\.com\/invite)\/([A-Za-z0-9-]+)\/?$/
const PATH = '/invites/{code}'
const NO_SUCH_INVITE = 404
/** One request at a time: the host does not publish its limits, and bans an address after 10,000 refused requests. */
const CONCURRENCY = 1

/** Discord's invites with counts (docs/providers.md, section 14.1). Works without a bot's token. */
export const discord: Provider<MembersSource, Dao> = {
  name: 'discord',
  cost: discordDeclaration.cost,
  covers: ({ discord: link }) => toInviteCode(link) !== undefined,
  connect({ config, http }) {
    const { botToken, ...settings } = config.providers.discord
    const headers = {
      // The host's gateway refuses user agents of another format.
      'user-agent': `DiscordBot (${config.api.publicUrl}, 1.0)`,
      ...(botToken === undefined ? {} : { authorization: `Bot ${botToken}` }),
    }
    const client = http.open({ provider: 'discord', ...settings, headers, readError })
    return {
      concurrency: CONCURRENCY,
      async fetchMembers(dao, signal) {
        const path = `/invites/${toInviteCode(dao.discord)}`
        const query = { with_counts: 'true' }
        const answer = await client.json({ path, route: PATH, query, signal, answers: [NO_SUCH_INVITE] })
        const invite = checkAnswer(inviteAnswer, answer, { provider: 'discord', path })
        if ('message' in invite) return `${invite.message} (${invite.code})`
        return toMembers({
          active_members: toNumber(invite.approximate_presence_count),
          total_members: toNumber(invite.approximate_member_count),
        })
      },
    }
  },
}

/** Returns the code of an invite link; undefined for other links and null. */
function toInviteCode(link: string | null): string | undefined {
  return INVITE.exec(link ?? '')?.[1]
}

const inviteAnswer = z.union([
  z.object({ message: z.string(), code: z.number() }),
  z.object({ code: z.string(), approximate_presence_count: asSent, approximate_member_count: asSent }),
])

/** Seconds, with a fraction. */
const limited = z.object({ retry_after: z.number().nonnegative().max(86_400) })

function readError(status: number, body: string): ErrorReading | undefined {
  if (status !== 429) return undefined
  const parsed = limited.safeParse(toJsonValue(body))
  if (!parsed.success) return undefined
  return { code: 'provider_unavailable', says: body, retryAfterMs: Math.ceil(parsed.data.retry_after * 1000) }
}
