import type { Config } from './config.ts'

/** A shorter secret, such as a demo's key, may be an ordinary word: taking it out would spoil every line. */
const SHORTEST = 8
/** A segment of a URL's path that is as long and has a digit counts as a key: providers of nodes put keys there. */
const SHORTEST_SEGMENT = 16

const MASK = '[redacted]'
const SECRET_NAME = /key|token|password|secret/i

/** What of a URL may be secret: what stands before its host, the values of its query, long parts of its path. */
export function toUrlSecrets(text: string): string[] {
  if (!/^[a-z]+:\/\//.test(text) || !URL.canParse(text)) return []
  const url = new URL(text)
  const segments = url.pathname.split('/').filter((part) => part.length >= SHORTEST_SEGMENT && /\d/.test(part))
  const found = [url.username, url.password, ...segments, ...url.searchParams.values()]
  return found.flatMap((each) => [each, decode(each)]).filter((each) => each.length >= SHORTEST)
}

/** A part of a URL, decoded where it can be: a percent sign may also stand for itself. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch (error) {
    if (error instanceof URIError) return part
    throw error
  }
}

/** Every secret of the settings, wherever it stands: by the names of their members, and within URLs. */
export function findSecrets(config: Config): readonly string[] {
  const found = new Set<string>()
  const look = (name: string, value: unknown): void => {
    if (typeof value === 'object' && value !== null) for (const [key, each] of Object.entries(value)) look(key, each)
    if (typeof value !== 'string') return
    if (SECRET_NAME.test(name) && value.length >= SHORTEST) found.add(value)
    for (const secret of toUrlSecrets(value)) found.add(secret)
  }
  look('', config)
  return [...found]
}

/** Takes secrets out of a text, the longest first: one may be a part of another. */
export function createRedactor(secrets: readonly string[]): (text: string) => string {
  const sorted = [...new Set(secrets)].sort((a, b) => b.length - a.length)
  return (text) => sorted.reduce((clean, secret) => clean.replaceAll(secret, MASK), text)
}
