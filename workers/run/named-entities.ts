import type { ShownRequest } from '../http/client.ts'
import type { Entity } from '../job/define-job.ts'

/** Shorter texts, such as a symbol, may be any word of a request. */
const SHORTEST = 3
/** A shorter number may be a count or a page. */
const SHORTEST_NUMBER = 9
const ID_PARAMETER = /(^|_)ids?$/i
const IS_NUMBER = /^\d+$/

/**
 * Finds the entities that a request names: by a contract, an account, a provider's id or a name. Returns an empty list
 * for a request that names none of them, such as one for a list of all.
 */
export function findNamedEntities(entities: readonly Entity[]): (request: ShownRequest) => readonly number[] {
  const owners = new Map<string, number | undefined>()
  for (const entity of entities) {
    const words = new Set(listTexts(entity).flatMap(toWords))
    // A word of several entities, such as their chain, names none of them.
    for (const word of words) owners.set(word, owners.has(word) ? undefined : entity.key)
  }
  const cache = new Map<string, readonly number[]>()
  return ({ path, query, sent }) => {
    const text = `${path}?${query} ${sent}`
    const known = cache.get(text)
    if (known !== undefined) return known
    const keys = new Set([...listWords(path, query, sent)].map((word) => owners.get(word)))
    keys.delete(undefined)
    const found = [...keys] as number[]
    cache.set(text, found)
    return found
  }
}

function listTexts(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  if (typeof value !== 'object' || value === null || depth > 4) return []
  return Object.values(value).flatMap((member) => listTexts(member, depth + 1))
}

/** Returns a text as a request may contain it: complete, or as the last segment of a URL. */
function toWords(text: string): string[] {
  const whole = text.toLowerCase()
  return [whole, whole.split('/').at(-1) ?? ''].filter((word) => word.length >= SHORTEST || IS_NUMBER.test(word))
}

function* listWords(path: string, query: string, sent: string): Iterable<string> {
  for (const segment of path.split('/')) yield* toAccepted(decode(segment), false)
  for (const pair of query.split('&')) {
    const at = pair.indexOf('=')
    for (const part of pair.slice(at + 1).split(',')) yield* toAccepted(part, ID_PARAMETER.test(pair.slice(0, at)))
  }
  if (sent !== '') for (const text of listTexts(JSON.parse(sent))) yield* toAccepted(text, false)
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch (error) {
    if (error instanceof URIError) return segment
    throw error
  }
}

function toAccepted(word: string, isId: boolean): string[] {
  return IS_NUMBER.test(word) && word.length < SHORTEST_NUMBER && !isId ? [] : [word.toLowerCase()]
}
