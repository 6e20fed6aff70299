import type { HttpClient } from '../../http/client.ts'
import type { ErrorReading } from '../../http/request.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { toNextDay } from '../plan-resets.ts'
import { toCallsPerDay, toHistoryCallsPerDay } from './budget.ts'

export const COST = '50 compute units a call, up to MORALIS_UNITS_PER_DAY'

/** The provider's names of the registry's chains, by slug; a chain that is not here is not asked for. */
export const MORALIS_CHAINS: Readonly<Record<string, string>> = {
  arbitrum: 'arbitrum',
  avalanche: 'avalanche',
  base: 'base',
  bnb: 'bsc',
  ethereum: 'eth',
  gnosis: 'gnosis',
  linea: 'linea',
  optimism: 'optimism',
  polygon: 'polygon',
}

/** A token that the provider does not know. With 400 it refuses the question, such as a chain that it does not have. */
export const NO_SUCH_TOKEN = [404]

/** Moralis with its key, where there is one (docs/providers.md, section 4). */
export function openMoralis({ config, http }: ProviderContext): HttpClient {
  const { apiKey, unitsPerDay: _, ...settings } = config.providers.moralis
  const perDay = { requestsPerDay: toCallsPerDay(config), historyRequestsPerDay: toHistoryCallsPerDay(config) }
  const daySetting = 'MORALIS_UNITS_PER_DAY'
  const headers = apiKey === undefined ? {} : { 'X-API-Key': apiKey }
  return http.open({ provider: 'moralis', ...settings, ...perDay, daySetting, headers, readError })
}

/**
 * What the provider says with status 401 when the units of a day are used up: "Validation service blocked: Your plan:
 * free-plan-daily total included usage has been consumed", or "SUPPORT BLOCKED: ...". Any other 401 is about the key.
 */
const USED_UP = /total included usage has been consumed|(validation service|support) blocked/i

/** Adds the setting to look at. A plan that is used up begins anew at midnight; it is told by the text alone. */
function readError(status: number, body: string): ErrorReading | undefined {
  if (status !== 401 && status !== 402 && status !== 403) return undefined
  const says = `${body} (check MORALIS_API_KEY and its plan)`
  if (USED_UP.test(body)) return { code: 'provider_exhausted', says, retryAfterMs: toNextDay(Date.now()) }
  return { code: 'provider_rejected', says }
}
