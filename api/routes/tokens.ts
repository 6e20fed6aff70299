import { z } from 'zod'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { idValue, numberOrNull, timeValue, uint8 } from '../formats/formats.ts'
import { defineList, lastCurrentRows, listedTokens } from '../lists/lists.ts'

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
export const TOKEN_FACTS =
  't.id, t.name, t.symbol, t.contract_address, t.decimals, t.live, t.dao_id, t.cmc_id, t.chain_id'

/** The last members of a token. */
export const tokenLinks = {
  livePrice: z.boolean().describe('Whether its price is collected every five minutes.'),
  chart24h: z.url().describe('URL of an SVG image of its price over the last 24 hours.'),
}

/** SQL of their values, of a token's row `t`. */
export const TOKEN_LINKS = "t.live_price, concat({charts: String}, t.id, '.svg')"

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
    tvl: numberOrNull.describe(
      "Value locked in the DAO's protocols, in US dollars; null if it has none or none is known.",
    ),
  })
  .meta({ id: 'FinancialData', description: 'The last observed quote of a token.' })

/** A token with its financial data. */
const tokenRecord = z
  .strictObject({
    ...tokenFacts,
    financialData,
    ...tokenLinks,
  })
  .meta({ id: 'Token', description: 'A token of a DAO with its financial data.' })

export const tokensRoute = defineList({
  operation: 'listTokens',
  path: '/data/tokens',
  summary: 'Live tokens with their financial data',
  description:
    'All live tokens, or those that `id` and `name` select. Exact name matches come first, then by market cap, largest first, then by name. A token is listed from its first quote on.',
  of: listedTokens,
  record: tokenRecord,
  datasets: [tokenPrices, protocolTvl],
  name: 'tokens',
  // The quote decides the age of the answer. A newer TVL must not hide that prices are overdue.
  asOf: 'q.observed_at',
  // If the provider has no TVL, the TVL of the DAO's protocols replaces it, unless it is days older than the quote.
  values: `${TOKEN_FACTS},
    tuple(q.observed_at, q.market_cap, q.percent_change_1h, q.percent_change_24h, q.percent_change_7d,
      q.percent_change_30d, q.percent_change_60d, q.percent_change_90d, q.price, q.volume_24h, q.volume_change_24h,
      q.total_supply, q.circulating_supply, q.fully_diluted_market_cap, q.max_supply, coalesce(q.tvl, if(p.observed_at >= q.observed_at - INTERVAL 2 DAY, toNullable(p.tvl_usd), NULL))),
    ${TOKEN_LINKS}`,
  joins: 'LEFT JOIN (SELECT dao, observed_at, tvl_usd FROM protocol_tvl_latest FINAL) AS p ON p.dao = t.dao_key',
  pastJoins: `LEFT JOIN (SELECT dao, observed_at, tvl_usd FROM ${lastCurrentRows(protocolTvl)}) AS p ON p.dao = t.dao_key`,
  // `lastUpdated` is never null, so a token is listed from its first quote on.
  where: 'q.token = t.key',
})
