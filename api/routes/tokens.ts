import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { TOKEN_FACTS, TOKEN_LINKS, tokenRecord } from '../../shared/datasets/token-records.ts'
import { observationSource } from '../../shared/record-values.ts'
import { toStaleAt } from '../../shared/store/store.ts'
import { defineList, isCurrentAt, lastCurrentRows, listedTokens } from '../lists/lists.ts'

/** SQL that joins the provider `s` of each quote; `where` limits the observations that are read. */
const toSourceJoin = (where: string) =>
  `LEFT JOIN (SELECT token, observed_at, provider FROM price_sources FINAL WHERE ${where}) AS s ON s.token = q.token AND s.observed_at = q.observed_at`

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
  values: {
    ...TOKEN_FACTS,
    ...TOKEN_LINKS,
    // If the provider has no TVL, the TVL of the DAO's protocols replaces it, unless it is days older than the quote.
    financialData: `tuple(q.observed_at, q.market_cap, q.percent_change_1h, q.percent_change_24h, q.percent_change_7d,
      q.percent_change_30d, q.percent_change_60d, q.percent_change_90d, q.price, q.volume_24h, q.volume_change_24h,
      q.total_supply, q.circulating_supply, q.fully_diluted_market_cap, q.max_supply, coalesce(q.tvl, if(p.observed_at >= q.observed_at - INTERVAL 2 DAY, toNullable(p.tvl_usd), NULL)))`,
  },
  joins: 'LEFT JOIN (SELECT dao, observed_at, tvl_usd FROM protocol_tvl_latest FINAL) AS p ON p.dao = t.dao_key',
  pastJoins: `LEFT JOIN (SELECT dao, observed_at, tvl_usd FROM ${lastCurrentRows(protocolTvl)}) AS p ON p.dao = t.dao_key`,
  // `lastUpdated` is never null, so a token is listed from its first quote on.
  where: 'q.token = t.key',
  included: {
    name: 'source',
    description: 'With `source`, the provider of the quote.',
    schema: observationSource,
    value: "nullIf(toString(s.provider), '')",
    joins: toSourceJoin('(token, observed_at) IN (SELECT token, observed_at FROM token_quotes FINAL)'),
    pastJoins: toSourceJoin(isCurrentAt('observed_at', toStaleAt(0, tokenPrices))),
  },
})
