import { defillamaDeclaration } from '../../../shared/config/providers/defillama.ts'
import type { TokenPriceRow } from '../../../shared/datasets/token-prices.ts'
import { DataError } from '../../../shared/errors.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate, Witness } from '../../job/define-job.ts'
import { openDefiLlamaCoins } from './client.ts'
import { fetchCurrent, toCoin } from './prices.ts'

/**
 * Current prices by contract from DefiLlama's host of coin prices (docs/providers.md, section 3.2), without volume and
 * supplies. These prices confirm those of other providers.
 */
export const defillamaPrices: Witness<TokenPriceRow, Token> = {
  name: 'defillama-coins',
  cost: defillamaDeclaration.cost,
  covers: ({ contractAddress }) => contractAddress !== '',
  connect(context) {
    const client = openDefiLlamaCoins(context)
    return async ({ entities, signal, refuse }) => {
      const toName = ({ chain, contractAddress }: Token) => toCoin(chain, contractAddress)
      const { prices, faults } = await fetchCurrent(client, entities.map(toName), signal)
      return entities.flatMap((token) => {
        const [found, fault] = [prices.get(toName(token)), faults.get(toName(token))]
        if (fault !== undefined) refuse(token, new DataError('provider_unknown', fault))
        return found === undefined ? [] : [toRow(token, found)]
      })
    }
  },
}

function toRow(
  { key }: Token,
  { price, at }: { readonly price: number; readonly at: number },
): Candidate<TokenPriceRow> {
  return {
    token: key,
    observed_at: new Date(at).toISOString(),
    is_latest: true,
    price,
    volume_24h: null,
    market_cap: null,
    total_supply: null,
    circulating_supply: null,
    max_supply: null,
    fully_diluted_market_cap: null,
    volume_change_24h: null,
    percent_change_1h: null,
    percent_change_24h: null,
    percent_change_7d: null,
    percent_change_30d: null,
    percent_change_60d: null,
    percent_change_90d: null,
    tvl: null,
  }
}
