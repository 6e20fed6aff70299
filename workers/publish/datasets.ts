import { DAO_VALUES, daoRecord, FROM_DAOS } from '../../shared/datasets/dao-records.ts'
import { DEX_TRADE_VALUES, dexTrade, dexTrades } from '../../shared/datasets/dex-trades.ts'
import { discordSeries } from '../../shared/datasets/discord.ts'
import { feesSeries } from '../../shared/datasets/fees.ts'
import { holdersSeries } from '../../shared/datasets/holders.ts'
import { marketCapSeries } from '../../shared/datasets/market-cap.ts'
import { pricePoint, selectPricePoints, toPriceRows, withSources } from '../../shared/datasets/price-points.ts'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { daoRatings, ratingRecord } from '../../shared/datasets/ratings.ts'
import { telegramSeries } from '../../shared/datasets/telegram.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { FROM_TOKENS, TOKEN_FACTS, tokenRecord } from '../../shared/datasets/token-records.ts'
import { treasuryValueSeries } from '../../shared/datasets/treasury-value.ts'
import { twitterSeries } from '../../shared/datasets/twitter.ts'
import { twitterSampleSeries, twitterSentimentSeries } from '../../shared/datasets/twitter-sentiment.ts'
import { DAY_MS, INTERVAL_SECONDS, INTERVALS, type Interval } from '../../shared/intervals.ts'
import {
  type Columns,
  DAY,
  from,
  MOMENT_FROM,
  MOMENT_TO,
  type Published,
  publishSeries,
  RANGE,
  SOURCE,
  toValues,
} from './define-published.ts'
import { governanceFiles } from './governance-files.ts'
import { indexFiles } from './index-files.ts'
import { treasuryFiles } from './treasury-files.ts'

/**
 * The observation of a bucket may be up to an interval after its start. ClickHouse loads the joined sources into memory, so
 * coarse points select theirs.
 */
function toPublishedPrices(interval: Interval): string {
  const points = selectPricePoints(interval, RANGE)
  const isNear = `observed_at >= ${MOMENT_FROM} AND observed_at < ${MOMENT_TO} + INTERVAL ${INTERVAL_SECONDS[interval]} SECOND`
  const isOwn =
    interval === tokenPrices.cadence ? 'true' : `(token, observed_at) IN (SELECT token, as_of FROM (${points}))`
  return `SELECT token AS key, bucket AS timestamp, as_of AS observed_at, * EXCEPT (token, bucket, as_of)
FROM (${withSources(points, `${isNear} AND ${isOwn}`)})`
}

const TOKENS: Columns<typeof TOKEN_FACTS> = [
  ['contract_address', 'contractAddress'],
  ['decimals', 'decimal'],
  ['chain_id', 'chain'],
  ['cmc_id', 'cmcId'],
  ['live', 'live'],
]
const DAOS: Columns<typeof DAO_VALUES> = [
  ['slug', 'slug'],
  ['category_ids', 'category'],
  ['chain_ids', 'chain'],
  ['mission', 'mission'],
  ['description', 'description'],
  ['website', 'website'],
  ['live', 'live'],
  ['verified', 'verified'],
]
const PRICES: Columns = [
  ['timestamp', 'timestamp'],
  ['observed_at', 'quote.USD.timestamp'],
  ['price', 'quote.USD.price'],
  ['volume_24h', 'quote.USD.volume_24h'],
  ['market_cap', 'quote.USD.market_cap'],
  ['total_supply', 'quote.USD.total_supply'],
  ['circulating_supply', 'quote.USD.circulating_supply'],
]
const DEX_TRADES: Columns<typeof DEX_TRADE_VALUES> = [
  ['traded_at', 'recordedAt'],
  ['trade_id', '_id'],
  ['transaction_hash', 'transactionHash'],
  ['type', 'type'],
  ['amount', 'amount'],
  ['amount_usd', 'amountUsd'],
  ['price', 'price'],
]
/** Every dataset of the publication, in the order in which it is written. */
export const published: readonly Published[] = [
  {
    name: 'tokens',
    description: 'All tokens of the registry, including ended ones.',
    about: 'token',
    rows: () => `SELECT t.key AS key, ${toValues(TOKEN_FACTS, TOKENS)} ${FROM_TOKENS}`,
    columns: from(tokenRecord, TOKENS),
  },
  {
    name: 'daos',
    description: 'All DAOs of the registry, including ended ones.',
    about: 'dao',
    rows: () => `SELECT d.key AS key, ${toValues(DAO_VALUES, DAOS)} ${FROM_DAOS}`,
    columns: from(daoRecord, DAOS),
  },
  {
    name: 'prices',
    description:
      'Price, volume, market cap and supplies of each token: the first observation of each bucket, for each interval. The same points as /data/tokens/historic-financial.',
    of: tokenPrices,
    about: 'token',
    intervals: INTERVALS,
    isYearly: (interval) => INTERVAL_SECONDS[interval] * 1000 >= DAY_MS,
    extent: toPriceRows,
    rows: toPublishedPrices,
    columns: [...from(pricePoint, PRICES), SOURCE],
  },
  publishSeries(
    holdersSeries,
    'Holders of each token by day: the first snapshot of the day. The same points as /data/tokens/holders/historic.',
  ),
  {
    name: 'dex-trades',
    description: 'Trades of tokens on decentralized exchanges. The same trades as /data/tokens/historic-dex-trades.',
    of: dexTrades,
    about: 'token',
    extent: () => dexTrades.series,
    rows: () =>
      `SELECT token AS key, ${toValues(DEX_TRADE_VALUES, DEX_TRADES)} FROM dex_trades FINAL WHERE ${RANGE('traded_at')}`,
    columns: from(dexTrade, DEX_TRADES),
    order: ['trade_id'],
  },
  ...treasuryFiles,
  publishSeries(
    feesSeries,
    'Fees and revenue of the protocols of each DAO by day. The same points as /data/daos/fees/historic.',
  ),
  {
    name: 'tvl',
    description: 'Value locked in the protocols of each DAO, as it was collected.',
    of: protocolTvl,
    about: 'dao',
    extent: () => protocolTvl.series,
    rows: () => `SELECT dao AS key, observed_at, tvl_usd FROM protocol_tvl FINAL WHERE ${RANGE('observed_at')}`,
    columns: [
      { name: 'observed_at', description: 'Time of the observation.' },
      ...from(tokenRecord, [['tvl_usd', 'financialData.tvl']]),
    ],
  },
  {
    name: 'ratings',
    description: 'Ratings of each DAO, as the file of ratings had them on each day of its import.',
    of: daoRatings,
    about: 'dao',
    extent: () => daoRatings.series,
    rows: () => `SELECT dao AS key, ${DAY} AS day, rated_at, overall_rating, fundamental_rating, governance, team,
  competitive_moat, value_proposition, token_economics
FROM dao_ratings FINAL WHERE ${RANGE('observed_at')}`,
    columns: [
      { name: 'day', description: 'The day of the import.' },
      ...from(ratingRecord, [
        ['rated_at', 'ratings.lastUpdated'],
        ['overall_rating', 'ratings.overallRating', 'points'],
        ['fundamental_rating', 'ratings.fundamentalRating', 'points'],
        ['governance', 'ratings.fundamentals.governance', 'points'],
        ['team', 'ratings.fundamentals.team', 'points'],
        ['competitive_moat', 'ratings.fundamentals.competitiveMoat', 'points'],
        ['value_proposition', 'ratings.fundamentals.valueProposition', 'points'],
        ['token_economics', 'ratings.fundamentals.tokenEconomics', 'points'],
      ]),
    ],
  },
  publishSeries(
    twitterSeries,
    'Accounts of DAOs on Twitter by day. The same points as /data/daos/socials/historic-twitter.',
  ),
  publishSeries(
    discordSeries,
    'Communities of DAOs on Discord by day. The same points as /data/daos/socials/historic-discord.',
  ),
  publishSeries(
    telegramSeries,
    'Communities of DAOs on Telegram by day. The same points as /data/daos/socials/historic-telegram.',
  ),
  publishSeries(
    twitterSentimentSeries,
    'The mood of posts about DAOs by day. The same points as /data/daos/socials/historic-twitter-sentiment, with their samples.',
    [twitterSampleSeries],
  ),
  ...governanceFiles,
  publishSeries(
    marketCapSeries,
    'The market cap of all tokens together by day. The same points as /data/aggregated/market-cap.',
  ),
  publishSeries(
    treasuryValueSeries,
    'The value of all treasuries together by day. The same points as /data/aggregated/treasury-value.',
  ),
  ...indexFiles,
]
