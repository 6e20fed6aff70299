import { dexTrades } from '../../../shared/datasets/dex-trades.ts'
import { tokenHolders } from '../../../shared/datasets/holders.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { defineProfile } from '../../profiles/profile.ts'
import { tokenKind } from '../../route/entities.ts'
import { daosRoute } from '../daos.ts'
import { indexWeightsRoute } from '../index/weights.ts'
import { tokensRoute } from '../tokens.ts'
import { dexDataRoute } from './dex-data.ts'
import { holdersRoute } from './holders.ts'

export const tokenProfileRoute = defineProfile({
  operation: 'getTokenProfile',
  path: '/data/tokens/profile',
  tag: 'Tokens',
  summary: 'Everything that is known of one token',
  kind: tokenKind,
  schema: 'TokenProfile',
  sections: [
    { name: 'token', route: tokensRoute, datasets: [tokenPrices] },
    { name: 'holders', route: holdersRoute, datasets: [tokenHolders] },
    { name: 'dex', route: dexDataRoute, datasets: [dexTrades] },
    {
      name: 'index',
      route: indexWeightsRoute,
      query: (id) => ({ filter: `token=${id}` }),
      datasets: [],
      otherwise: 'it is not in the Index',
    },
    {
      name: 'dao',
      route: daosRoute,
      of: ({ dao }, { daoBySlug }) => daoBySlug.get(dao)?.id,
      datasets: [],
      otherwise: 'its DAO is not live',
    },
  ],
})
