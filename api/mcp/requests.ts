import type { Call } from './define-tool.ts'
import { Mistake } from './mistake.ts'
import type { Resource } from './resources.ts'
import { Refused, type Reply, type Source } from './source.ts'
import { type Json, valueAt } from './table.ts'

/** One or several values per parameter. */
export type Parameters = Readonly<Record<string, string | readonly string[] | undefined>>

const ID = /^[0-9a-f]{24}$/

/** The API's limit of a searched text. */
const MOST_SEARCHED = 100

/** Builds a readable path with its query. */
export function toPath(path: string, parameters: Parameters): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters))
    for (const one of [value ?? []].flat()) search.append(name, String(one))
  const query = search.toString().replaceAll('%2C', ',').replaceAll('%3A', ':')
  return query === '' ? path : `${path}?${query}`
}

export const isId = (one: string) => ID.test(one)

/** The parameters that select entities; ids are recognized by their form. */
export const toOf = (of: readonly string[]): Parameters => ({
  id: of.filter(isId),
  name: of.filter((one) => !isId(one)),
})

/** The ids of the tokens or DAOs that had exactly this name or symbol before. */
async function findFormer(source: Source, kind: string, q: string, signal: AbortSignal): Promise<readonly string[]> {
  const path = toPath('/data/search', { q: q.slice(0, MOST_SEARCHED), include: 'match', limit: '20' })
  return toRecords(await source.request(path, signal)).flatMap(({ type, _id, matched, match }) => {
    const isFormer = matched === 'formerName' && valueAt({ match }, 'match.kind') === 'exact'
    return isFormer && `${type}s` === kind ? [String(_id)] : []
  })
}

/**
 * Finds the tokens or DAOs with exactly this name or symbol, so that `AAVE` does not also select Aavegotchi; if there is
 * none, those that had it before. Returns their ids per text; a text without an exact match is returned unchanged.
 * @throws Refused
 */
export async function resolveExact(
  { source, signal }: Pick<Call<unknown>, 'source' | 'signal'>,
  path: string,
  of: readonly string[],
): Promise<(text: string) => readonly string[]> {
  const kind = /^\/data\/(tokens|daos)\b/.exec(path)?.[1]
  const name = of.filter((one) => !isId(one))
  if (kind === undefined || name.length === 0) return (text) => [text]
  const fields = kind === 'tokens' ? '_id,name,symbol' : '_id,name,token'
  const reply = await source.request(toPath(`/data/${kind}`, { name, fields, limit: '500', format: 'ndjson' }), signal)
  const matches = toRecords(reply).map((record) => ({
    id: String(record._id),
    texts: [record.name, record.symbol, valueAt(record, 'token.symbol')].map((text) => String(text).toLowerCase()),
  }))
  const idsOf = (text: string) => matches.filter(({ texts }) => texts.includes(text.toLowerCase())).map(({ id }) => id)
  const former = new Map(
    await Promise.all(
      name
        .filter((text) => idsOf(text).length === 0)
        .map(async (text) => [text, await findFormer(source, kind, text, signal)] as const),
    ),
  )
  return (text) => {
    const [current, earlier = []] = [idsOf(text), former.get(text)]
    const ids = current.length > 0 ? current : earlier
    return ids.length > 0 ? ids : [text]
  }
}

/** Checks `where`: it may contain only the resource's own parameters, which no other argument of the tool sets. */
export function checkWhere(resource: Resource, where: Parameters, reserved: readonly string[]): void {
  const own = resource.operation.parameters.map(({ name }) => name).filter((name) => !reserved.includes(name))
  for (const name of Object.keys(where)) {
    if (own.includes(name)) continue
    throw new Mistake(
      `"${resource.name}" takes no "${name}" in where. ${own.length === 0 ? 'It takes none.' : `It takes ${own.join(', ')}.`}`,
    )
  }
}

/** The records of an answer: lines of JSON, a list, or one object. */
export function toRecords({ text, headers }: Reply): readonly Json[] {
  if (headers.get('content-type')?.startsWith('application/x-ndjson'))
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Json]))
  const parsed = JSON.parse(text) as Json | readonly Json[]
  return Array.isArray(parsed) ? parsed : [parsed as Json]
}

/** The time of an answer's data, and whether it is stale. */
export function toFacts({ headers }: Reply): Json {
  return {
    asOf: headers.get('x-data-as-of'),
    ...(headers.get('x-data-stale') === 'true' ? { stale: true } : {}),
  }
}

/** The cursor of the next page; undefined after the last one. */
export function toCursor({ headers }: Reply): string | undefined {
  const next = /<([^>]+)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1]
  return next === undefined ? undefined : (new URL(next, 'http://localhost').searchParams.get('cursor') ?? undefined)
}

/** Suggests entities with a similar name: search results for the name, else for its first letters. */
export async function findNear(source: Source, name: string, signal: AbortSignal): Promise<string> {
  try {
    for (const q of new Set([name, name.slice(0, 4), name.slice(0, 3)])) {
      if (q.trim() === '') continue
      const reply = await source.request(toPath('/data/search', { q, limit: '5' }), signal)
      const near = toRecords(reply).map(({ type, name: found, _id }) => `${type} ${found} (${_id})`)
      if (near.length > 0) return `Near: ${near.join(', ')}.`
    }
  } catch (error) {
    // The error to which this hint belongs is reported anyway.
    if (!(error instanceof Refused)) throw error
    return `Names near it are not known: ${error.message}`
  }
  return 'Look for it with the tool search.'
}
