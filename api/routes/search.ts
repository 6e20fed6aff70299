import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { LIST_HEADERS } from '../http/headers.ts'
import { answerComputed } from '../lists/computed-list.ts'
import { EVERYTHING } from '../lists/engine.ts'
import { include, limit, searchText } from '../parameters/kinds.ts'
import { idValue } from '../records/table.ts'
import { defineRoute } from '../route/define-route.ts'
import { MATCH_KINDS, readMarketCaps, search } from '../search/search.ts'

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
      .describe(
        'The member that fits `q`. Others than its own: `formerName`, a name or symbol that it had before; `predecessor` and `formerAddress`, of a token that was exchanged for it; `treasury`, `governor` and `votingToken`, addresses of a DAO; `category` or `chain` if only one of these fits.',
      ),
  })
  .meta({ id: 'SearchResult', description: 'A token or a DAO that was found.' })

const foundWithMatch = found
  .extend({
    match: z
      .strictObject({
        kind: z
          .enum(MATCH_KINDS)
          .describe(
            'How `q` fits the text: it is the text, its beginning or a part of it, its words or the beginning of them, or the text with one or two typing errors or other punctuation.',
          ),
        text: z.string().describe('The text that fits `q`, for example the former symbol.'),
      })
      .describe('Why it was found. With `include=match`.'),
  })
  .meta({ id: 'SearchResultWithMatch', description: 'A token or a DAO that was found, and why. With `include=match`.' })

export const searchRoute = defineRoute({
  operation: 'search',
  path: '/data/search',
  tag: 'Registry',
  summary: 'Tokens and DAOs by whatever is known of them',
  description:
    'Live tokens and DAOs in one list, best first: those whose symbol is exactly `q`, whose name is, whose slug, contract address or CoinMarketCap id is, then a former name or symbol, a token that was exchanged for it, or an address of a treasury, governor or voting token; those that begin with `q`, and those that contain it; the same with former names; those of a category, then of a chain, whose name has these words, such as `lending`; last those whose name has one typing error, or two from 8 letters on. No typing errors are searched for in texts of fewer than 4 letters, in addresses and in numbers. Among these the larger market cap first, then the name. Without regard to case.',
  query: {
    q: searchText,
    include: include(['match'], 'With `match`, why each record was found.'),
    limit: limit('records', { default: 10, max: 100 }),
  },
  record: found,
  recordWith: { record: foundWithMatch, members: { match: 'include=match' }, shapes: [foundWithMatch] },
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
