import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { idValue } from '../../shared/record-values.ts'
import { LIST_HEADERS } from '../http/headers.ts'
import { answerComputed, EVERYTHING } from '../lists/lists.ts'
import { include, limit, searchText } from '../parameters/kinds.ts'
import { defineRoute } from '../route/define-route.ts'
import { MATCH_KINDS, readMarketCaps, search } from '../search/search.ts'

const found = z
  .strictObject({
    type: z.enum(['token', 'dao']).describe('Whether it is a token or a DAO.'),
    _id: idValue.describe('Id of the token or the DAO.'),
    name: z.string().describe('Its name.'),
    symbol: z
      .string()
      .nullable()
      .describe('The symbol of the token; for a DAO, of its token. Null if a DAO has no token.'),
    slug: z.string().nullable().describe("A DAO's name in URLs; null for a token."),
    image: z.url().nullable().describe("URL of a DAO's logo; null for a token and where none is known."),
    matched: z
      .string()
      .describe(
        'The member that matches `q`. `formerName` is a former name or symbol. `predecessor` is the name or symbol of a token of another DAO that was exchanged for this one, `formerAddress` the address of any such token. `treasury`, `governor` and `votingToken` are addresses of a DAO. `category` or `chain` if only one of these matches.',
      ),
  })
  .meta({ id: 'SearchHit', description: 'A token or a DAO that was found.' })

const foundWithMatch = found
  .extend({
    match: z
      .strictObject({
        kind: z
          .enum(MATCH_KINDS)
          .describe(
            'How `q` matches the text: `exact`, `prefix` and `substring` compare letters, `words` compares words of a category or chain, `similar` allows typing errors and other punctuation.',
          ),
        text: z.string().describe('The text that matches `q`, for example the former symbol.'),
      })
      .describe('Why it was found. With `include=match`.'),
  })
  .meta({ id: 'SearchHitWithMatch', description: 'A token or a DAO that was found, and why. With `include=match`.' })

export const searchRoute = defineRoute({
  operation: 'search',
  path: '/data/search',
  tag: 'Registry',
  summary: 'Search of tokens and DAOs',
  description:
    'Live tokens and DAOs in one list, best match first. Exact matches come first, in this order: symbol, name, slug, contract address, CoinMarketCap id, former name or symbol, predecessor of another DAO, former contract address, treasury, governor, voting token. Then come names and contract addresses that begin with `q`, names that contain it, and the same for former names. Then come entities of a category, such as `lending`, or of a chain with these words in its name. Names with one typing error come last, or with two if `q` has 8 letters or more. A `q` of fewer than 4 letters, an address or a number has to match without typing errors. Equal matches are ordered by market cap, the largest first, then by name. Letter case is ignored.',
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
