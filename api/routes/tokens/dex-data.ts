import { z } from 'zod'
import { dexTrades } from '../../../shared/datasets/dex-trades.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { listedTokens, TOKEN_PLACE } from '../../lists/tokens.ts'
import { page } from '../../parameters/kinds.ts'
import { answerRecords } from '../../records/answer.ts'
import { defineRoute } from '../../route/define.ts'
import { manyOfKind, selectMany, tokenKind } from '../../route/entities.ts'
import { idValue, numberOrNull, timeValue } from '../../route/values.ts'

const flow = z.strictObject({
  amountUsd24h: z.number(),
  amountUsd7d: z.number(),
  amountUsd30d: z.number(),
  amountUsdMax: z.number(),
})

/** A token's trades on decentralized exchanges in sum, as the interface document lists them. */
const dexRecord = z.strictObject({
  _id: idValue,
  name: z.string(),
  dexData: z.strictObject({
    totalTrades: z.int(),
    totalMakers: z.int(),
    totalTakers: z.int(),
    inflow: flow,
    outflow: flow,
    totalDexs: z.int(),
    price: numberOrNull,
    lastUpdated: timeValue,
  }),
})

const FLOW = 'Tuple(amountUsd24h Float64, amountUsd7d Float64, amountUsd30d Float64, amountUsdMax Float64)'
const RECORD = `Tuple(_id String, name String, dexData Tuple(totalTrades UInt64, totalMakers UInt64, totalTakers UInt64,
  inflow ${FLOW}, outflow ${FLOW}, totalDexs UInt64, price Nullable(Float64), lastUpdated DateTime64(3, 'UTC')))`

const toSql = (after: string) => `
SELECT d.as_of AS as_of, ${TOKEN_PLACE} AS page_key,
  CAST(tuple(t.id, t.name, tuple(d.total_trades, d.makers, d.takers,
    tuple(d.inflow_24h, d.inflow_7d, d.inflow_30d, d.inflow_max),
    tuple(d.outflow_24h, d.outflow_7d, d.outflow_30d, d.outflow_max),
    d.dexs, d.price, d.as_of)), $record$${RECORD}$record$) AS record
FROM (SELECT * FROM tokens FINAL) AS t
INNER JOIN (SELECT * FROM dex_data FINAL) AS d ON d.token = t.key
LEFT JOIN (SELECT token, market_cap FROM token_quotes FINAL) AS q ON q.token = t.key
${listedTokens(after)}`

export const dexDataRoute = defineRoute({
  path: '/data/tokens/dex-data',
  tag: 'Tokens',
  summary: 'Trades of tokens on decentralized exchanges, in sum',
  description:
    'For all live tokens with trades, or those that `id` and `name` select. Over all known trades: their number, the pools (`totalMakers`), the senders (`totalTakers`) and the exchanges they were made with; the USD that bought (`inflow`) and sold (`outflow`) the token in the 24 hours, 7 and 30 days before `lastUpdated` and ever; the price of the latest trade, null where it is not known. Exact name matches come first, then by market cap, largest first, then by name.',
  query: { ...manyOfKind(tokenKind), ...page('tokens', { default: 10, max: 500 }) },
  record: dexRecord,
  datasets: [dexTrades, tokenPrices],
  handle: (call) => {
    const { query, registry } = call
    const selection = selectMany(tokenKind, registry, query)
    return answerRecords(call, {
      name: 'dex-data',
      sql: toSql(call.wanted.after),
      params: selection,
      page: query.limit,
    })
  },
})
