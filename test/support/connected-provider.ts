import { onTestFinished } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import type { Provider } from '../../workers/job/define-job.ts'
import { createObservedClients, startProviderServer } from '../provider-server.ts'
import { toTestToken } from '../samples.ts'
import { noDatabase } from './no-database.ts'
import { silent } from './silent.ts'

/** Monthly plans that no test uses up. */
const WIDE_PLANS = { COINMARKETCAP_CREDITS_PER_MONTH: '1000000000', COINGECKO_CALLS_PER_MONTH: '1000000000' }

type Server = Awaited<ReturnType<typeof startProviderServer>>

/** A provider connected to a test server, which is closed after the test. */
export async function connectTo<Source>(
  provider: Pick<Provider<Source, never>, 'name' | 'connect'>,
  handler: Parameters<typeof startProviderServer>[0],
  apiKey?: string,
  now = Date.now(),
): Promise<{ server: Server; source: Source; calls: ReturnType<typeof createObservedClients>['calls'] }> {
  const server = await startProviderServer(handler)
  onTestFinished(server.close)
  const name = provider.name.toUpperCase()
  const config = parseConfig({
    [`${name}_BASE_URL`]: server.baseUrl,
    [`${name}_REQUESTS_PER_MINUTE`]: '60000',
    ...WIDE_PLANS,
    ...(apiKey === undefined ? {} : { [`${name}_API_KEY`]: apiKey }),
  })
  const { http, calls } = createObservedClients()
  return { server, source: provider.connect({ config, http, db: noDatabase, log: silent, now: () => now }), calls }
}

/** Returns `count` tokens with ids for CoinMarketCap and CoinGecko. */
export const toTestTokens = (count: number) =>
  Array.from({ length: count }, (_, n) => toTestToken(n + 1, { cmcId: String(n + 1), coingeckoId: `coin-${n + 1}` }))

/** The value of a query parameter in each request. */
export const paramOf = (server: Server, name: string) => server.requests.map(({ url }) => url.searchParams.get(name))
