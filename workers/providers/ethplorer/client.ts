import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { ErrorReading, HttpClient, Query } from '../../http/client.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { checkAnswer, toJsonValue, toUnknown } from '../answer.ts'

/** Statuses for a token that the provider does not know, or does not accept as a token. */
const NO_SUCH_TOKEN = [400, 404]

/** The free key allows two requests a second and 20 a minute. */
const BURST = 1

/**
 * Returns the client of a token's host: Ethplorer's, or its sister host for BNB Chain (docs/providers.md, section 5).
 */
export function openEthplorer({ config, http }: ProviderContext): (token: Token) => HttpClient {
  const { apiKey: _, baseUrl, bnbBaseUrl, ...settings } = config.providers.ethplorer
  const open = (url: string) => http.open({ provider: 'ethplorer', ...settings, burst: BURST, baseUrl: url, readError })
  const [ethereum, bnb] = [open(baseUrl), open(bnbBaseUrl)]
  return ({ chain }) => (chain === 'bnb' ? bnb : ethereum)
}

/** Fetches a response about a token. @throws DataError `provider_unknown` if the provider does not know the token. */
export async function fetchAnswer<T>(
  client: HttpClient,
  method: string,
  schema: z.ZodType<T>,
  token: Token,
  query: Query,
  signal: AbortSignal,
): Promise<T> {
  const path = `/${method}/${token.contractAddress}`
  const answer = await client.json({ path, route: `/${method}/{address}`, query, signal, absent: NO_SUCH_TOKEN })
  if (answer === undefined) throw toUnknown('ethplorer', path)
  const error = errorAnswer.safeParse(answer)
  if (!error.success) return checkAnswer(schema, answer, { provider: 'ethplorer', path })
  const { code } = error.data.error
  if (UNKNOWN_TOKEN.has(code)) throw toUnknown('ethplorer', path)
  const { code: kind, says } = toReading(error.data.error)
  throw new DataError(kind, `ethplorer ${path}: ${says}`)
}

const errorAnswer = z.object({ error: z.object({ code: z.coerce.number(), message: z.string() }) })

const INVALID_KEY = 1
const LIMIT_REACHED = 429
/** An invalid address, and an address without a token. */
const UNKNOWN_TOKEN: ReadonlySet<number> = new Set([104, 150])

/** Interprets an error body, independent of its status (docs/providers.md, section 5). */
function toReading({ code, message }: z.infer<typeof errorAnswer>['error']): ErrorReading {
  const hint = code === INVALID_KEY ? ' (check ETHPLORER_API_KEY)' : ''
  const kind = code === LIMIT_REACHED ? 'provider_unavailable' : 'provider_rejected'
  return { code: kind, says: `error ${code}: ${message}${hint}` }
}

/** The status decides for gateways' pages and 5xx, the error code for the rest. */
function readError(status: number, body: string): ErrorReading | undefined {
  if (status >= 500) return undefined
  const parsed = errorAnswer.safeParse(toJsonValue(body))
  return parsed.success ? toReading(parsed.data.error) : undefined
}
