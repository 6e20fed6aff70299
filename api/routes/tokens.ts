import { z } from 'zod'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { toStaleAt } from '../../shared/store/freshness.ts'
import { defineList, listedTokens } from '../lists/list.ts'
import { knownAt } from '../lists/past-quotes.ts'
import { idValue, numberOrNull, timeValue, uint8 } from '../records/values.ts'

const financialData = z.strictObject({
  lastUpdated: timeValue,
  marketCap: numberOrNull,
  percentChange1h: numberOrNull,
  percentChange24h: numberOrNull,
  percentChange7d: numberOrNull,
  percentChange30d: numberOrNull,
  percentChange60d: numberOrNull,
  percentChanged90d: numberOrNull,
  price: z.number(),
  volume24h: numberOrNull,
  volumeChange24h: numberOrNull,
  totalSupply: numberOrNull,
  circulatingSupply: numberOrNull,
  fullyDilutedMarketCap: numberOrNull,
  maxSupply: numberOrNull,
  tvl: numberOrNull,
})

/** A Token with its financial data, as the interface document lists it. */
const tokenRecord = z.strictObject({
  _id: idValue,
  name: z.string(),
  symbol: z.string(),
  contractAddress: z.string(),
  decimal: uint8,
  live: z.boolean(),
  dao: idValue,
  cmcId: z.string().nullable(),
  chain: idValue,
  financialData,
  livePrice: z.boolean(),
  chart24h: z.url(),
})

export const tokensRoute = defineList({
  path: '/data/tokens',
  summary: 'Live tokens with their financial data',
  description:
    'All live tokens, or those that `id` and `name` select. Exact name matches come first, then by market cap, largest first, then by name. A token is listed from its first quote on.',
  of: listedTokens,
  record: tokenRecord,
  datasets: [tokenPrices, protocolTvl],
  name: 'tokens',
  // The answer is as old as its quotes: a fresher value locked must not hide that prices stopped coming.
  asOf: 'q.observed_at',
  // The value locked in the DAO's protocols stands in where the market-data provider gives none, unless it is days
  // older than the quote.
  values: `t.id, t.name, t.symbol, t.contract_address, t.decimals, t.live, t.dao_id, t.cmc_id, t.chain_id,
    tuple(q.observed_at, q.market_cap, q.percent_change_1h, q.percent_change_24h, q.percent_change_7d,
      q.percent_change_30d, q.percent_change_60d, q.percent_change_90d, q.price, q.volume_24h, q.volume_change_24h,
      q.total_supply, q.circulating_supply, q.fully_diluted_market_cap, q.max_supply, coalesce(q.tvl, if(p.observed_at >= q.observed_at - INTERVAL 2 DAY, toNullable(p.tvl_usd), NULL))),
    t.live_price, concat({charts: String}, t.id, '.svg')`,
  joins: 'LEFT JOIN (SELECT dao, observed_at, tvl_usd FROM protocol_tvl_latest FINAL) AS p ON p.dao = t.dao_key',
  pastJoins: `LEFT JOIN
(
  SELECT dao, observed_at, tvl_usd FROM protocol_tvl FINAL WHERE ${knownAt('observed_at', toStaleAt(0, protocolTvl))}
  ORDER BY observed_at DESC LIMIT 1 BY dao
) AS p ON p.dao = t.dao_key`,
  // A token without a quote has no time of its last update, which the interface never lets be null: it is not listed
  // yet.
  where: 'q.token = t.key',
})
