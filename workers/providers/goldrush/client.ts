import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import type { ErrorAnswer, ErrorReading, HttpClient, Query } from '../../http/client.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { asSent, checkAnswer, toUnknown } from '../answer.ts'
import type { Wallet } from '../contracts/treasury-daos.ts'

/** Statuses for an address or a chain that the provider does not know. */
const NO_SUCH_ADDRESS: readonly number[] = [400, 404]

/** The trial allows four requests a second. At 200 a minute, one at a time, that is never exceeded. */
const BURST = 1

/** Opens GoldRush with its key, if there is one (docs/providers.md, section 11). */
export function openGoldRush({ config, http }: ProviderContext): HttpClient {
  const { apiKey, ...settings } = config.providers.goldrush
  const headers = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` }
  return http.open({ provider: 'goldrush', ...settings, burst: BURST, headers, readError })
}

const envelope = z.object({
  data: asSent,
  error: z.boolean().nullish(),
  error_message: z.string().nullish(),
  // Documented as a number in the schemas, but as a text in the examples.
  error_code: z.coerce.number().nullish(),
})

/**
 * Fetches a response about an address.
 * @throws DataError `provider_unknown` if the provider does not know the address or the chain.
 */
export async function fetchData<T>(
  client: HttpClient,
  { chainId, address }: Wallet,
  method: string,
  schema: z.ZodType<T>,
  query: Query,
  signal: AbortSignal,
): Promise<T> {
  const path = `/v1/${chainId}/address/${address}/${method}/`
  const route = `/v1/{chain}/address/{address}/${method}/`
  const answer = await client.json({ path, route, query, signal, absent: NO_SUCH_ADDRESS })
  if (answer === undefined) throw toUnknown('goldrush', path)
  const checked = checkAnswer(envelope, answer, { provider: 'goldrush', path })
  if (!checked.error) return checkAnswer(schema, checked.data, { provider: 'goldrush', path })
  const status = checked.error_code ?? 0
  if (NO_SUCH_ADDRESS.includes(status)) throw toUnknown('goldrush', path)
  const says = `error ${status}: ${checked.error_message ?? 'no message'}`
  throw new DataError(toCode(status), `goldrush ${path}: ${says}${toHint(status)}`)
}

/** 402 means that the plan's credits are exhausted; the reset time is not documented. */
function toCode(status: number): ErrorAnswer {
  if (status === 429 || status >= 500) return 'provider_unavailable'
  return status === 402 ? 'provider_exhausted' : 'provider_rejected'
}

const toHint = (status: number) => (status >= 401 && status <= 403 ? ' (check GOLDRUSH_API_KEY and its credits)' : '')

/** Adds the relevant setting to the message; retries follow the default rules. */
function readError(status: number, body: string): ErrorReading | undefined {
  if (status !== 401 && status !== 402 && status !== 403) return undefined
  return { code: toCode(status), says: `${body}${toHint(status)}` }
}
