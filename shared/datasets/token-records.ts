import { z } from 'zod'
import { idValue, numberOrNull, timeValue, uint8, usd } from '../record-values.ts'

/** The first members of a token in the records of tokens and of DAOs. Financial data comes between these and `tokenLinks`. */
export const tokenFacts = {
  _id: idValue.describe('Id of the token.'),
  name: z.string().describe('Name of the token.'),
  symbol: z.string().describe('Its ticker symbol; several tokens may share one.'),
  contractAddress: z.string().describe('Address of its contract on `chain`; in lower case on EVM chains.'),
  decimal: uint8.describe('Decimal places of an amount on the chain.'),
  live: z.boolean().describe('Whether its data is still collected. A token that has ended is listed only with `asOf`.'),
  dao: idValue.describe('Id of the DAO that it belongs to.'),
  cmcId: z.string().nullable().describe('Id at CoinMarketCap; null if it is not listed there.'),
  chain: idValue.describe('Id of its chain, a record of /data/chains.'),
}

/** SQL of their values, of a token's row `t`. */
export const TOKEN_FACTS = {
  _id: 't.id',
  name: 't.name',
  symbol: 't.symbol',
  contractAddress: 't.contract_address',
  decimal: 't.decimals',
  live: 't.live',
  dao: 't.dao_id',
  cmcId: 't.cmc_id',
  chain: 't.chain_id',
} as const satisfies Readonly<Record<keyof typeof tokenFacts, string>>

/** The last members of a token. */
export const tokenLinks = {
  livePrice: z.boolean().describe('Whether its price is collected every five minutes.'),
  chart24h: z.url().describe('URL of an SVG image of its price over the last 24 hours.'),
}

/** SQL of their values, of a token's row `t`. */
export const TOKEN_LINKS = {
  livePrice: 't.live_price',
  chart24h: "concat({charts: String}, t.id, '.svg')",
} as const satisfies Readonly<Record<keyof typeof tokenLinks, string>>

/** The change of the price, in percent. */
const priceChange = (over: string) =>
  numberOrNull.describe(`Change of the price over ${over}, in percent (1.5 is +1.5 %); null if unknown.`)

const financialData = z
  .strictObject({
    lastUpdated: timeValue.describe('When these values were observed.'),
    marketCap: numberOrNull.describe('Price times circulating supply, in US dollars; null if unknown.'),
    percentChange1h: priceChange('1 hour'),
    percentChange24h: priceChange('24 hours'),
    percentChange7d: priceChange('7 days'),
    percentChange30d: priceChange('30 days'),
    percentChange60d: priceChange('60 days'),
    percentChanged90d: priceChange('90 days'),
    price: z.number().describe('Price of one token in US dollars.'),
    volume24h: numberOrNull.describe(
      'Trading volume of the last 24 hours on all markets, in US dollars; null if unknown.',
    ),
    volumeChange24h: numberOrNull.describe(
      'Change of `volume24h` against the 24 hours before, in percent; null if unknown.',
    ),
    totalSupply: numberOrNull.describe('Total supply in tokens; null if unknown.'),
    circulatingSupply: numberOrNull.describe('Circulating supply in tokens; null if unknown.'),
    fullyDilutedMarketCap: numberOrNull.describe('Price times maximum supply, in US dollars; null if unknown.'),
    maxSupply: numberOrNull.describe('Maximum supply in tokens; null if there is no limit or it is unknown.'),
    tvl: usd
      .nullable()
      .describe("Value locked in the DAO's protocols, in US dollars; null if it has none or none is known."),
  })
  .meta({ id: 'FinancialData', description: 'The last observed quote of a token.' })

/** A token with its financial data. */
export const tokenRecord = z
  .strictObject({
    ...tokenFacts,
    financialData,
    ...tokenLinks,
  })
  .meta({ id: 'Token', description: 'A token of a DAO with its financial data.' })

/** SQL of the tokens `t` of the registry. */
export const FROM_TOKENS = 'FROM (SELECT * FROM tokens FINAL) AS t'
