import { z } from 'zod'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { listedTokens, TOKEN_PLACE } from '../lists/tokens.ts'
import { page } from '../parameters/kinds.ts'
import { answerRecords } from '../records/answer.ts'
import { defineRoute } from '../route/define.ts'
import { manyOfKind, selectMany, tokenKind } from '../route/entities.ts'
import { idValue, numberOrNull, timeValue } from '../route/values.ts'

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
  decimal: z.int(),
  live: z.boolean(),
  dao: idValue,
  cmcId: z.string().nullable(),
  chain: idValue,
  financialData,
  livePrice: z.boolean(),
  chart24h: z.url(),
})

const RECORD = `Tuple(_id String, name String, symbol String, contractAddress String, decimal UInt8, live Bool, dao String,
  cmcId Nullable(String), chain String, financialData Tuple(lastUpdated DateTime64(3, 'UTC'), marketCap Nullable(Float64),
  percentChange1h Nullable(Float64), percentChange24h Nullable(Float64), percentChange7d Nullable(Float64),
  percentChange30d Nullable(Float64), percentChange60d Nullable(Float64), percentChanged90d Nullable(Float64),
  price Float64, volume24h Nullable(Float64), volumeChange24h Nullable(Float64), totalSupply Nullable(Float64),
  circulatingSupply Nullable(Float64), fullyDilutedMarketCap Nullable(Float64), maxSupply Nullable(Float64),
  tvl Nullable(Float64)), livePrice Bool, chart24h String)`

// A token without a quote has no time of its last update, which the interface never lets be null: it is not listed yet.
// The value locked in the DAO's protocols stands in where the market-data provider gives none, unless it is days older
// than the quote. The answer is as old as its quotes: a fresher value locked must not hide that prices stopped coming.
const toSql = (after: string) => `
SELECT q.observed_at AS as_of, ${TOKEN_PLACE} AS page_key,
  CAST(tuple(t.id, t.name, t.symbol, t.contract_address, t.decimals, t.live, t.dao_id, t.cmc_id, t.chain_id,
    tuple(q.observed_at, q.market_cap, q.percent_change_1h, q.percent_change_24h, q.percent_change_7d,
      q.percent_change_30d, q.percent_change_60d, q.percent_change_90d, q.price, q.volume_24h, q.volume_change_24h,
      q.total_supply, q.circulating_supply, q.fully_diluted_market_cap, q.max_supply, coalesce(q.tvl, if(p.observed_at >= q.observed_at - INTERVAL 2 DAY, toNullable(p.tvl_usd), NULL))),
    t.live_price, concat({charts: String}, t.id, '.svg')), $record$${RECORD}$record$) AS record
FROM (SELECT * FROM tokens FINAL) AS t
INNER JOIN (SELECT * FROM token_quotes FINAL) AS q ON q.token = t.key
LEFT JOIN (SELECT dao, observed_at, tvl_usd FROM protocol_tvl_latest FINAL) AS p ON p.dao = t.dao_key
${listedTokens(after)}`

export const tokensRoute = defineRoute({
  path: '/data/tokens',
  tag: 'Tokens',
  summary: 'Live tokens with their financial data',
  description:
    'All live tokens, or those that `id` and `name` select. Exact name matches come first, then by market cap, largest first, then by name. A token is listed from its first quote on.',
  query: { ...manyOfKind(tokenKind), ...page('tokens', { default: 10, max: 500 }) },
  record: tokenRecord,
  datasets: [tokenPrices, protocolTvl],
  handle: (call) => {
    const { query, registry, config } = call
    const selection = selectMany(tokenKind, registry, query)
    const charts = `${config.api.publicUrl}/charts/24h/`
    return answerRecords(call, {
      name: 'tokens',
      sql: toSql(call.wanted.after),
      params: { ...selection, charts },
      page: query.limit,
    })
  },
})
