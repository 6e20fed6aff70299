import type { Job } from './define.ts'
import daos from './jobs/daos.ts'
import dexTrades from './jobs/dex-trades.ts'
import discord from './jobs/discord.ts'
import governance from './jobs/governance.ts'
import holders from './jobs/holders.ts'
import index from './jobs/index-points.ts'
import indexToken from './jobs/index-token.ts'
import marketCap from './jobs/market-cap.ts'
import prices from './jobs/prices.ts'
import ratings from './jobs/ratings.ts'
import telegram from './jobs/telegram.ts'
import treasury from './jobs/treasury.ts'
import treasuryValue from './jobs/treasury-value.ts'
import tvl from './jobs/tvl.ts'
import twitter from './jobs/twitter.ts'
import twitterSentiment from './jobs/twitter-sentiment.ts'

/** Every job there is. A new dataset adds its file in `jobs/` and a line here. */
export const jobs: readonly Job[] = [
  prices,
  tvl,
  holders,
  dexTrades,
  marketCap,
  governance,
  treasury,
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
