const SECRET_NAME = /(api|access|secret|auth|pro|demo)[-_]?(key|token)|^key$|secret|authorization|password/i
const SHOWN_QUERY = 160

/** Where a request goes, and how it may be named in messages and logs. */
export interface Target {
  readonly url: URL
  /** Path and query without the base and without keys, the query cut short. */
  readonly shown: string
  /** Values that no message may repeat. */
  readonly secrets: readonly string[]
}

/** Joins base, path and query; members that are undefined are left out. */
export function toTarget(
  baseUrl: string,
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
  headers: Headers,
): Target {
  const url = new URL(baseUrl.replace(/\/+$/, '') + path)
  const secrets: string[] = []
  const shownQuery: string[] = []
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    url.searchParams.set(name, String(value))
    const secret = SECRET_NAME.test(name)
    if (secret) secrets.push(String(value))
    shownQuery.push(`${name}=${secret ? '[redacted]' : value}`)
  }
  for (const [name, value] of headers) {
    // "Bearer <key>": the key may be repeated without its scheme.
    if (SECRET_NAME.test(name)) secrets.push(value, value.slice(value.lastIndexOf(' ') + 1))
  }
  const joined = shownQuery.join('&')
  const cut = joined.length > SHOWN_QUERY ? `${joined.slice(0, SHOWN_QUERY)}...` : joined
  return { url, shown: cut === '' ? path : `${path}?${cut}`, secrets: secrets.filter((secret) => secret !== '') }
}

/** A text of the provider as one short line, with no key in it. */
export function toExcerpt(text: string, secrets: readonly string[]): string {
  const clean = secrets.reduce((cleaned, secret) => cleaned.replaceAll(secret, '[redacted]'), text)
  const line = clean.replace(/\s+/g, ' ').trim()
  return line.length > 200 ? `${line.slice(0, 200)}...` : line
}
