import { daoLinks } from './daos.ts'
import type { DatasetFacts } from './define-dataset.ts'
import { delegations } from './delegations.ts'
import { dexTrades } from './dex-trades.ts'
import { discordMembers } from './discord.ts'
import { daoFees } from './fees.ts'
import { governance } from './governance.ts'
import { governors } from './governors.ts'
import { tokenHolders } from './holders.ts'
import { indexPoints } from './index-points.ts'
import { indexToken } from './index-token.ts'
import { marketCap } from './market-cap.ts'
import { protocolTvl } from './protocol-tvl.ts'
import { daoRatings } from './ratings.ts'
import { telegramMembers } from './telegram.ts'
import { tokenPrices } from './token-prices.ts'
import { daoTreasury } from './treasury.ts'
import { treasuryFlows } from './treasury-flows.ts'
import { treasuryValue } from './treasury-value.ts'
import { twitterCounts } from './twitter.ts'
import { twitterSentiment } from './twitter-sentiment.ts'

/** Every dataset of the service; freshness and readiness cover all of them. */
export const datasets = [
  tokenPrices,
  protocolTvl,
  tokenHolders,
  daoLinks,
  daoTreasury,
  treasuryFlows,
  daoFees,
  daoRatings,
  marketCap,
  indexPoints,
  indexToken,
  governance,
  governors,
  delegations,
  treasuryValue,
  twitterCounts,
  discordMembers,
  telegramMembers,
  twitterSentiment,
  dexTrades,
] as const satisfies readonly DatasetFacts[]
