import type { Route } from './route/define-route.ts'
import { categorySumsRoute } from './routes/aggregated/categories.ts'
import { chainSumsRoute } from './routes/aggregated/chains.ts'
import { marketCapRoute } from './routes/aggregated/market-cap.ts'
import { treasuryValueRoute } from './routes/aggregated/treasury-value.ts'
import { alertRulesRoute } from './routes/alerts/rules.ts'
import { alertsRoute } from './routes/alerts.ts'
import { basketHistoricRoute } from './routes/baskets/historic.ts'
import { basketReportRoute } from './routes/baskets/report.ts'
import { categoriesRoute } from './routes/categories.ts'
import { chainsRoute } from './routes/chains.ts'
import { changesRoute } from './routes/changes.ts'
import { chart24hRoute } from './routes/charts/24h.ts'
import { feesHistoricRoute } from './routes/daos/fees/historic.ts'
import { feesRoute } from './routes/daos/fees.ts'
import { governanceBlocsRoute } from './routes/daos/governance/blocs.ts'
import { governanceConcentrationRoute } from './routes/daos/governance/concentration.ts'
import { delegateHistoryRoute } from './routes/daos/governance/delegates/historic.ts'
import { governanceDelegatesRoute } from './routes/daos/governance/delegates.ts'
import { governanceDelegationsRoute } from './routes/daos/governance/delegations.ts'
import { governanceActionsRoute } from './routes/daos/governance/proposals/actions.ts'
import { governanceProposalsRoute } from './routes/daos/governance/proposals.ts'
import { governanceRecordRoute } from './routes/daos/governance/record.ts'
import { governanceRecordsRoute } from './routes/daos/governance/records.ts'
import { governanceSummaryRoute } from './routes/daos/governance/summary.ts'
import { governanceVotersRoute } from './routes/daos/governance/voters.ts'
import { governanceVotesRoute } from './routes/daos/governance/votes.ts'
import { governanceRoute } from './routes/daos/governance.ts'
import { daoProfileRoute } from './routes/daos/profile.ts'
import { ratingsRoute } from './routes/daos/ratings.ts'
import { historicDiscordRoute } from './routes/daos/socials/historic-discord.ts'
import { historicTelegramRoute } from './routes/daos/socials/historic-telegram.ts'
import { historicTwitterRoute } from './routes/daos/socials/historic-twitter.ts'
import { historicTwitterSentimentRoute } from './routes/daos/socials/historic-twitter-sentiment.ts'
import { socialsRoute } from './routes/daos/socials.ts'
import { treasuryCounterpartiesRoute } from './routes/daos/treasury/flows/counterparties.ts'
import { treasuryFlowsHistoricRoute } from './routes/daos/treasury/flows/historic.ts'
import { treasuryFlowsRoute } from './routes/daos/treasury/flows.ts'
import { treasuryHistoricRoute } from './routes/daos/treasury/historic.ts'
import { holdingsHistoricRoute } from './routes/daos/treasury/holdings/historic.ts'
import { holdingsRoute } from './routes/daos/treasury/holdings.ts'
import { treasuryKindsRoute } from './routes/daos/treasury/kinds.ts'
import { treasuryRunwayRoute } from './routes/daos/treasury/runway.ts'
import { treasuryRoute } from './routes/daos/treasury.ts'
import { twitterSentimentRoute } from './routes/daos/twitter-sentiment.ts'
import { twitterSentimentSamplesRoute } from './routes/daos/twitter-sentiment-samples.ts'
import { daosRoute } from './routes/daos.ts'
import { votesCalendarRoute } from './routes/feeds/votes.ts'
import { atomFeedRoute, jsonFeedRoute } from './routes/feeds.ts'
import { liveRoute } from './routes/health/live.ts'
import { readyRoute } from './routes/health/ready.ts'
import { indexCompositionRoute } from './routes/index/composition.ts'
import { indexCompositionsRoute } from './routes/index/compositions.ts'
import { indexHistoricRoute } from './routes/index/historic.ts'
import { indexTokenRoute } from './routes/index/token-data.ts'
import { indexWeightsRoute } from './routes/index/weights.ts'
import { marksRoute } from './routes/marks.ts'
import { provenanceRawRoute } from './routes/provenance/raw.ts'
import { provenanceRoute } from './routes/provenance.ts'
import { searchRoute } from './routes/search.ts'
import { coverageRoute } from './routes/status/coverage.ts'
import { statusRoute } from './routes/status.ts'
import { streamRoute } from './routes/stream.ts'
import { dexDataRoute } from './routes/tokens/dex-data.ts'
import { historicDexOhlcvRoute } from './routes/tokens/historic-dex-ohlcv.ts'
import { historicDexTradesRoute } from './routes/tokens/historic-dex-trades.ts'
import { historicFinancialRoute } from './routes/tokens/historic-financial.ts'
import { historicOhlcRoute } from './routes/tokens/historic-ohlc.ts'
import { holdersHistoricRoute } from './routes/tokens/holders/historic.ts'
import { holderLabelsHistoricRoute } from './routes/tokens/holders/historic-labels.ts'
import { holdersRoute } from './routes/tokens/holders.ts'
import { tokenProfileRoute } from './routes/tokens/profile.ts'
import { tokensRoute } from './routes/tokens.ts'
import { usageRoute } from './routes/usage.ts'
import { votersRoute } from './routes/voters.ts'

/** Every route, in the order of the documentation. A new endpoint is one file and one line here. */
export const routes = [
  tokensRoute,
  holdersRoute,
  holdersHistoricRoute,
  holderLabelsHistoricRoute,
  dexDataRoute,
  historicFinancialRoute,
  historicOhlcRoute,
  historicDexTradesRoute,
  historicDexOhlcvRoute,
  tokenProfileRoute,
  daosRoute,
  daoProfileRoute,
  marketCapRoute,
  treasuryValueRoute,
  categorySumsRoute,
  chainSumsRoute,
  searchRoute,
  categoriesRoute,
  chainsRoute,
  chart24hRoute,
  marksRoute,
  statusRoute,
  coverageRoute,
  provenanceRoute,
  provenanceRawRoute,
  streamRoute,
  changesRoute,
  alertsRoute,
  alertRulesRoute,
  atomFeedRoute,
  jsonFeedRoute,
  votesCalendarRoute,
  usageRoute,
  liveRoute,
  readyRoute,
  governanceRoute,
  governanceSummaryRoute,
  governanceProposalsRoute,
  governanceActionsRoute,
  governanceVotesRoute,
  governanceVotersRoute,
  governanceRecordRoute,
  governanceRecordsRoute,
  governanceDelegatesRoute,
  delegateHistoryRoute,
  governanceDelegationsRoute,
  governanceConcentrationRoute,
  governanceBlocsRoute,
  votersRoute,
  treasuryRoute,
  treasuryKindsRoute,
  treasuryFlowsRoute,
  treasuryFlowsHistoricRoute,
  treasuryCounterpartiesRoute,
  treasuryRunwayRoute,
  holdingsRoute,
  holdingsHistoricRoute,
  treasuryHistoricRoute,
  feesRoute,
  feesHistoricRoute,
  ratingsRoute,
  socialsRoute,
  historicTwitterRoute,
  historicDiscordRoute,
  historicTelegramRoute,
  twitterSentimentRoute,
  historicTwitterSentimentRoute,
  twitterSentimentSamplesRoute,
  indexTokenRoute,
  indexCompositionRoute,
  indexCompositionsRoute,
  indexWeightsRoute,
  basketHistoricRoute,
  basketReportRoute,
  indexHistoricRoute,
] as const satisfies readonly Route[]
