import { jsonReply, type Provider, type Reply, textReply } from '../exchange.ts'
import type { DiscordServer } from '../socials.ts'

const USER_AGENT = /^DiscordBot \(\S+, \S+\)$/
const RETRY_AFTER = 0.25

/** Discord's invites, mounted with the API's version. Source: docs/providers.md, section 14.1. */
export const discord: Provider = {
  name: 'discord',
  handle({ path, query, headers, now }, { socials }) {
    if (!USER_AGENT.test(headers['user-agent'] ?? '')) return textReply('error code: 1010', 403)
    const [, code] = /^\/api\/v10\/invites\/([A-Za-z0-9-]+)$/.exec(path) ?? []
    if (code === undefined) return jsonReply({ message: '404: Not Found', code: 0 }, 404)
    const server = socials.server(code, now)
    if (server === null) return toUnknown()
    return jsonReply(toInvite(code, server, query.get('with_counts') === 'true'))
  },
  failure(status) {
    if (status === 404) return toUnknown()
    if (status !== 429) return jsonReply({ message: `${status}`, code: 0 }, status)
    const body = { message: 'You are being rate limited.', retry_after: RETRY_AFTER, global: false }
    const reply = jsonReply(body, 429)
    const limits = { 'x-ratelimit-scope': 'shared', 'x-ratelimit-remaining': '0', 'retry-after': '1' }
    return { ...reply, headers: { ...reply.headers, ...limits } }
  },
  empty: ({ path }) => jsonReply({ type: 0, code: path.slice(path.lastIndexOf('/') + 1), expires_at: null }),
}

function toUnknown(): Reply {
  return jsonReply({ message: 'Unknown Invite', code: 10_006 }, 404)
}

function toInvite(code: string, { id, name, members, online }: DiscordServer, withCounts: boolean) {
  return {
    type: 0,
    code,
    expires_at: null,
    guild: {
      id,
      name,
      splash: null,
      banner: null,
      description: null,
      icon: null,
      features: ['COMMUNITY', 'DISCOVERABLE'],
      verification_level: 2,
      vanity_url_code: null,
      nsfw_level: 0,
      premium_subscription_count: 5,
    },
    channel: { id, name: 'welcome', type: 0 },
    ...(withCounts && members !== null ? { approximate_member_count: members } : {}),
    ...(withCounts && online !== null ? { approximate_presence_count: online } : {}),
  }
}
