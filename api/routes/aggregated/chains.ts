import { defineGroupSums } from '../../lists/lists.ts'
import { treasuryRoute } from '../daos/treasury.ts'
import { tokensRoute } from '../tokens.ts'

export const chainSumsRoute = defineGroupSums({
  operation: 'listChainSums',
  path: '/data/aggregated/chains',
  summary: 'Number and value of tokens and DAOs by chain',
  name: 'chain',
  plural: 'chains',
  schema: 'ChainSums',
  note: 'A token counts on its chain. A DAO counts on each of its chains with its whole treasury, so do not add up the sums.',
  groups: ({ chains }) => chains,
  groupsOf: (kind, _, entity) => kind.chainsOf(entity),
  tokens: tokensRoute,
  treasuries: treasuryRoute,
})
