import type { ErrorReading, HttpClient } from '../../http/client.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { toNextDay } from '../plan-resets.ts'
import { toCallsPerDay, toHistoryCallsPerDay } from './budget.ts'

/** The provider's chain names by the registry's slug. Other chains are not requested. */
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

/** Status for a token that the provider does not know. 400 refuses the request itself, such as an unsupported chain. */
export const NO_SUCH_TOKEN = [404]

/** Opens Moralis with its key, if there is one (docs/providers.md, section 4). */
export function openMoralis({ config, http }: ProviderContext): HttpClient {
  const { apiKey, unitsPerDay: _, ...settings } = config.providers.moralis
  const withKey = (key: string) => ({
    headers: { 'X-API-Key': key },
    requestsPerDay: toCallsPerDay(config),
    historyRequestsPerDay: toHistoryCallsPerDay(config),
    daySetting: 'MORALIS_UNITS_PER_DAY',
  })
  return http.open({ provider: 'moralis', ...settings, ...(apiKey === undefined ? {} : withKey(apiKey)), readError })
}

/**
 * Message with status 401 if the units of a day are exhausted: "Validation service blocked: Your plan: free-plan-daily
 * total included usage has been consumed", or "SUPPORT BLOCKED: ...". Any other 401 is about the key.
 */
const USED_UP = /total included usage has been consumed|(validation service|support) blocked/i

/** Adds the relevant setting to the message. An exhausted plan, which only the text identifies, resets at midnight. */
function readError(status: number, body: string): ErrorReading | undefined {
  if (status !== 401 && status !== 402 && status !== 403) return undefined
  const says = `${body} (check MORALIS_API_KEY and its plan)`
  if (USED_UP.test(body)) return { code: 'provider_exhausted', says, retryAfterMs: toNextDay(Date.now()) }
  return { code: 'provider_rejected', says }
}
