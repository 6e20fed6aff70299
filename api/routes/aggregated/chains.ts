import { defineGroupSums } from '../../lists/group-sums.ts'
import { treasuryRoute } from '../daos/treasury.ts'
import { tokensRoute } from '../tokens.ts'

export const chainSumsRoute = defineGroupSums({
  operation: 'listChainSums',
  path: '/data/aggregated/chains',
  summary: 'Tokens, DAOs and what they are worth, by chain',
  name: 'chain',
  plural: 'chains',
  schema: 'ChainSums',
  note: 'A token belongs to its chain. A DAO counts on each chain that it is on, with all of its treasury wherever that lies, so the sums are not to be added up.',
  groups: ({ chains }) => chains,
  groupsOf: (kind, _, entity) => kind.chainsOf(entity),
  tokens: tokensRoute,
  treasuries: treasuryRoute,
})
