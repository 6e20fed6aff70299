import { INTERVAL_SECONDS } from '../intervals.ts'
import { ENTIRE_REGISTRY } from '../registry/entities.ts'
import { dailySumRow, defineSums } from './daily-sum.ts'
import { type DayMembers, isMember, withinDays } from './day-members.ts'
import { defineDataset } from './define-dataset.ts'
import { tokenPrices } from './token-prices.ts'

/** The total market capitalization of the tokens that were live on each day. */
export const marketCap = defineDataset({
  name: 'market-cap',
  title: 'Total market cap',
  cadence: '1d',
  table: 'market_caps',
  row: dailySumRow,
  entities: () => [ENTIRE_REGISTRY],
  computedFrom: [tokenPrices],
  hasHistory: true,
  series: { table: 'market_caps', time: 'recorded_at' },
})

/**
 * The first known market cap of the day of each token that counts on it. Mostly that is the day's first observation,
 * which the daily roll-up contains. The day's other observations are read only if the first one has no market cap.
 * Sources send 0 for an unknown circulating supply, so 0 counts as unknown.
 */
export const toMarketCaps: DayMembers = (backMs) => `
  WITH
    firsts AS
    (
      SELECT token, bucket_at, ifNull(market_cap, 0) AS first_cap
      FROM token_price_rollups FINAL
      WHERE interval_seconds = ${INTERVAL_SECONDS['1d']} AND ${withinDays('bucket_at', backMs)}
        AND ${isMember('token', 'bucket_at', 'tokens')}
    ),
    unknown AS (SELECT token, bucket_at FROM firsts WHERE first_cap <= 0)
  SELECT bucket_at AS day, token AS member, first_cap AS usd FROM firsts WHERE first_cap > 0
  UNION ALL
  SELECT toStartOfDay(observed_at, 'UTC') AS day, token AS member, argMin(assumeNotNull(market_cap), observed_at) AS usd
  FROM token_prices FINAL
  WHERE token IN (SELECT token FROM unknown) AND ${withinDays('observed_at', backMs)}
    AND (token, toStartOfDay(observed_at, 'UTC')) IN unknown AND market_cap > 0
  GROUP BY token, day`

export const marketCapSeries = defineSums(marketCap, {
  sum: { name: 'marketCapUsd', series: 'MarketCapPoint', of: 'Sum of the market caps of all tokens together' },
  count: { name: 'tokensIncluded', noun: 'Tokens' },
  members: toMarketCaps,
  all: ({ tokens }) => tokens,
})
