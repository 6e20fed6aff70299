import { DataError } from '../../shared/errors.ts'
import type { Entity, Run } from '../job/define-job.ts'
import { toNotAsked } from './ask-each.ts'

/** One call for several entities. */
export interface Batch<E extends Entity> {
  readonly entities: readonly E[]
}

/** Failures that affect only one response; the next call may succeed. */
const ABOUT_ANSWER: ReadonlySet<string> = new Set(['provider_malformed', 'provider_unknown'])

/**
 * Makes the calls in sequence and returns the rows of the successful ones. The entities of a failed call are refused.
 * If the failure affects more than this response, the remaining calls are not made and their entities are refused, too.
 * @throws DataError the first failure, if no call succeeded.
 */
export async function askBatches<E extends Entity, B extends Batch<E>, Row>(
  batches: readonly B[],
  ask: (batch: B) => Promise<readonly Row[]>,
  { refuse }: Pick<Run<unknown, E>, 'refuse'>,
): Promise<Row[]> {
  const rows: (readonly Row[])[] = []
  const failed: { batch: B; error: DataError }[] = []
  let end: DataError | undefined
  for (const batch of batches) {
    if (end !== undefined) failed.push({ batch, error: toNotAsked(end) })
    else {
      try {
        rows.push(await ask(batch))
      } catch (error) {
        if (!(error instanceof DataError)) throw error
        failed.push({ batch, error })
        if (!ABOUT_ANSWER.has(error.code)) end = error
      }
    }
  }
  const [first] = failed
  if (first !== undefined && rows.length === 0) throw first.error
  for (const { batch, error } of failed) for (const entity of batch.entities) refuse(entity, error)
  return rows.flat()
}
