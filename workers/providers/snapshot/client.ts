import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import type { HttpClient } from '../../http/client.ts'
import type { ErrorReading } from '../../http/request.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'

const GRAPHQL = '/graphql'

/** The Snapshot hub (providers document, section 9). It needs no key; one raises its limit. */
export function openSnapshot({ config, http }: Pick<ProviderContext, 'config' | 'http'>): HttpClient {
  const { apiKey, ...settings } = config.providers.snapshot
  const headers = apiKey === undefined ? {} : { 'x-api-key': apiKey }
  return http.open({ provider: 'snapshot', ...settings, headers, readError })
}

const answerOf = <T>(data: z.ZodType<T>) => z.object({ data })
const failedAnswer = z.object({ errors: z.array(z.object({ message: z.string() })).min(1) })

/**
 * Asks one question.
 * @throws DataError `provider_unavailable` for errors in an answer with status 200. No question goes beyond the hub's
 * limits, so what is left is trouble with its database, which passes.
 */
export async function ask<T>(
  client: HttpClient,
  body: { query: string; variables: object },
  data: z.ZodType<T>,
  signal: AbortSignal,
): Promise<T> {
  const answer = await client.json({ path: GRAPHQL, method: 'POST', body, signal })
  const failed = failedAnswer.safeParse(answer)
  if (failed.success) {
    const says = failed.data.errors.map(({ message }) => message).join('; ')
    throw new DataError('provider_unavailable', `snapshot ${GRAPHQL}: ${says}`)
  }
  return checkAnswer(answerOf(data), answer, { provider: 'snapshot', path: GRAPHQL }).data
}

/** Adds the setting to look at; which statuses are worth another try is as everywhere. */
function readError(status: number, body: string): ErrorReading | undefined {
  if (status !== 401 && status !== 403) return undefined
  return { code: 'provider_rejected', says: `${body} (check SNAPSHOT_API_KEY)` }
}
