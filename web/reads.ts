import type { paths } from '../clients/typescript/src/schema.ts'

/**
 * The datasets of each answer that the page shows, copied from the API's OpenAPI document; a test compares them. Other
 * answers have no change events.
 */
export const READS: Readonly<Partial<Record<keyof paths, readonly string[]>>> = {
  '/data/aggregated/market-cap': ['market-cap'],
  '/data/aggregated/treasury-value': ['treasury-value'],
  '/data/categories': [],
  '/data/chains': [],
  '/data/daos': ['daos', 'prices', 'twitter'],
  '/data/daos/fees': ['fees', 'prices'],
  '/data/daos/fees/historic': ['fees'],
  '/data/daos/governance/delegates': ['delegations', 'governors'],
  '/data/daos/governance/proposals': ['governance', 'governors'],
  '/data/daos/governance/summary': ['governance', 'prices'],
  '/data/daos/governance/voters': ['governance', 'governors'],
  '/data/daos/governance/votes': ['governance', 'governors'],
  '/data/daos/ratings': ['ratings', 'prices'],
  '/data/daos/socials': ['twitter', 'discord', 'daos', 'prices'],
  '/data/daos/socials/historic-discord': ['discord'],
  '/data/daos/socials/historic-telegram': ['telegram'],
  '/data/daos/socials/historic-twitter': ['twitter'],
  '/data/daos/socials/historic-twitter-sentiment': ['twitter-sentiment'],
  '/data/daos/treasury': ['treasury', 'prices'],
  '/data/daos/treasury/historic': ['treasury'],
  '/data/daos/treasury/holdings': ['treasury'],
  '/data/daos/treasury/kinds': ['treasury', 'prices'],
  '/data/index/compositions': [],
  '/data/index/historic': ['index'],
  '/data/index/token-data': ['index-token'],
  '/data/index/weights': ['index'],
  '/data/search': ['prices'],
  '/data/tokens': ['prices', 'tvl'],
  '/data/tokens/dex-data': ['dex-trades', 'prices'],
  '/data/tokens/historic-dex-ohlcv': ['dex-trades'],
  '/data/tokens/historic-dex-trades': ['dex-trades'],
  '/data/tokens/historic-financial': ['prices'],
  '/data/tokens/historic-ohlc': ['prices'],
  '/data/tokens/holders': ['holders', 'prices'],
  '/data/tokens/holders/historic': ['holders'],
  '/data/voters': ['governance', 'governors', 'delegations'],
}
