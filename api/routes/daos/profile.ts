import { dexTrades } from '../../../shared/datasets/dex-trades.ts'
import { discordMembers } from '../../../shared/datasets/discord.ts'
import { daoFees } from '../../../shared/datasets/fees.ts'
import { governance } from '../../../shared/datasets/governance.ts'
import { tokenHolders } from '../../../shared/datasets/holders.ts'
import { daoRatings } from '../../../shared/datasets/ratings.ts'
import { telegramMembers } from '../../../shared/datasets/telegram.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { daoTreasury } from '../../../shared/datasets/treasury.ts'
import { twitterCounts } from '../../../shared/datasets/twitter.ts'
import { twitterSentiment } from '../../../shared/datasets/twitter-sentiment.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import { defineProfile } from '../../profiles/profile.ts'
import { daoKind } from '../../route/entities.ts'
import { daosRoute } from '../daos.ts'
import { dexDataRoute } from '../tokens/dex-data.ts'
import { holdersRoute } from '../tokens/holders.ts'
import { tokensRoute } from '../tokens.ts'
import { feesRoute } from './fees.ts'
import { governanceSummaryRoute } from './governance/summary.ts'
import { ratingsRoute } from './ratings.ts'
import { historicTelegramRoute } from './socials/historic-telegram.ts'
import { socialsRoute } from './socials.ts'
import { treasuryRoute } from './treasury.ts'
import { twitterSentimentRoute } from './twitter-sentiment.ts'

const ofToken = { of: ({ token }: Dao) => token ?? undefined, nobody: 'it has no token' }

export const daoProfileRoute = defineProfile({
  operation: 'getDaoProfile',
  path: '/data/daos/profile',
  tag: 'DAOs',
  summary: 'All records of one DAO',
  kind: daoKind,
  schema: 'DaoProfile',
  sections: [
    { name: 'dao', route: daosRoute, datasets: [], otherwise: 'it is not live' },
    { name: 'token', route: tokensRoute, ...ofToken, datasets: [tokenPrices] },
    { name: 'holders', route: holdersRoute, ...ofToken, datasets: [tokenHolders] },
    { name: 'dex', route: dexDataRoute, ...ofToken, datasets: [dexTrades] },
    { name: 'treasury', route: treasuryRoute, datasets: [daoTreasury] },
    { name: 'fees', route: feesRoute, datasets: [daoFees] },
    { name: 'governance', route: governanceSummaryRoute, datasets: [governance] },
    { name: 'ratings', route: ratingsRoute, datasets: [daoRatings] },
    { name: 'socials', route: socialsRoute, datasets: [twitterCounts, discordMembers] },
    {
      name: 'telegram',
      route: historicTelegramRoute,
      query: (id) => ({ id, limit: '1' }),
      datasets: [telegramMembers],
    },
    { name: 'twitterSentiment', route: twitterSentimentRoute, datasets: [twitterSentiment] },
  ],
})
