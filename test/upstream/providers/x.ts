import { jsonReply, type Provider, type Reply, type UpstreamRequest } from '../exchange.ts'
import type { Account, Post, Socials } from '../socials.ts'
import { MINUTE, type World } from '../world.ts'

const WINDOW = 15 * MINUTE
const WEEK = 7 * 24 * 60 * MINUTE
/** Minimum age of the end of a search. */
const END_MARGIN = 10_000
const USERNAME = /^[A-Za-z0-9_]{1,15}$/

/** X's API v2: users by name and the recent search. Source: docs/providers.md, section 13. */
export const x: Provider = {
  name: 'x',
  handle: (request, world) => withLimits(answer(request, world), request.now),
  failure: (status, now) => withLimits(toFailure(status), now),
  empty: ({ path }) => jsonReply(path === '/2/users/by' ? {} : { meta: { result_count: 0 } }),
}

function answer(request: UpstreamRequest, { socials }: World): Reply {
  if (!/^Bearer \S+$/.test(request.headers.authorization ?? '')) return toFailure(401)
  if (request.path === '/2/users/by') return toUsers(request, socials)
  if (request.path === '/2/tweets/search/recent') return toPage(request, socials)
  return toFailure(404)
}

function toUsers({ query, now }: UpstreamRequest, socials: Socials): Reply {
  const usernames = (query.get('usernames') ?? '').split(',')
  if (usernames.length > 100 || !usernames.every((name) => USERNAME.test(name))) {
    return toInvalid('The `usernames` query parameter value is not valid')
  }
  const includesMetrics = query.get('user.fields')?.split(',').includes('public_metrics') ?? false
  const found = usernames.map((name) => ({ name, account: socials.account(name, now) }))
  const data = found.flatMap(({ account }) => (account === null ? [] : [toUser(account, includesMetrics)]))
  const errors = found.flatMap(({ name, account }) => (account === null ? [toUnknown(name)] : []))
  return jsonReply({ ...(data.length > 0 ? { data } : {}), ...(errors.length > 0 ? { errors } : {}) })
}

function toUser(account: Account, hasMetrics: boolean) {
  const { id, name, username } = account
  if (!hasMetrics) return { id, name, username }
  const public_metrics = {
    followers_count: account.followers,
    following_count: account.following,
    [account.newerNames ? 'post_count' : 'tweet_count']: account.posts,
    listed_count: account.listed,
  }
  return { id, name, username, public_metrics }
}

function toUnknown(name: string) {
  return {
    value: name,
    detail: `Could not find user with usernames: [${name}].`,
    title: 'Not Found Error',
    resource_type: 'user',
    parameter: 'usernames',
    resource_id: name,
    type: 'https://api.x.com/2/problems/resource-not-found',
  }
}

/** A page of the newest posts before `end_time`; the token of the next page is an opaque text with its end. */
function toPage({ query, now }: UpstreamRequest, socials: Socials): Reply {
  const [, handle] = /(?:^|\s|\()@([A-Za-z0-9_]{1,15})\b/.exec(query.get('query') ?? '') ?? []
  if (handle === undefined || (query.get('query') ?? '').length > 512) return toInvalid('Invalid `query`')
  const size = Number(query.get('max_results') ?? 10)
  if (!Number.isInteger(size) || size < 10 || size > 100) return toInvalid('`max_results` is not between 10 and 100')
  const end = query.has('end_time') ? Date.parse(query.get('end_time') ?? '') : now - END_MARGIN
  if (!(end <= now - END_MARGIN && end > now - WEEK)) return toInvalid("Invalid 'end_time'")
  const before = Number(Buffer.from(query.get('next_token') ?? '', 'base64url').toString() || end)
  const fields = query.get('tweet.fields') ?? query.get('post.fields') ?? ''
  const posts = socials.mentions(handle, before, size).filter(({ at }) => at > now - WEEK)
  const [first, last] = [posts[0], posts.at(-1)]
  if (first === undefined || last === undefined) return jsonReply({ meta: { result_count: 0 } })
  const next = posts.length === size ? { next_token: Buffer.from(String(last.at)).toString('base64url') } : {}
  const meta = { newest_id: first.id, oldest_id: last.id, result_count: posts.length, ...next }
  return jsonReply({ data: posts.map((post) => toTweet(post, fields.split(','))), meta })
}

function toTweet({ id, text, at, lang }: Post, fields: readonly string[]) {
  return {
    id,
    text,
    edit_history_tweet_ids: [id],
    ...(fields.includes('lang') ? { lang } : {}),
    ...(fields.includes('created_at') ? { created_at: new Date(at).toISOString() } : {}),
  }
}

function withLimits(reply: Reply, now: number): Reply {
  const reset = Math.ceil((now + 1) / WINDOW) * (WINDOW / 1000)
  const remaining = reply.status === 429 ? '0' : '299'
  const headers = { 'x-rate-limit-limit': '300', 'x-rate-limit-remaining': remaining, 'x-rate-limit-reset': `${reset}` }
  return { ...reply, headers: { ...reply.headers, ...headers } }
}

const TITLES: Readonly<Record<number, string>> = { 401: 'Unauthorized', 404: 'Not Found', 429: 'Too Many Requests' }

function toFailure(status: number): Reply {
  if (status === 402) {
    const detail = 'Your enrolled account does not have any credits to fulfill this request.'
    return toProblem({ title: 'CreditsDepleted', detail, type: 'https://api.x.com/2/problems/credits' }, 402)
  }
  const title = TITLES[status] ?? 'Internal Server Error'
  return toProblem({ title, detail: title, type: 'about:blank', status }, status)
}

function toInvalid(detail: string): Reply {
  return toProblem({ title: 'Invalid Request', detail, type: 'https://api.x.com/2/problems/invalid-request' }, 400)
}

function toProblem(body: object, status: number): Reply {
  const headers = { 'content-type': 'application/problem+json' }
  return { status, headers, body: JSON.stringify(body) }
}
