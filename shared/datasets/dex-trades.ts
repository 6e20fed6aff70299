import { z } from 'zod'
import { defineDataset } from './define-dataset.ts'

const address = z.string().regex(/^0x[0-9a-f]{40}$/, 'must be a lower-case address')

/**
 * One trade of a token on a decentralized exchange, seen from the trader: BUY means the trader received the token.
 * `amount` is in whole tokens; money is in USD, null where the other side's price at that time is not known. The bound
 * on `amount_usd` keeps sums of any number of trades within the decimals they are added up in.
 */
export const dexTradeRow = z.strictObject({
  token: z.number().int().nonnegative(),
  traded_at: z.iso.datetime(),
  chain: z.string().min(1),
  block_number: z.number().int().nonnegative(),
  transaction_hash: z.string().regex(/^0x[0-9a-f]{64}$/, 'must be a lower-case transaction hash'),
  log_index: z.number().int().nonnegative().max(0xffff_ffff),
  pool: address,
  exchange: z.string().min(1),
  taker: address,
  side: z.enum(['BUY', 'SELL']),
  amount: z.number().positive(),
  amount_usd: z.number().nonnegative().max(1e15).nullable(),
  price: z.number().positive().nullable(),
})

export type DexTradeRow = z.infer<typeof dexTradeRow>

/**
 * A token's aggregates over all its trades. They are computed anew for tokens with inserted trades, and for tokens that
 * were read without new trades as long as a window still holds old ones: the windows of a token that nobody trades any
 * more have to run empty. The windows end at `as_of`, up to which trades were collected. That is the slot of the job
 * for a token that it read, or later where a newer trade or a newer computation is stored: neither a back-fill of old
 * history nor a failing provider moves the windows back. USD is added up as decimals, because a sum of floats depends
 * on the order of its parts.
 */
const DEX_DATA = `
INSERT INTO dex_data (token, total_trades, makers, takers, dexs, inflow_24h, inflow_7d, inflow_30d, inflow_max,
  outflow_24h, outflow_7d, outflow_30d, outflow_max, price, last_trade_at, as_of)
WITH
  tokens_due AS
  (
    SELECT arrayJoin({entities: Array(UInt64)}) AS token
    UNION DISTINCT
    SELECT token FROM dex_data FINAL
    WHERE as_of < {slot: DateTime64(3, 'UTC')} AND inflow_30d + outflow_30d > 0 AND has({read: Array(UInt64)}, token)
  ),
  ends AS
  (
    SELECT token, if(has({read: Array(UInt64)}, token), greatest(max(at), {slot: DateTime64(3, 'UTC')}), max(at)) AS as_of
    FROM
    (
      SELECT token, max(traded_at) AS at FROM dex_trades WHERE token IN tokens_due GROUP BY token
      UNION ALL
      SELECT token, as_of AS at FROM dex_data WHERE token IN tokens_due
    )
    GROUP BY token
  )
SELECT token, count(), uniqExact(pool), uniqExact(taker), uniqExact(exchange),
  toFloat64(sumIf(usd, is_buy AND age < 86400000)), toFloat64(sumIf(usd, is_buy AND age < 604800000)),
  toFloat64(sumIf(usd, is_buy AND age < 2592000000)), toFloat64(sumIf(usd, is_buy)),
  toFloat64(sumIf(usd, NOT is_buy AND age < 86400000)), toFloat64(sumIf(usd, NOT is_buy AND age < 604800000)),
  toFloat64(sumIf(usd, NOT is_buy AND age < 2592000000)), toFloat64(sumIf(usd, NOT is_buy)),
  argMax(tuple(trade_price), (trade_at, block_number, log_index, transaction_hash)).1, max(trade_at), any(as_of)
FROM
(
  SELECT token, pool, taker, exchange, block_number, log_index, transaction_hash, price AS trade_price,
    traded_at AS trade_at, side = 'BUY' AS is_buy, toDecimal128(ifNull(amount_usd, 0), 12) AS usd,
    ends.as_of AS as_of, dateDiff('millisecond', traded_at, ends.as_of) AS age
  FROM (SELECT * FROM dex_trades FINAL WHERE token IN tokens_due) AS trades
  INNER JOIN ends ON ends.token = trades.token
)
GROUP BY token`

/** Trades on decentralized exchanges, and the aggregates that `/data/tokens/dex-data` serves. */
export const dexTrades = defineDataset({
  name: 'dex-trades',
  cadence: '1h',
  table: 'dex_trades',
  row: dexTradeRow,
  entity: 'token',
  derive: [{ name: 'dex-data', sql: DEX_DATA, isWhole: true }],
  series: { table: 'dex_trades', entity: 'token', time: 'traded_at' },
})
