import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { LIST_HEADERS } from '../http/headers.ts'
import { answerComputed } from '../lists/computed-list.ts'
import { EVERYTHING } from '../lists/engine.ts'
import { limit, searchText } from '../parameters/kinds.ts'
import { idValue } from '../records/table.ts'
import { defineRoute } from '../route/define-route.ts'
import { readMarketCaps, search } from '../search/search.ts'

const found = z
  .strictObject({
    type: z.enum(['token', 'dao']).describe('Whether it is a token or a DAO.'),
    _id: idValue.describe('Id of the token or the DAO.'),
    name: z.string().describe('Its name.'),
    symbol: z.string().nullable().describe("Its symbol: a DAO's is that of its token, null where it has none."),
    slug: z.string().nullable().describe("A DAO's name as it stands in URLs; null for a token."),
    image: z.url().nullable().describe("URL of a DAO's logo; null for a token and where none is known."),
    matched: z
      .string()
      .describe('The member that fits what was looked for; `category` where only a category of it does.'),
  })
  .meta({ id: 'SearchResult', description: 'A token or a DAO that was found.' })

export const searchRoute = defineRoute({
  operation: 'search',
  path: '/data/search',
  tag: 'Registry',
  summary: 'Tokens and DAOs by whatever is known of them',
  description:
    'Live tokens and DAOs in one list, best first: those whose symbol is exactly `q`, whose name is, whose slug, contract address or CoinMarketCap id is, those that begin with it, and those that contain it; last those of a category whose name has these words, such as `lending`. Among these the larger market cap first, then the name. Without regard to case.',
  query: { q: searchText, limit: limit('records', { default: 10, max: 100 }) },
  record: found,
  datasets: [tokenPrices],
  headers: LIST_HEADERS,
  handle: async (call) => {
    const { registry, query } = call
    const records = search(registry, await readMarketCaps(call), query.q)
    const answer = await answerComputed(
      call,
      { name: 'search', records, asOf: null },
      { selection: EVERYTHING, sort: [], filters: [], limit: query.limit },
    )
    // The route has no pages: a longer `q` finds the other matches.
    const { Link: _, ...headers } = answer.headers ?? {}
    return { ...answer, headers, staleAt: null }
  },
})
