import { onTestFinished } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import type { Provider } from '../../workers/job/define-job.ts'
import type { TreasurySource } from '../../workers/providers/contracts/treasury.ts'
import type { TreasuryDao } from '../../workers/providers/contracts/treasury-daos.ts'
import { createObservedClients, type Handler, startProviderServer } from '../provider-server.ts'
import { toTestDao } from '../samples.ts'
import { noDatabase } from './no-database.ts'
import { silent } from './silent.ts'

export const TODAY = Date.UTC(2024, 4, 6)
export const DAY = 86_400_000
export const address = (n: number) => `0x${String(n).padStart(40, 'a')}`
export const wallet = (n: number, chainId: number | null = 1) => ({ chain: 'ethereum', chainId, address: address(n) })
export const alfa: TreasuryDao = { ...toTestDao(1, 'alfa'), wallets: [wallet(1)], kindOf: () => 'other' }

/** A treasury provider with one server for all its hosts, which is closed after the test. */
export async function connectTreasury(
  provider: Pick<Provider<TreasurySource, TreasuryDao>, 'connect'>,
  handler: Handler,
  settings: Record<string, string> = { GOLDRUSH_API_KEY: 'secret' },
) {
  const server = await startProviderServer(handler)
  onTestFinished(server.close)
  const config = parseConfig({
    GOLDRUSH_BASE_URL: server.baseUrl,
    GOLDRUSH_REQUESTS_PER_MINUTE: '60000',
    DEFILLAMA_BASE_URL: server.baseUrl,
    DEFILLAMA_COINS_BASE_URL: `${server.baseUrl}/coins`,
    DEFILLAMA_REQUESTS_PER_MINUTE: '60000',
    ...settings,
  })
  const { http } = createObservedClients()
  const context = { config, http, db: noDatabase, log: silent, now: () => TODAY + 3_600_000 }
  return { server, context, source: provider.connect(context) }
}
