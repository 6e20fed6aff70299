import { defineGroupSums } from '../../lists/lists.ts'
import { treasuryRoute } from '../daos/treasury.ts'
import { tokensRoute } from '../tokens.ts'

export const categorySumsRoute = defineGroupSums({
  operation: 'listCategorySums',
  path: '/data/aggregated/categories',
  summary: 'Number and value of tokens and DAOs by category',
  name: 'category',
  plural: 'categories',
  schema: 'CategorySums',
  note: 'A token belongs to the categories of its DAO; a DAO of several counts in each, so the sums are not to be added up.',
  groups: ({ categories }) => categories,
  groupsOf: (kind, registry, entity) => kind.categoriesOf(registry, entity),
  tokens: tokensRoute,
  treasuries: treasuryRoute,
})
