import { dexTrades } from '../../../shared/datasets/dex-trades.ts'
import { tokenHolders } from '../../../shared/datasets/holders.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { findComposition } from '../../../shared/registry/index-records.ts'
import { readUnpricedMembers, toUnpricedNote } from '../../../shared/store/store.ts'
import { defineProfile } from '../../profiles/profile.ts'
import type { AppContext } from '../../route/define-route.ts'
import { tokenKind } from '../../route/entities.ts'
import { daosRoute } from '../daos.ts'
import { indexWeightsRoute } from '../index/weights.ts'
import { tokensRoute } from '../tokens.ts'
import { dexDataRoute } from './dex-data.ts'
import { holdersRoute } from './holders.ts'

/** Why the Index's newest value contains no weight of a token: the token may be in a basket that has no value yet. */
async function toUnweighed(id: string, { db, registry: { index }, now }: AppContext): Promise<string> {
  const at = now()
  const isMember = findComposition(index, at)?.elements.some(({ token }) => token.id === id)
  if (!isMember) return 'it is not in the Index'
  const note = toUnpricedNote(await readUnpricedMembers(db, index, at))
  return ['the Index has no value with it yet', note].filter((text) => text !== '').join(': ')
}

export const tokenProfileRoute = defineProfile({
  operation: 'getTokenProfile',
  path: '/data/tokens/profile',
  tag: 'Tokens',
  summary: 'All records of one token',
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
      otherwise: toUnweighed,
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
