import type { Config } from './config.ts'

/** Shorter secrets, such as a demo key, may be ordinary words. Masking them would make every line unreadable. */
const SHORTEST = 8
/** A path segment of at least this length with a digit counts as a key: node providers put keys into paths. */
const SHORTEST_SEGMENT = 16

const MASK = '[redacted]'
const SECRET_NAME = /key|token|password|secret/i

/** Names of query parameters, headers and JSON members whose value is a secret. */
export const SECRET_MEMBER =
  /(api|access|secret|auth|pro|demo)[-_]?(key|token)|^(x-)?(key|token|auth|sig|signature|pass)$|secret|authorization|password|cookie/i

/** Returns the secrets in the forms in which a URL or JSON contains them, the longest first. */
export function withEncodings(secrets: readonly string[]): readonly string[] {
  const forms = secrets.flatMap((secret) => [
    secret,
    encodeURIComponent(secret),
    new URLSearchParams({ '': secret }).toString().slice(1),
    JSON.stringify(secret).slice(1, -1),
  ])
  return [...new Set(forms)].filter((form) => form !== '').sort((a, b) => b.length - a.length)
}

/** The parts of a URL that may be secret: user, password, query values, long path segments. */
export function toUrlSecrets(text: string): string[] {
  if (!/^[a-z]+:\/\//.test(text) || !URL.canParse(text)) return []
  const url = new URL(text)
  const segments = url.pathname.split('/').filter((part) => part.length >= SHORTEST_SEGMENT && /\d/.test(part))
  const found = [url.username, url.password, ...segments, ...url.searchParams.values()]
  return found.flatMap((each) => [each, decode(each)]).filter((each) => each.length >= SHORTEST)
}

/** Decodes a part of a URL. Returns it unchanged if a percent sign in it is literal. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch (error) {
    if (error instanceof URIError) return part
    throw error
  }
}

/** All secrets of the settings: members with a secret's name, and secrets within URLs. */
export function findSecrets(config: Config): readonly string[] {
  const found = new Set<string>()
  const collect = (name: string, value: unknown): void => {
    if (typeof value === 'object' && value !== null) for (const [key, each] of Object.entries(value)) collect(key, each)
    if (typeof value !== 'string') return
    if (SECRET_NAME.test(name) && value.length >= SHORTEST) found.add(value)
    for (const secret of toUrlSecrets(value)) found.add(secret)
  }
  collect('', config)
  return [...found]
}

/** Masks secrets in a text, the longest first, because a secret may contain another one. */
export function createRedactor(secrets: readonly string[]): (text: string) => string {
  const sorted = [...new Set(secrets)].sort((a, b) => b.length - a.length)
  return (text) => sorted.reduce((clean, secret) => clean.replaceAll(secret, MASK), text)
}
