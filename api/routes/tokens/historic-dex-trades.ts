import { z } from 'zod'
import { dexTrades } from '../../../shared/datasets/dex-trades.ts'
import { END_OF_TIME, type TimeRange } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import {
  answerRecords,
  defineKeyset,
  findOwnersOfPage,
  IS_ANY,
  idValue,
  inTables,
  type Keyset,
  numberOrNull,
  type Owned,
  type Place,
  type Representation,
  type SortPart,
  timeValue,
  toIdSql,
  toOwned,
} from '../../formats/formats.ts'
import { page, time } from '../../parameters/kinds.ts'
import { type AppContext, defineRoute } from '../../route/define-route.ts'
import { tokenKind } from '../../route/entities.ts'
import { checkRange, order } from '../../series/series.ts'

/** A trade (docs/contract.md, section 4). */
const dexTrade = z
  .strictObject({
    recordedAt: timeValue.describe('Time of the block that holds the trade.'),
    transactionHash: z.string().describe('Hash of the transaction on the chain; one may hold several trades.'),
    _id: idValue.describe('Id of the trade.'),
    amount: z.number().describe('Tokens that were traded.'),
    token: idValue.describe('Id of the token.'),
    amountUsd: numberOrNull.describe('Value in US dollars; null if the price of the other token is unknown.'),
    type: z.enum(['BUY', 'SELL']).describe('Whether the trader bought or sold the token.'),
    price: numberOrNull.describe('Price of one token in US dollars; null if `amountUsd` is null.'),
  })
  .meta({ id: 'DexTrade', description: 'A trade of a token on a decentralized exchange.' })

const ID = toIdSql("'trade'", 'chain', 'transaction_hash', 'log_index')

const toKeysets = (...parts: readonly SortPart[]) => ({
  keyset: defineKeyset(...parts),
  keysetOfSeveral: defineKeyset(['token', 'UInt64'], ...parts),
})

/** The orders of trades: the keyset of a page, the order of rows, and the time at which a page ended. */
const ORDERS = {
  desc: {
    ...toKeysets(
      ['-toUnixTimestamp64Milli(traded_at)', 'Int64'],
      ['-toInt64(block_number)', 'Int64'],
      ['-toInt64(log_index)', 'Int64'],
      ['transaction_hash', 'String'],
    ),
    rows: 'traded_at DESC, block_number DESC, log_index DESC, transaction_hash',
    farthest: 'min(traded_at)',
    isWithin: 'traded_at >= farthest',
    everything: "fromUnixTimestamp64Milli({from: Int64}, 'UTC')",
    toTime: (place: Place) => -Number(place[0]),
  },
  asc: {
    ...toKeysets(
      ['toUnixTimestamp64Milli(traded_at)', 'Int64'],
      ['toInt64(block_number)', 'Int64'],
      ['toInt64(log_index)', 'Int64'],
      ['transaction_hash', 'String', 'descending'],
    ),
    rows: 'traded_at, block_number, log_index, transaction_hash DESC',
    farthest: 'max(traded_at)',
    isWithin: 'traded_at <= farthest',
    everything: "fromUnixTimestamp64Milli({to: Int64}, 'UTC')",
    toTime: (place: Place) => Number(place[0]),
  },
} as const
type Order = (typeof ORDERS)[keyof typeof ORDERS]

const IS_ONE = '= {token: UInt64}'

const toCondition = (
  keyset: Keyset,
  after: string,
  isToken: string,
) => `token ${isToken} AND traded_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND traded_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')${keyset.isAfter(after)}`

/** Rows read per requested trade: a trade that was stored several times has several rows until they are merged. */
const COPIES = 4

// FINAL, which removes replaced rows, reads all rows of a range. The first part therefore finds how far back the
// requested number of trades reaches: it reads along the sorting key, without FINAL, and stops after a few rows. FINAL
// then reads only from there on. If copies leave fewer trades than requested, FINAL reads the whole range. The answer
// is as old as the last collection if the range is open, else as its newest trade. With several tokens, all trades of
// the range are in the page except those of the last token, so only its trades are read in two parts.
const toSql = (order: Order, after: string, { isOne, id, toRecord }: Owned) => {
  const keyset = isOne ? order.keyset : order.keysetOfSeveral
  const [prefix, isToken] = isOne ? ['', IS_ONE] : ['token, ', IS_ANY]
  return `
WITH (
  SELECT tuple(count() < {rows: UInt32} OR uniqExact(traded_at, transaction_hash, log_index) >= {limit: UInt32},
    ${order.farthest})
  FROM
  (
    SELECT traded_at, transaction_hash, log_index FROM dex_trades WHERE ${toCondition(keyset, after, IS_ONE)}
    ORDER BY ${order.rows.split(',')[0]} LIMIT {rows: UInt32}
  )
) AS nearest,
if(nearest.1, nearest.2, ${order.everything}) AS farthest,
(SELECT max(as_of) FROM dex_data FINAL WHERE token IN {owners: Array(UInt64)}) AS read_up_to
SELECT if({open: Bool}, greatest(ifNull(read_up_to, traded_at), traded_at), traded_at) AS as_of, ${keyset.place} AS page_key,
  ${toRecord(`traded_at, transaction_hash, ${ID}, amount, ${id}, amount_usd, side, price`)} AS record
FROM dex_trades FINAL
WHERE ${toCondition(keyset, after, isToken)} AND ${isOne ? order.isWithin : `(token != {token: UInt64} OR ${order.isWithin})`}
ORDER BY ${prefix}${order.rows}
LIMIT {limit: UInt32}`
}

const ownerCount = z.object({ owner: z.number(), rows: z.int() })

/** SQL for the number of trades by token, at most about the first `rows` stored rows of each. */
const toCountSql = ({ keysetOfSeveral, rows }: Order, after: string) => `
SELECT token AS owner, uniqExact(traded_at, transaction_hash, log_index) AS rows
FROM
(
  SELECT token, traded_at, transaction_hash, log_index FROM dex_trades WHERE ${toCondition(keysetOfSeveral, after, IS_ANY)}
  ORDER BY token, ${rows.split(',')[0]} LIMIT {rows: UInt32} BY token
)
GROUP BY token`

export const historicDexTradesRoute = defineRoute({
  operation: 'getTokenDexTrades',
  path: '/data/tokens/historic-dex-trades',
  tag: 'Tokens',
  summary: 'Trades of one token on decentralized exchanges',
  description:
    'The most recent trades in the range, newest first, or with `order=asc` the oldest ones, oldest first. `type` is as seen by the trader; `amountUsd` and `price` are null if the price of the other token is unknown. ' +
    inTables(tokenKind.noun),
  one: tokenKind,
  severalInTables: true,
  query: {
    start: time('First moment, inclusive; default: the first trade.', '2024-01-01').optional(),
    end: time('Last moment, exclusive; default: now.', '2024-01-08T00:00:00Z').optional(),
    order: order('desc'),
    ...page('trades', { default: 100, max: 10_000 }),
  },
  record: dexTrade,
  datasets: [dexTrades],
  handle: async (call) => {
    const { query, found: token, now, representation } = call
    const { after } = representation
    checkRange(query)
    const direction = query.order ?? 'desc'
    const way = ORDERS[direction]
    const isOpen = query.end === undefined || query.end > now()
    const requested = { from: query.start ?? 0, to: query.end ?? END_OF_TIME }
    // An answer that ends before the newest trade does not become stale.
    const open = isOpen && direction === 'desc' && after === ''
    const owned = toOwned(call, dexTrade, 'token')
    const params = { ...owned.params, open, rows: COPIES * (query.limit + 1) }
    const selected = owned.isOne
      ? { token: token.key, ...toRest(way, requested, after) }
      : { ...requested, ...(await selectTokens(call, way, { ...params, ...requested })) }
    const answer = await answerRecords(
      { ...call, representation: owned.representation },
      {
        name: 'historic-dex-trades',
        sql: toSql(way, after, owned),
        params: { ...params, ...selected },
        page: query.limit,
      },
    )
    return open ? answer : { ...answer, staleAt: null }
  },
})

/** A later page begins at the last trade of the previous one. */
function toRest(order: Order, range: TimeRange, after: string): TimeRange {
  if (after === '') return range
  const last = order.toTime(order.keyset.read(after))
  return order === ORDERS.desc ? { ...range, to: last + 1 } : { ...range, from: last }
}

/** The tokens with the trades of a page, and the last of them. */
async function selectTokens(
  call: Pick<AppContext, 'db'> & {
    readonly entities: readonly Token[]
    readonly query: { readonly limit: number }
    readonly representation: Representation
  },
  order: Order,
  params: Readonly<Record<string, unknown>>,
): Promise<{ readonly entities: readonly number[]; readonly token: number }> {
  const { after } = call.representation
  const [first] = after === '' ? [0] : order.keysetOfSeveral.read(after)
  const keys = call.entities.map(({ key }) => key).filter((key) => key >= Number(first))
  const { owners } = await findOwnersOfPage(keys, { limit: call.query.limit, size: 1 }, (entities) =>
    call.db.rows({
      name: 'historic-dex-trades-owners',
      sql: toCountSql(order, after),
      params: { ...params, entities, ...(after === '' ? {} : { after }) },
      settings: { max_threads: 1 },
      schema: ownerCount,
    }),
  )
  return { entities: owners, token: owners.at(-1) ?? 0 }
}
