import { createRedactor, toUrlSecrets } from '../../shared/config/secrets.ts'
import type { Query } from './request.ts'

const SECRET_NAME = /(api|access|secret|auth|pro|demo)[-_]?(key|token)|^key$|secret|authorization|password/i
const SHOWN_QUERY = 160

/** URL of a request, and its form for messages and logs. */
export interface Target {
  readonly url: URL
  /** Path and query without the base and without keys; the query is truncated. */
  readonly shown: string
  /** Values to redact in messages. */
  readonly secrets: readonly string[]
}

/** Joins base, path and query; undefined members are omitted. `known` are further secrets. */
export function toTarget(
  baseUrl: string,
  path: string,
  query: Query,
  headers: Headers,
  known: readonly string[] = [],
): Target {
  const url = new URL(baseUrl.replace(/\/+$/, '') + path)
  const secrets = [...toUrlSecrets(baseUrl), ...known]
  moveCredentials(url, headers)
  const shownQuery: string[] = []
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    url.searchParams.set(name, String(value))
    const secret = SECRET_NAME.test(name)
    if (secret) secrets.push(String(value))
    shownQuery.push(`${name}=${secret ? '[redacted]' : value}`)
  }
  for (const [name, value] of headers) {
    // "Bearer <key>": the provider may repeat the key without its scheme.
    if (SECRET_NAME.test(name)) secrets.push(value, value.slice(value.lastIndexOf(' ') + 1))
  }
  const joined = shownQuery.join('&')
  const cut = joined.length > SHOWN_QUERY ? `${joined.slice(0, SHOWN_QUERY)}...` : joined
  const hidden = secrets.filter((secret) => secret !== '')
  return { url, shown: createRedactor(hidden)(cut === '' ? path : `${path}?${cut}`), secrets: hidden }
}

/**
 * Moves the URL's credentials to the equivalent Authorization header. The platform rejects URLs with credentials and
 * includes them in its message.
 */
function moveCredentials(url: URL, headers: Headers): void {
  if (url.username === '' && url.password === '') return
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  if (!headers.has('authorization')) {
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`)
  }
  url.username = ''
  url.password = ''
}

/** Returns a provider's text as one short line without keys. */
export function toExcerpt(text: string, secrets: readonly string[]): string {
  const line = createRedactor(secrets)(text).replace(/\s+/g, ' ').trim()
  return line.length > 200 ? `${line.slice(0, 200)}...` : line
}
