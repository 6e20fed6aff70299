import { marketCap } from '../../shared/datasets/market-cap.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { defineJob } from '../job/define-job.ts'
import { isMember, storedSeries, sumDays, toSummed, withinDays } from '../providers/stored/series.ts'

/**
 * The first known market cap of the day of each token that counts on it. Mostly that is the day's first observation, which the daily
 * roll-up holds. Only where that one has no market cap are the day's other observations read. Sources send 0 when they
 * do not know the circulating supply, so 0 counts as unknown.
 */
const MARKET_CAPS = `
  WITH
    firsts AS
    (
      SELECT token, bucket_at, ifNull(market_cap, 0) AS first_cap
      FROM token_price_rollups FINAL
      WHERE interval_seconds = ${INTERVAL_SECONDS['1d']} AND ${withinDays('bucket_at')}
        AND ${isMember('token', 'bucket_at', 'tokens')}
    ),
    unknown AS (SELECT token, bucket_at FROM firsts WHERE first_cap <= 0)
  SELECT bucket_at AS day, first_cap AS usd FROM firsts WHERE first_cap > 0
  UNION ALL
  SELECT toStartOfDay(observed_at, 'UTC') AS day, argMin(assumeNotNull(market_cap), observed_at) AS usd
  FROM token_prices FINAL
  WHERE token IN (SELECT token FROM unknown) AND ${withinDays('observed_at')}
    AND (token, toStartOfDay(observed_at, 'UTC')) IN unknown AND market_cap > 0
  GROUP BY token, day`

/** The market capitalization by day of all tokens that were live then, from the stored prices (contract section 4). */
export default defineJob({
  name: 'market-cap',
  cadence: '1d',
  dataset: marketCap,
  providers: [storedSeries],
  computedFrom: [tokenPrices],
  entities: (registry) => toSummed(marketCap.entities(registry), registry.tokens),
  history: { intervals: ['1d'], chunkEntities: 1, chunkPoints: 366 },
  run: (run) => sumDays(run, { name: 'sum-market-caps', table: 'market_caps', members: MARKET_CAPS }),
})
