import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { HttpClient } from '../../http/client.ts'
import type { ErrorReading, Query } from '../../http/request.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { checkAnswer, toJsonValue, toUnknown } from '../answer.ts'

/** A token that the provider does not know, or does not take for one. */
const NO_SUCH_TOKEN = [400, 404]

/** The free key takes two requests a second, and 20 a minute. */
const BURST = 1

/** The host of each token: Ethplorer's own, or its sister's for BNB Chain (docs/providers.md, section 5). */
export function openEthplorer({ config, http }: ProviderContext): (token: Token) => HttpClient {
  const { apiKey: _, baseUrl, bnbBaseUrl, ...settings } = config.providers.ethplorer
  const open = (url: string) => http.open({ provider: 'ethplorer', ...settings, burst: BURST, baseUrl: url, readError })
  const [ethereum, bnb] = [open(baseUrl), open(bnbBaseUrl)]
  return ({ chain }) => (chain === 'bnb' ? bnb : ethereum)
}

/** One answer about a token. @throws DataError `provider_unknown` for a token that the provider does not know. */
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
/** An invalid address, and one that is no token's. */
const UNKNOWN_TOKEN: ReadonlySet<number> = new Set([104, 150])

/** What an error body means, whatever status it came with (docs/providers.md, section 5). */
function toReading({ code, message }: z.infer<typeof errorAnswer>['error']): ErrorReading {
  const hint = code === INVALID_KEY ? ' (check ETHPLORER_API_KEY)' : ''
  const kind = code === LIMIT_REACHED ? 'provider_unavailable' : 'provider_rejected'
  return { code: kind, says: `error ${code}: ${message}${hint}` }
}

/** The status decides for gateways' pages and for 5xx, the code for the rest. */
function readError(status: number, body: string): ErrorReading | undefined {
  if (status >= 500) return undefined
  const parsed = errorAnswer.safeParse(toJsonValue(body))
  return parsed.success ? toReading(parsed.data.error) : undefined
}
