import { z } from 'zod'
import { dexTrades } from '../../../shared/datasets/dex-trades.ts'
import { END_OF_TIME } from '../../../shared/intervals.ts'
import { defineKeyset, type Place, toIdSql } from '../../answers/keyset.ts'
import { page, time } from '../../parameters/kinds.ts'
import { answerRecords, toObject } from '../../records/answer.ts'
import { idValue, numberOrNull, timeValue } from '../../records/table.ts'
import { defineRoute } from '../../route/define-route.ts'
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
    price: numberOrNull.describe('Price of one token in US dollars; null as `amountUsd` is.'),
  })
  .meta({ id: 'DexTrade', description: 'A trade of a token on a decentralized exchange.' })

const ID = toIdSql("'trade'", 'chain', 'transaction_hash', 'log_index')

const TRADE = toObject(dexTrade, `traded_at, transaction_hash, ${ID}, amount, {id: String}, amount_usd, side, price`)

/** The orders of trades: the keyset of a page, the order of rows, and the time at which a page ended. */
const ORDERS = {
  desc: {
    keyset: defineKeyset(
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
    keyset: defineKeyset(
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

const toCondition = (
  { keyset }: Order,
  after: string,
) => `token = {token: UInt64} AND traded_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND traded_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')${keyset.isAfter(after)}`

/** Rows read per requested trade: a trade that was stored several times has several rows until they are merged. */
const COPIES = 4

// FINAL, which removes replaced rows, reads all rows of a range. The first part therefore finds how far back the
// requested number of trades reaches: it reads along the sorting key, without FINAL, and stops after a few rows. FINAL
// then reads only from there on. If copies leave fewer trades than requested, FINAL reads the whole range. The answer
// is as old as the last collection if the range is open, else as its newest trade.
const toSql = (order: Order, after: string) => `
WITH (
  SELECT tuple(count() < {rows: UInt32} OR uniqExact(traded_at, transaction_hash, log_index) >= {limit: UInt32},
    ${order.farthest})
  FROM
  (
    SELECT traded_at, transaction_hash, log_index FROM dex_trades WHERE ${toCondition(order, after)}
    ORDER BY ${order.rows.split(',')[0]} LIMIT {rows: UInt32}
  )
) AS nearest,
if(nearest.1, nearest.2, ${order.everything}) AS farthest,
(SELECT max(as_of) FROM dex_data FINAL WHERE token = {token: UInt64}) AS read_up_to
SELECT if({open: Bool}, greatest(ifNull(read_up_to, traded_at), traded_at), traded_at) AS as_of, ${order.keyset.place} AS page_key,
  ${TRADE} AS record
FROM dex_trades FINAL
WHERE ${toCondition(order, after)} AND ${order.isWithin}
ORDER BY ${order.rows}
LIMIT {limit: UInt32}`

export const historicDexTradesRoute = defineRoute({
  operation: 'getTokenDexTrades',
  path: '/data/tokens/historic-dex-trades',
  tag: 'Tokens',
  summary: 'Trades of one token on decentralized exchanges',
  description:
    'The most recent trades in the range, newest first, or with `order=asc` the oldest ones, oldest first. `type` is as seen by the trader; `amountUsd` and `price` are null if the price of the other token is unknown.',
  one: tokenKind,
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
    // A later page begins at the last trade of the previous one.
    const last = after === '' ? undefined : way.toTime(way.keyset.read(after))
    const isOpen = query.end === undefined || query.end > now()
    const requested = { from: query.start ?? 0, to: query.end ?? END_OF_TIME }
    const range =
      last === undefined
        ? requested
        : direction === 'desc'
          ? { ...requested, to: last + 1 }
          : { ...requested, from: last }
    // An answer that ends before the newest trade does not become stale.
    const open = isOpen && direction === 'desc' && last === undefined
    const params = { token: token.key, id: token.id, ...range, open, rows: COPIES * (query.limit + 1) }
    const answer = await answerRecords(call, {
      name: 'historic-dex-trades',
      sql: toSql(way, after),
      params,
      page: query.limit,
    })
    return open ? answer : { ...answer, staleAt: null }
  },
})
