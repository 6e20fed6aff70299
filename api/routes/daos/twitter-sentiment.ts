import { z } from 'zod'
import { daoLinks } from '../../../shared/datasets/daos.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { twitterSentiment } from '../../../shared/datasets/twitter-sentiment.ts'
import { defineList, listedDaos } from '../../lists/list.ts'
import { lastKnown } from '../../lists/past-quotes.ts'
import { SHARES, shareValues } from '../../lists/sentiment-shares.ts'
import { idValue, timeValue } from '../../records/values.ts'

const sentimentRecord = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    twitterSentiment: z
      .strictObject({ ...shareValues, lastUpdated: timeValue.describe('When the posts were read.') })
      .describe('Shares of the posts in a sample, which sum to 1.'),
  })
  .meta({ id: 'TwitterSentiment', description: 'The mood of recent posts about a DAO.' })

const toSentiment = (rows: string) => `INNER JOIN
(
  SELECT dao, observed_at, tuple(${SHARES}) AS shares, shares.1 AS positive, shares.2 AS neutral, shares.3 AS negative
  FROM ${rows}
) AS s ON s.dao = d.key`

export const twitterSentimentRoute = defineList({
  operation: 'listDaoTwitterSentiment',
  path: '/data/daos/twitter-sentiment',
  summary: 'The mood of recent posts about DAOs on Twitter',
  description:
    'For all live DAOs with posts, or those that `id` and `name` select: the shares of positive, neutral and negative ones in a sample of recent English posts, which sum to 1. Ordered as /data/daos.',
  of: listedDaos,
  record: sentimentRecord,
  datasets: [twitterSentiment, daoLinks, tokenPrices],
  name: 'twitter-sentiment',
  asOf: 's.observed_at',
  values: 'd.id, d.name, tuple(s.positive, s.neutral, s.negative, s.observed_at)',
  joins: toSentiment('twitter_sentiment_latest FINAL'),
  pastJoins: toSentiment(lastKnown(twitterSentiment)),
})
