import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import type { HttpClient } from '../../http/client.ts'
import type { ErrorReading, Query } from '../../http/request.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { asSent, checkAnswer } from '../answer.ts'
import type { Wallet } from '../contracts/treasury-daos.ts'

/** An address or a chain that the provider does not know. */
const NO_SUCH_ADDRESS: readonly number[] = [400, 404]

/** GoldRush's host with its key, where there is one (providers document, section 11). */
export function openGoldRush({ config, http }: ProviderContext): HttpClient {
  const { apiKey, ...settings } = config.providers.goldrush
  const headers = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` }
  return http.open({ provider: 'goldrush', ...settings, headers, readError })
}

const envelope = z.object({
  data: asSent,
  error: z.boolean().nullish(),
  error_message: z.string().nullish(),
  // Documented as a number in the schemas and as a text in the examples.
  error_code: z.coerce.number().nullish(),
})

/** One answer about an address; undefined for an address or a chain that the provider does not know. */
export async function fetchData<T>(
  client: HttpClient,
  { chainId, address }: Wallet,
  method: string,
  schema: z.ZodType<T>,
  query: Query,
  signal: AbortSignal,
): Promise<T | undefined> {
  const path = `/v1/${chainId}/address/${address}/${method}/`
  const route = `/v1/{chain}/address/{address}/${method}/`
  const answer = await client.json({ path, route, query, signal, absent: NO_SUCH_ADDRESS })
  if (answer === undefined) return undefined
  const checked = checkAnswer(envelope, answer, { provider: 'goldrush', path })
  if (!checked.error) return checkAnswer(schema, checked.data, { provider: 'goldrush', path })
  const status = checked.error_code ?? 0
  if (NO_SUCH_ADDRESS.includes(status)) return undefined
  const isTransient = status === 429 || status >= 500
  const says = `error ${status}: ${checked.error_message ?? 'no message'}`
  throw new DataError(isTransient ? 'provider_unavailable' : 'provider_rejected', `goldrush ${path}: ${says}`)
}

/** Adds the setting to look at; which statuses are worth another try is as everywhere. */
function readError(status: number, body: string): ErrorReading | undefined {
  if (status !== 401 && status !== 402 && status !== 403) return undefined
  return { code: 'provider_rejected', says: `${body} (check GOLDRUSH_API_KEY and its credits)` }
}
