import type { Job } from '../job/define-job.ts'
import daos from './daos.ts'
import delegations from './delegations.ts'
import dexTrades from './dex-trades.ts'
import discord from './discord.ts'
import fees from './fees.ts'
import governance from './governance.ts'
import governors from './governors.ts'
import holders from './holders.ts'
import index from './index-points.ts'
import indexToken from './index-token.ts'
import marketCap from './market-cap.ts'
import prices from './prices.ts'
import ratings from './ratings.ts'
import telegram from './telegram.ts'
import treasury from './treasury.ts'
import treasuryFlows from './treasury-flows.ts'
import treasuryValue from './treasury-value.ts'
import tvl from './tvl.ts'
import twitter from './twitter.ts'
import twitterSentiment from './twitter-sentiment.ts'

/** All jobs. A new dataset adds its file in `jobs/` and a line here. */
export const jobs: readonly Job[] = [
  prices,
  tvl,
  holders,
  dexTrades,
  marketCap,
  governance,
  governors,
  delegations,
  treasury,
  treasuryFlows,
  fees,
  ratings,
  daos,
  treasuryValue,
  twitter,
  discord,
  telegram,
  twitterSentiment,
  index,
  indexToken,
]
