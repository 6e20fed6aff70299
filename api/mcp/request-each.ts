import { toAdvice } from './advice.ts'
import type { Call } from './define-tool.ts'
import { Refused, type Reply } from './source.ts'

const CONCURRENCY = 4
/** Similar names are searched for only the first unknown names: each search is a separate request. */
const MOST_SUGGESTED = 3

/** A path with its query, and its entity if it has one. */
interface EntityRequest {
  readonly of: string | undefined
  readonly path: string
}

type Answered<A extends EntityRequest> = A & { readonly reply: Reply }

/** An entity without an answer, with the reason and the next step. */
export interface Failed {
  readonly of: string | undefined
  readonly why: string
}

/**
 * Runs requests in small groups, so that one assistant does not overload the database. A rejected request does not
 * affect the others. `send` may reject answers of the source.
 * @throws every error but Refused, and every error of an aborted call.
 */
export async function requestEach<A extends EntityRequest>(
  { source, signal }: Pick<Call<unknown>, 'source' | 'signal'>,
  requests: readonly A[],
  send = source.request,
): Promise<{ readonly answers: readonly Answered<A>[]; readonly failed: readonly Failed[] }> {
  const answers: Answered<A>[] = []
  const failed: Failed[] = []
  let unknown = 0
  const settle = async (one: A): Promise<Answered<A> | Failed> => {
    try {
      return { ...one, reply: await send(one.path, signal) }
    } catch (error) {
      if (!(error instanceof Refused) || signal.aborted) throw error
      const isUnknown = error.problem.code === 'not_found'
      if (isUnknown) unknown += 1
      const named = isUnknown && unknown > MOST_SUGGESTED ? undefined : one.of
      return { of: one.of, why: await toAdvice({ source, signal }, error, named) }
    }
  }
  for (let at = 0; at < requests.length; at += CONCURRENCY)
    for (const one of await Promise.all(requests.slice(at, at + CONCURRENCY).map(settle)))
      if ('why' in one) failed.push(one)
      else answers.push(one)
  return { answers, failed }
}
