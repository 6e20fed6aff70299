import { z } from 'zod'
import { toIdSql } from '../ids.ts'
import { idValue, numberIn, timeValue, usd } from '../record-values.ts'
import { MOST_MARKET_USD, MOST_PRICE_USD, MOST_TOKENS } from './bounds.ts'
import { defineDataset } from './define-dataset.ts'

const address = z.string().regex(/^0x[0-9a-f]{40}$/, 'must be a lower-case address')

/**
 * A trade of a token on a decentralized exchange from the trader's view: BUY means that the trader received the token.
 * `amount` is in whole tokens. Money is in USD, null if the price of the other side is unknown for that time. The bound
 * on `amount_usd` prevents an overflow of the decimal type in sums.
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
  amount: z.number().positive().max(MOST_TOKENS),
  amount_usd: z.number().nonnegative().max(MOST_MARKET_USD).nullable(),
  price: z.number().positive().max(MOST_PRICE_USD).nullable(),
})

export type DexTradeRow = z.infer<typeof dexTradeRow>

/**
 * The sums of each day that the inserted rows touch, and of the last days of each token that the run read. The latter
 * finds trades that a killed run inserted and did not sum: the next run may begin after them, because the first reading
 * of a pool begins some hours before the run's own slot. USD is summed as decimals, because sums of floats depend on the
 * order of parts, which changes with merges.
 */
const DEX_TRADE_DAYS = `
INSERT INTO dex_trade_days (token, day, trades, bought_usd, sold_usd, last_trade_at, last_price, computed_at)
SELECT token, day, count(), sumIf(usd, is_buy), sumIf(usd, NOT is_buy), max(trade_at),
  argMax(tuple(trade_price), (trade_at, block_number, log_index, transaction_hash)).1, now64(3, 'UTC')
FROM
(
  SELECT token, toDate(traded_at) AS day, traded_at AS trade_at, block_number, log_index, transaction_hash,
    price AS trade_price, side = 'BUY' AS is_buy, toDecimal128(ifNull(amount_usd, 0), 12) AS usd
  FROM dex_trades FINAL
  WHERE (token IN {entities: Array(UInt64)} AND traded_at >= toStartOfDay({from: DateTime64(3, 'UTC')})
      AND traded_at < toStartOfDay({to: DateTime64(3, 'UTC')}) + INTERVAL 1 DAY)
    OR (token IN {read: Array(UInt64)} AND traded_at >= toStartOfDay({slot: DateTime64(3, 'UTC')}) - INTERVAL 3 DAY
      AND traded_at < toStartOfDay({slot: DateTime64(3, 'UTC')}) + INTERVAL 1 DAY)
)
GROUP BY token, day`

/** The windows of reported flows, in days. */
const WINDOWS = [1, 7, 30] as const

const toStart = (days: number) => `as_of - INTERVAL ${days} DAY`
/** The first day of a window is only partly inside it, so its trades are read one by one. */
const FIRST_DAYS = WINDOWS.map((days) => `toDate(${toStart(days)})`)
const inWindows = (isIn: (days: number) => string) => WINDOWS.map((days) => `${isIn(days)} AS in_${days}d`).join(', ')
const flows = (side: string) => [
  ...WINDOWS.map((days) => `toFloat64(sumIf(${side}, in_${days}d))`),
  `toFloat64(sumIf(${side}, is_day))`,
]

/**
 * SQL for the tokens to compute: the inserted ones, and those that were read, have an older computation and still have
 * trades in a window. Without new trades, a window must become empty.
 */
const TOKENS_DUE = `
    SELECT arrayJoin({entities: Array(UInt64)}) AS token
    UNION DISTINCT
    SELECT token FROM dex_data FINAL
    WHERE as_of < {slot: DateTime64(3, 'UTC')} AND inflow_30d + outflow_30d > 0 AND has({read: Array(UInt64)}, token)`

/**
 * SQL for the tokens of a run for which two runs computed at the same time: one had read more trades, and its row is
 * kept; the other had read up to a later time. The later of the two finds both rows.
 */
const TOKENS_OF_TWO_RUNS = `
    SELECT token FROM dex_data
    WHERE has({entities: Array(UInt64)}, token) OR has({read: Array(UInt64)}, token)
    GROUP BY token HAVING argMax(as_of, version) < max(as_of)`

/**
 * A token's aggregates over all its trades. Windows end at `as_of`, the time up to which trades were collected. For a
 * token that the run read, it is the run's slot or the time of a newer trade or computation. So neither a back-fill of
 * old history nor a failing provider moves the windows. Complete days come from `dex_trade_days`; of each window's first
 * day the single trades are read.
 */
const toDexData = (due: string) => `
INSERT INTO dex_data (token, total_trades, inflow_24h, inflow_7d, inflow_30d, inflow_max,
  outflow_24h, outflow_7d, outflow_30d, outflow_max, price, last_trade_at, as_of, makers, takers, dexs)
WITH
  tokens_due AS
  (${due}
  ),
  ends AS
  (
    SELECT token, if(has({read: Array(UInt64)}, token), greatest(max(at), {slot: DateTime64(3, 'UTC')}), max(at)) AS as_of
    FROM
    (
      SELECT token, max(last_trade_at) AS at FROM dex_trade_days WHERE token IN tokens_due GROUP BY token
      UNION ALL
      SELECT token, as_of AS at FROM dex_data WHERE token IN tokens_due
    )
    GROUP BY token
  ),
  -- An array, because on a cluster a subquery with a subquery cannot be sent to other nodes. The statement unpacks it into
  -- a set, because only a set selects ranges by the sorting key.
  (SELECT groupArray(tuple(token, first_day)) FROM ends ARRAY JOIN [${FIRST_DAYS.join(', ')}] AS first_day) AS first_days
SELECT sums.*, parties.pools, parties.takers, parties.exchanges
FROM
(
  SELECT token, sum(trade_count), ${flows('bought').join(', ')}, ${flows('sold').join(', ')},
    argMaxIf(tuple(last_price), last_at, is_day).1, maxIf(last_at, is_day), any(as_of)
  FROM
  (
    SELECT token, true AS is_day, trades AS trade_count, bought_usd AS bought, sold_usd AS sold, last_price,
      last_trade_at AS last_at, ends.as_of AS as_of, ${inWindows((days) => `day > toDate(${toStart(days)})`)}
    FROM (SELECT * FROM dex_trade_days FINAL WHERE token IN tokens_due) AS days
    INNER JOIN ends ON ends.token = days.token
    UNION ALL
    SELECT token, false, 0, if(side = 'BUY', usd, 0), if(side = 'BUY', 0, usd), NULL, traded_at, ends.as_of AS as_of,
      ${inWindows((days) => `(toDate(traded_at) = toDate(${toStart(days)}) AND traded_at > ${toStart(days)})`)}
    FROM
    (
      SELECT token, traded_at, side, toDecimal128(ifNull(amount_usd, 0), 12) AS usd FROM dex_trades FINAL
      WHERE (token, toDate(traded_at)) IN (SELECT pair.1, pair.2 FROM (SELECT arrayJoin(first_days) AS pair))
    ) AS trades
    INNER JOIN ends ON ends.token = trades.token
  )
  GROUP BY token
) AS sums
INNER JOIN
(
  SELECT token, countIf(kind = 'pool') AS pools, countIf(kind = 'taker') AS takers, countIf(kind = 'exchange') AS exchanges
  FROM dex_trade_parties FINAL
  WHERE token IN tokens_due
  GROUP BY token
) AS parties ON parties.token = sums.token`

/** Trades on decentralized exchanges, and the aggregates that `/data/tokens/dex-data` serves. */
export const dexTrades = defineDataset({
  name: 'dex-trades',
  title: 'DEX trades',
  cadence: '1h',
  table: 'dex_trades',
  row: dexTradeRow,
  entities: (registry) => registry.tokens.filter((token) => token.live),
  entity: 'token',
  isCollected: true,
  derive: [
    { name: 'dex-trade-days', sql: DEX_TRADE_DAYS, isFull: true },
    { name: 'dex-data', sql: toDexData(TOKENS_DUE), isFull: true },
    { name: 'dex-data-of-two-runs', sql: toDexData(TOKENS_OF_TWO_RUNS), isFull: false },
  ],
  resumes: true,
  hasHistory: true,
  series: { table: 'dex_trades', entity: 'token', time: 'traded_at' },
})

/** A trade (docs/contract.md, section 4). */
export const dexTrade = z
  .strictObject({
    recordedAt: timeValue.describe('Time of the block that holds the trade.'),
    transactionHash: z.string().describe('Hash of the transaction on the chain; one may hold several trades.'),
    _id: idValue.describe('Id of the trade.'),
    amount: numberIn('tokens').describe('Tokens that were traded.'),
    token: idValue.describe('Id of the token.'),
    amountUsd: usd.nullable().describe('Value in US dollars; null if the price of the other token is unknown.'),
    type: z.enum(['BUY', 'SELL']).describe('Whether the trader bought or sold the token.'),
    price: usd.nullable().describe('Price of one token in US dollars; null if `amountUsd` is null.'),
  })
  .meta({ id: 'DexTrade', description: 'A trade of a token on a decentralized exchange.' })

/** SQL of the members of a trade, from its row; `token` is the key of its token. */
export const DEX_TRADE_VALUES = {
  recordedAt: 'traded_at',
  transactionHash: 'transaction_hash',
  _id: toIdSql("'trade'", 'chain', 'transaction_hash', 'log_index'),
  amount: 'amount',
  token: 'token',
  amountUsd: 'amount_usd',
  type: 'toString(side)',
  price: 'price',
} as const satisfies Readonly<Record<keyof typeof dexTrade.shape, string>>
