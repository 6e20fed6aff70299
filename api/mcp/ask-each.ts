import { toAdvice } from './advice.ts'
import type { Call } from './define-tool.ts'
import { Refused, type Reply } from './source.ts'

const AT_ONCE = 4

/** A path with its query, and whom it is about where that is one. */
interface Asked {
  readonly of: string | undefined
  readonly path: string
}

type Answered<A extends Asked> = A & { readonly reply: Reply }

/** Whom nothing is told of, and what to do next. */
export interface Failed {
  readonly of: string | undefined
  readonly why: string
}

/**
 * Asks in small groups: one assistant must not keep the database busy. What is refused of one loses nothing of the others.
 * `ask` may refuse what the source would answer.
 * @throws whatever is no refusal, and every failure of a call that was given up.
 */
export async function askEach<A extends Asked>(
  { source, signal }: Pick<Call<unknown>, 'source' | 'signal'>,
  asked: readonly A[],
  ask = source.ask,
): Promise<{ readonly answers: readonly Answered<A>[]; readonly failed: readonly Failed[] }> {
  const answers: Answered<A>[] = []
  const failed: Failed[] = []
  const settle = async (one: A): Promise<Answered<A> | Failed> => {
    try {
      return { ...one, reply: await ask(one.path, signal) }
    } catch (error) {
      if (!(error instanceof Refused) || signal.aborted) throw error
      return { of: one.of, why: await toAdvice({ source, signal }, error, one.of) }
    }
  }
  for (let at = 0; at < asked.length; at += AT_ONCE)
    for (const one of await Promise.all(asked.slice(at, at + AT_ONCE).map(settle)))
      if ('why' in one) failed.push(one)
      else answers.push(one)
  return { answers, failed }
}
