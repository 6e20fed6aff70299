import { z } from 'zod'
import { DataError, toReason } from '../../../shared/errors.ts'
import { groupBy } from '../../../shared/group-by.ts'
import { findEntities } from '../rule-entities.ts'
import { LISTS } from '../series.ts'
import { type Evaluate, NOTHING, type Result, type RuleOf, toEntityFacts, toSubjectResult } from './condition.ts'

const listed = z.array(z.object({ _id: z.string(), name: z.string() }))
const problem = z.object({ detail: z.string() })

const LIST_TIMEOUT_MS = 30_000

/** @throws DataError `provider_unavailable` if the API does not answer, `config` if it rejects the filter. */
export async function readList(
  { list, filter }: RuleOf<'list'>['what'],
  apiUrl: string,
  limit?: number,
): Promise<z.infer<typeof listed>> {
  const found: z.infer<typeof listed> = []
  let next: URL | undefined = new URL(list, apiUrl)
  for (const text of filter) next.searchParams.append('filter', text)
  next.searchParams.set('fields', '_id,name')
  if (limit !== undefined) next.searchParams.set('limit', String(limit))
  while (next !== undefined) {
    const { answer, body } = await requestList(next)
    found.push(...listed.parse(body))
    const [, link] = limit === undefined ? (/<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '') ?? []) : []
    next = link === undefined ? undefined : new URL(new URL(link, apiUrl).search, next)
  }
  return found
}

async function requestList(url: URL) {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(LIST_TIMEOUT_MS) })
    const body: unknown = await answer.json()
    if (answer.status === 400)
      throw new DataError('config', `${url.pathname}: ${problem.safeParse(body).data?.detail ?? 'rejected'}`)
    if (!answer.ok) throw new Error(`status ${answer.status}`)
    return { answer, body }
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('provider_unavailable', `ALERTS_API_URL: ${url.origin}${url.pathname}: ${toReason(cause)}`, {
      cause,
    })
  }
}

export const evaluateLists: Evaluate<'list'> = async (rules, { registry, apiUrl }) => {
  const results = new Map<string, Result>()
  for (const own of groupBy(rules, ({ what }) => JSON.stringify([what.list, what.filter])).values()) {
    const [first] = own
    if (first === undefined) continue
    const records = await readList(first.what, apiUrl)
    const inList = new Set(records.map(({ _id }) => _id))
    const { list, filter } = first.what
    for (const rule of own) {
      const subjects = (findEntities(rule, registry) ?? []).map((entity) => {
        const holds = inList.has(entity.id)
        return toSubjectResult({
          // A record that has left the list is not in the answer to its filter.
          ...{ ...NOTHING, ...toEntityFacts(entity, list), subject: entity.id, holds },
          describe: () => ({
            title: `${entity.name}: ${holds ? 'entered' : 'left'} the list of ${LISTS[list].of === 'token' ? 'tokens' : 'DAOs'}`,
            text: `The filter is ${filter.join(' and ')}.`,
          }),
        })
      })
      results.set(rule.name, { type: 'state', isComplete: true, subjects })
    }
  }
  return results
}
