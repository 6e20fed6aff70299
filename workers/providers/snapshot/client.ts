import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import type { ErrorReading, HttpClient } from '../../http/client.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'

const GRAPHQL = '/graphql'

/** Opens the Snapshot hub (docs/providers.md, section 9). A key is optional and raises the limit. */
export function openSnapshot({ config, http }: Pick<ProviderContext, 'config' | 'http'>): HttpClient {
  const { apiKey, ...settings } = config.providers.snapshot
  const headers = apiKey === undefined ? {} : { 'x-api-key': apiKey }
  return http.open({ provider: 'snapshot', ...settings, headers, readError })
}

const envelope = z.object({
  data: z.record(z.string(), z.unknown()).nullish(),
  errors: z.array(z.unknown()).nullish(),
})
const failure = z.object({ message: z.string() })

interface Question {
  readonly query: string
  readonly variables: object
}

/**
 * Sends one query. Data next to errors is valid: an error in one element does not affect the others.
 * @throws DataError `provider_unavailable` if errors leave the query without data. No query exceeds the hub's limits,
 *   so the cause is a temporary problem of its database.
 */
export async function runQuery<T>(
  client: HttpClient,
  question: Question,
  data: z.ZodType<T>,
  signal: AbortSignal,
): Promise<T> {
  return (await runQueryWithErrors(client, question, data, signal)).data
}

async function runQueryWithErrors<T>(client: HttpClient, body: Question, schema: z.ZodType<T>, signal: AbortSignal) {
  const source = { provider: 'snapshot', path: GRAPHQL }
  const { data, errors } = checkAnswer(
    envelope,
    await client.json({ path: GRAPHQL, method: 'POST', body, signal }),
    source,
  )
  const says = (errors ?? []).map((error) => failure.safeParse(error).data?.message ?? 'an error without a message')
  const hasData = Object.values(data ?? {}).some((field) => field !== null)
  if (says.length > 0 && !hasData) {
    throw new DataError('provider_unavailable', `snapshot ${GRAPHQL}: ${says.slice(0, 3).join('; ')}`)
  }
  return { data: checkAnswer(schema, data, source), says }
}

/** A list as received. Unreadable elements are undefined, and `reasons` has one reason for each. */
export interface Elements<T> {
  readonly elements: readonly (T | undefined)[]
  readonly reasons: readonly string[]
}

/** In a shorter list, even a majority of unreadable elements does not prove a changed format. */
const JUDGED_LENGTH = 10

/**
 * Queries a list under `field`. An element that is null or does not match the schema affects only itself.
 * @throws DataError as `runQuery`; `provider_malformed` if most elements of a list of at least JUDGED_LENGTH do not match.
 */
export async function queryList<T>(
  client: HttpClient,
  question: Question,
  { field, element }: { readonly field: string; readonly element: z.ZodType<T> },
  signal: AbortSignal,
): Promise<Elements<T>> {
  const list = z.object({ [field]: z.array(z.unknown()) })
  const { data, says } = await runQueryWithErrors(client, question, list, signal)
  const reasons: string[] = []
  const elements = (data[field] ?? []).map((value) => {
    const { data: read, error } = element.safeParse(value)
    if (error === undefined) return read
    const { path = [], message = '' } = error.issues[0] ?? {}
    reasons.push(value === null ? (says[0] ?? 'null') : `${path.join('.') || 'element'}: ${message}`)
    return undefined
  })
  if (elements.length >= JUDGED_LENGTH && reasons.length > elements.length / 2) {
    const text = `${reasons.length} of ${elements.length} elements of ${field} cannot be read: ${reasons[0]}`
    throw new DataError('provider_malformed', `snapshot ${GRAPHQL}: ${text}`)
  }
  return { elements, reasons }
}

/** Adds the relevant setting to the message; retries follow the default rules. */
function readError(status: number, body: string): ErrorReading | undefined {
  if (status !== 401 && status !== 403) return undefined
  return { code: 'provider_rejected', says: `${body} (check SNAPSHOT_API_KEY)` }
}
