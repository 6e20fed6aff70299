import { z } from 'zod'
import { dexTrades } from '../../../shared/datasets/dex-trades.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { idValue, numberOrNull, timeValue, uint64 } from '../../formats/formats.ts'
import { defineList, listedTokens } from '../../lists/lists.ts'

const flow = z
  .strictObject({
    amountUsd24h: z.number().describe('Within 24 hours before `lastUpdated`, in US dollars.'),
    amountUsd7d: z.number().describe('Within 7 days before `lastUpdated`, in US dollars.'),
    amountUsd30d: z.number().describe('Within 30 days before `lastUpdated`, in US dollars.'),
    amountUsdMax: z.number().describe('Over all known trades, in US dollars.'),
  })
  .meta({ id: 'DexFlow', description: 'Traded value in one direction, without trades of unknown value.' })

/** Totals of a token's trades on decentralized exchanges (docs/contract.md, section 4). */
const dexRecord = z
  .strictObject({
    _id: idValue.describe('Id of the token.'),
    name: z.string().describe('Name of the token.'),
    dexData: z
      .strictObject({
        totalTrades: uint64.describe('Known trades.'),
        totalMakers: uint64.describe('Different pools that they were made with.'),
        totalTakers: uint64.describe('Different addresses that sent them.'),
        inflow: flow.describe('What bought the token.'),
        outflow: flow.describe('Traded value of sales of the token.'),
        totalDexs: uint64.describe('Different exchanges that they were made on.'),
        price: numberOrNull.describe('Price in the latest trade, in US dollars; null if unknown.'),
        lastUpdated: timeValue.describe('Up to when trades were collected.'),
      })
      .describe('All known trades in sum.'),
  })
  .meta({ id: 'TokenDexData', description: 'The trades of a token on decentralized exchanges in sum.' })

export const dexDataRoute = defineList({
  operation: 'listTokenDexData',
  path: '/data/tokens/dex-data',
  summary: 'Trades of tokens on decentralized exchanges, in sum',
  description:
    'For all live tokens with trades, or those that `id` and `name` select. Over all known trades: their number, the pools (`totalMakers`), the senders (`totalTakers`) and the exchanges they were made with; the USD that bought (`inflow`) and sold (`outflow`) the token in the 24 hours, 7 and 30 days before `lastUpdated` and ever; the price of the latest trade, null if unknown. Exact name matches come first, then by market cap, largest first, then by name.',
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
