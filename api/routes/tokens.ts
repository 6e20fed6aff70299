import { z } from 'zod'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { defineList, listedTokens } from '../lists/list.ts'
import { lastKnown } from '../lists/past-quotes.ts'
import { TOKEN_FACTS, TOKEN_LINKS, tokenFacts, tokenLinks } from '../lists/token-members.ts'
import { numberOrNull, timeValue } from '../records/values.ts'

/** How much the price changed, in percent. */
const priceChange = (over: string) =>
  numberOrNull.describe(`Change of the price over ${over}, in percent (1.5 is +1.5 %); null where it is not known.`)

const financialData = z
  .strictObject({
    lastUpdated: timeValue.describe('When these values were observed.'),
    marketCap: numberOrNull.describe('Price times circulating supply, in US dollars; null where no source tells it.'),
    percentChange1h: priceChange('1 hour'),
    percentChange24h: priceChange('24 hours'),
    percentChange7d: priceChange('7 days'),
    percentChange30d: priceChange('30 days'),
    percentChange60d: priceChange('60 days'),
    percentChanged90d: priceChange('90 days'),
    price: z.number().describe('Price of one token in US dollars.'),
    volume24h: numberOrNull.describe(
      'What was traded within 24 hours on all markets, in US dollars; null where no source tells it.',
    ),
    volumeChange24h: numberOrNull.describe(
      'Change of `volume24h` against the 24 hours before, in percent; null where it is not known.',
    ),
    totalSupply: numberOrNull.describe('Tokens that exist; null where no source tells it.'),
    circulatingSupply: numberOrNull.describe('Tokens that are in circulation; null where no source tells it.'),
    fullyDilutedMarketCap: numberOrNull.describe(
      'Price times the most tokens that there can be, in US dollars; null where no source tells it.',
    ),
    maxSupply: numberOrNull.describe(
      'Most tokens that there can ever be; null where there is no limit or none is known.',
    ),
    tvl: numberOrNull.describe(
      "Value locked in the DAO's protocols, in US dollars; null where it has none or none is known.",
    ),
  })
  .meta({ id: 'FinancialData', description: 'What a token is worth, as it was last observed.' })

/** A Token with its financial data (docs/contract.md, section 4). */
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
  // The answer is as old as its quotes: a fresher value locked must not hide that prices stopped coming.
  asOf: 'q.observed_at',
  // The value locked in the DAO's protocols stands in where the market-data provider gives none, unless it is days
  // older than the quote.
  values: `${TOKEN_FACTS},
    tuple(q.observed_at, q.market_cap, q.percent_change_1h, q.percent_change_24h, q.percent_change_7d,
      q.percent_change_30d, q.percent_change_60d, q.percent_change_90d, q.price, q.volume_24h, q.volume_change_24h,
      q.total_supply, q.circulating_supply, q.fully_diluted_market_cap, q.max_supply, coalesce(q.tvl, if(p.observed_at >= q.observed_at - INTERVAL 2 DAY, toNullable(p.tvl_usd), NULL))),
    ${TOKEN_LINKS}`,
  joins: 'LEFT JOIN (SELECT dao, observed_at, tvl_usd FROM protocol_tvl_latest FINAL) AS p ON p.dao = t.dao_key',
  pastJoins: `LEFT JOIN (SELECT dao, observed_at, tvl_usd FROM ${lastKnown(protocolTvl)}) AS p ON p.dao = t.dao_key`,
  // A token without a quote has no time of its last update, which the interface never lets be null: it is not listed
  // yet.
  where: 'q.token = t.key',
})
