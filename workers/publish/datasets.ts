import { toIdSql } from '../../api/formats/formats.ts'
import { COUNTED, COUNTS, SOURCES, toScope, toSource } from '../../api/governance/counted.ts'
import { toTier, VALUES } from '../../api/prices/points.ts'
import type { Route } from '../../api/route/define-route.ts'
import { governanceProposalsRoute } from '../../api/routes/daos/governance/proposals.ts'
import { governanceVotesRoute, VOTE_ID } from '../../api/routes/daos/governance/votes.ts'
import { ratingsRoute } from '../../api/routes/daos/ratings.ts'
import {
  holdingsHistoricRoute,
  toChainParams,
  toDailyHoldings,
} from '../../api/routes/daos/treasury/holdings/historic.ts'
import { daosRoute } from '../../api/routes/daos.ts'
import { indexHistoricRoute } from '../../api/routes/index/historic.ts'
import { indexTokenRoute } from '../../api/routes/index/token-data.ts'
import { historicDexTradesRoute } from '../../api/routes/tokens/historic-dex-trades.ts'
import { historicFinancialRoute } from '../../api/routes/tokens/historic-financial.ts'
import { tokensRoute } from '../../api/routes/tokens.ts'
import { dexTrades } from '../../shared/datasets/dex-trades.ts'
import { discordSeries } from '../../shared/datasets/discord.ts'
import { feesSeries } from '../../shared/datasets/fees.ts'
import { governance } from '../../shared/datasets/governance.ts'
import { holdersSeries } from '../../shared/datasets/holders.ts'
import { indexPoints } from '../../shared/datasets/index-points.ts'
import { indexToken } from '../../shared/datasets/index-token.ts'
import { marketCapSeries } from '../../shared/datasets/market-cap.ts'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { daoRatings } from '../../shared/datasets/ratings.ts'
import { telegramSeries } from '../../shared/datasets/telegram.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { daoTreasury, treasurySeries } from '../../shared/datasets/treasury.ts'
import { treasuryValueSeries } from '../../shared/datasets/treasury-value.ts'
import { twitterSeries } from '../../shared/datasets/twitter.ts'
import { twitterSampleSeries, twitterSentimentSeries } from '../../shared/datasets/twitter-sentiment.ts'
import { INTERVALS, type Interval } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { asTime, DAY, documented, from, type Published, publishSeries, RANGE } from './define-published.ts'

const FIVE_MINUTES = asTime("toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC')")

function toPriceRows(interval: Interval): string {
  const { table, time, isOfTier } = toTier(interval)
  const bucket = interval === '5m' ? FIVE_MINUTES : asTime(time)
  const first = interval === '5m' ? '\nORDER BY token, observed_at LIMIT 1 BY token, timestamp' : ''
  return `SELECT token AS key, ${bucket} AS timestamp, observed_at, ${VALUES}
FROM ${table} FINAL WHERE ${isOfTier} AND ${RANGE(time)}${first}`
}

const allGovernance = ({ daos }: Registry) => ({ ...toScope(daos, SOURCES) })
const proposals = { table: 'dao_proposals', time: 'created_at' }
const votes = { table: 'dao_cast_votes', time: 'created_at' }
const TRADE_ID = toIdSql("'trade'", 'chain', 'transaction_hash', 'log_index')

/** A route with the record that its parameter widens. */
function ofSource(route: Route): Route {
  return { ...route, record: route.recordWith?.record }
}

/** Every dataset of the publication, in the order in which it is written. */
export const published: readonly Published[] = [
  {
    name: 'tokens',
    description: 'All tokens of the registry, including ended ones.',
    about: 'token',
    rows: () => 'SELECT key, contract_address, decimals, chain_id, cmc_id, live FROM tokens FINAL',
    columns: from(tokensRoute, [
      ['contract_address', 'contractAddress'],
      ['decimals', 'decimal'],
      ['chain_id', 'chain'],
      ['cmc_id', 'cmcId'],
      ['live', 'live'],
    ]),
  },
  {
    name: 'daos',
    description: 'All DAOs of the registry, including ended ones.',
    about: 'dao',
    rows: () =>
      'SELECT key, slug, category_ids, chain_ids, mission, description, website, live, verified FROM daos FINAL',
    columns: from(daosRoute, [
      ['slug', 'slug'],
      ['category_ids', 'category'],
      ['chain_ids', 'chain'],
      ['mission', 'mission'],
      ['description', 'description'],
      ['website', 'website'],
      ['live', 'live'],
      ['verified', 'verified'],
    ]),
  },
  {
    name: 'prices',
    description:
      'Price, volume, market cap and supplies of each token: the first observation of each bucket, for each interval. The same points as /data/tokens/historic-financial.',
    of: tokenPrices,
    about: 'token',
    intervals: INTERVALS,
    extent: toTier,
    rows: toPriceRows,
    columns: from(historicFinancialRoute, [
      ['timestamp', 'timestamp'],
      ['observed_at', 'quote.USD.timestamp'],
      ['price', 'quote.USD.price', 'USD'],
      ['volume_24h', 'quote.USD.volume_24h', 'USD'],
      ['market_cap', 'quote.USD.market_cap', 'USD'],
      ['total_supply', 'quote.USD.total_supply', 'tokens'],
      ['circulating_supply', 'quote.USD.circulating_supply', 'tokens'],
    ]),
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
    rows: () => `SELECT token AS key, traded_at, ${TRADE_ID} AS trade_id, transaction_hash, toString(side) AS type, amount, amount_usd, price
FROM dex_trades FINAL WHERE ${RANGE('traded_at')}`,
    columns: from(historicDexTradesRoute, [
      ['traded_at', 'recordedAt'],
      ['trade_id', '_id'],
      ['transaction_hash', 'transactionHash'],
      ['type', 'type'],
      ['amount', 'amount', 'tokens'],
      ['amount_usd', 'amountUsd', 'USD'],
      ['price', 'price', 'USD'],
    ]),
    order: ['trade_id'],
  },
  publishSeries(treasurySeries, 'The value of each treasury by day. The same points as /data/daos/treasury/historic.'),
  {
    name: 'treasury-holdings',
    description:
      'The assets of each treasury by day and chain, all addresses added up. The same records as /data/daos/treasury/holdings/historic.',
    of: daoTreasury,
    about: 'dao',
    extent: () => daoTreasury.series,
    params: toChainParams,
    rows: () => `SELECT dao AS key, ${DAY} AS day, symbol, token AS token_id, contract AS contract_address, chain AS chain_id, kind, quantity,
  value_usd / quantity AS price_usd, value_usd
FROM (${toDailyHoldings(`SELECT dao, observed_at, holdings, tokens FROM dao_treasuries FINAL WHERE ${RANGE('observed_at')}`)})`,
    columns: from(holdingsHistoricRoute, [
      ['day', 'recordedAt'],
      ['symbol', 'symbol'],
      ['token_id', 'token'],
      ['contract_address', 'contractAddress'],
      ['chain_id', 'chain'],
      ['kind', 'kind'],
      ['quantity', 'quantity', 'tokens'],
      ['price_usd', 'priceUsd', 'USD'],
      ['value_usd', 'valueUsd', 'USD'],
    ]),
    order: ['symbol', 'chain_id', 'contract_address', 'quantity'],
  },
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
      ...from(tokensRoute, [['tvl_usd', 'financialData.tvl', 'USD']]),
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
      ...from(ratingsRoute, [
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
  {
    name: 'proposals',
    description:
      'Proposals of each DAO on Snapshot and on its governors, by the month in which they were made. The same proposals as /data/daos/governance/proposals with source=all.',
    of: governance,
    about: 'dao',
    extent: () => proposals,
    params: allGovernance,
    rows: () => `WITH ${COUNTED}
SELECT p.dao AS key, ${asTime('p.created_at')} AS created_at, p.id AS proposal_id, ${toSource('p.space')} AS source, d.title AS title,
  p.author AS author, d.choices AS choices, d.scores AS scores, d.scores_total AS scores_total, d.votes AS votes, d.quorum AS quorum,
  ${asTime('d.starts_at')} AS starts_at, ${asTime('d.ends_at')} AS ends_at, nullIf(toString(d.outcome), '') AS outcome
FROM (SELECT dao, space, proposal, id, author, created_at FROM dao_proposals FINAL WHERE ${COUNTS} AND ${RANGE('created_at')}) AS p
LEFT JOIN (SELECT * FROM dao_proposal_details FINAL WHERE dao IN {daos: Array(UInt64)}) AS d
  ON d.dao = p.dao AND d.space = p.space AND d.proposal = p.proposal`,
    columns: from(governanceProposalsRoute, [
      ['created_at', 'createdAt'],
      ['proposal_id', '_id'],
      ['title', 'title'],
      ['author', 'author'],
      ['choices', 'choices'],
      ['scores', 'scores', 'voting power'],
      ['scores_total', 'scoresTotal', 'voting power'],
      ['votes', 'votes'],
      ['quorum', 'quorum', 'voting power'],
      ['starts_at', 'startsAt'],
      ['ends_at', 'endsAt'],
    ]).concat(
      from(ofSource(governanceProposalsRoute), [
        ['source', 'source'],
        ['outcome', 'outcome'],
      ]),
    ),
    order: ['proposal_id'],
  },
  {
    name: 'votes',
    description:
      'Votes in each DAO on Snapshot and on its governors. The same votes as /data/daos/governance/votes with source=all.',
    of: governance,
    about: 'dao',
    extent: () => votes,
    params: allGovernance,
    rows: () => `WITH ${COUNTED}
SELECT key, cast_at AS created_at, vote_id, proposal_id, voter, choice, voting_power, source FROM
(
  SELECT dao AS key, ${asTime('created_at')} AS cast_at, ${VOTE_ID} AS vote_id, ${toIdSql("'proposal'", 'dao', 'proposal')} AS proposal_id,
    voter, nullIf(nullIf(choice, ''), 'null') AS choice, voting_power, ${toSource('space')} AS source
  FROM dao_cast_votes FINAL WHERE ${COUNTS} AND NOT is_replaced AND ${RANGE('created_at')}
)`,
    columns: [
      ...from(governanceVotesRoute, [
        ['created_at', 'createdAt'],
        ['vote_id', '_id'],
        ['proposal_id', 'proposal'],
        ['voter', 'voter'],
      ]),
      { name: 'choice', description: `As JSON. ${documented(governanceVotesRoute, 'choice')}` },
      ...from(governanceVotesRoute, [['voting_power', 'votingPower', 'voting power']]),
      ...from(ofSource(governanceVotesRoute), [['source', 'source']]),
    ],
    order: ['vote_id'],
  },
  publishSeries(
    marketCapSeries,
    'The market cap of all tokens together by day. The same points as /data/aggregated/market-cap.',
  ),
  publishSeries(
    treasuryValueSeries,
    'The value of all treasuries together by day. The same points as /data/aggregated/treasury-value.',
  ),
  {
    name: 'index',
    description: 'The value of the Index in each slot. The same points as /data/index/historic.',
    of: indexPoints,
    extent: () => indexPoints.series,
    params: ({ index }) => ({ index: index.key }),
    rows: () =>
      `SELECT index_key AS key, created_at, value_usd, toString(composition) AS composition FROM index_points FINAL WHERE index_key = {index: UInt64} AND ${RANGE('created_at')}`,
    columns: from(indexHistoricRoute, [
      ['created_at', 'createdAt'],
      ['value_usd', 'valueUsd', 'USD'],
      ['composition', 'composition'],
    ]),
  },
  {
    name: 'index-token',
    description: 'The Index Token at each block that was read, as /data/index/token-data has the newest.',
    of: indexToken,
    extent: () => indexToken.series,
    params: ({ index }) => ({ index: index.key }),
    rows: () => `SELECT index_key AS key, created_at, toDecimal128(value, 18) AS value, toDecimal128(total_supply, 18) AS total_supply, value_usd
FROM index_token FINAL WHERE index_key = {index: UInt64} AND ${RANGE('created_at')}`,
    columns: from(indexTokenRoute, [
      ['created_at', 'createdAt'],
      ['value', 'value', 'ETH'],
      ['total_supply', 'totalSupply', 'tokens'],
      ['value_usd', 'valueUsd', 'USD'],
    ]),
  },
]
