import { z } from 'zod'
import { dexTrades } from '../../../shared/datasets/dex-trades.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { defineList, listedTokens } from '../../lists/list.ts'
import { idValue, numberOrNull, timeValue, uint64 } from '../../records/values.ts'

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
    totalTrades: uint64,
    totalMakers: uint64,
    totalTakers: uint64,
    inflow: flow,
    outflow: flow,
    totalDexs: uint64,
    price: numberOrNull,
    lastUpdated: timeValue,
  }),
})

export const dexDataRoute = defineList({
  path: '/data/tokens/dex-data',
  summary: 'Trades of tokens on decentralized exchanges, in sum',
  description:
    'For all live tokens with trades, or those that `id` and `name` select. Over all known trades: their number, the pools (`totalMakers`), the senders (`totalTakers`) and the exchanges they were made with; the USD that bought (`inflow`) and sold (`outflow`) the token in the 24 hours, 7 and 30 days before `lastUpdated` and ever; the price of the latest trade, null where it is not known. Exact name matches come first, then by market cap, largest first, then by name.',
  of: listedTokens,
  record: dexRecord,
  datasets: [dexTrades, tokenPrices],
  name: 'dex-data',
  asOf: 'd.as_of',
  values: `t.id, t.name, tuple(d.total_trades, d.makers, d.takers,
    tuple(d.inflow_24h, d.inflow_7d, d.inflow_30d, d.inflow_max),
    tuple(d.outflow_24h, d.outflow_7d, d.outflow_30d, d.outflow_max),
    d.dexs, d.price, d.as_of)`,
  joins: 'INNER JOIN (SELECT * FROM dex_data FINAL) AS d ON d.token = t.key',
})
