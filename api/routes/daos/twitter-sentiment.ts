import { z } from 'zod'
import { daoLinks } from '../../../shared/datasets/daos.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { MOOD_SHARES, moodShares, twitterSentiment } from '../../../shared/datasets/twitter-sentiment.ts'
import { idValue, timeValue } from '../../../shared/record-values.ts'
import { defineList, lastCurrentRows, listedDaos } from '../../lists/lists.ts'

const sentimentRecord = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    twitterSentiment: z
      .strictObject({ ...moodShares, lastUpdated: timeValue.describe('When the posts were read.') })
      .describe('Shares of the moods in a sample of posts, which sum to 1.'),
  })
  .meta({ id: 'TwitterSentiment', description: 'The mood of recent posts about a DAO.' })

const toSentiment = (rows: string) => `INNER JOIN
(
  SELECT dao, observed_at, ${MOOD_SHARES.positive} AS positive, ${MOOD_SHARES.neutral} AS neutral,
    ${MOOD_SHARES.negative} AS negative
  FROM ${rows}
) AS s ON s.dao = d.key`

export const twitterSentimentRoute = defineList({
  operation: 'listDaoTwitterSentiment',
  path: '/data/daos/twitter-sentiment',
  summary: 'The mood of recent posts about DAOs on Twitter',
  description:
    'For all live DAOs with posts, or those that `id` and `name` select: the shares of positive, neutral and negative posts in a sample of recent ones in English, Arabic, French, German, Hindi, Italian, Portuguese and Spanish, which sum to 1: the means of the probabilities of the model for each post. The model classifies about two thirds of English posts correctly, and fewer in other languages: compare a DAO with itself over time. The size of the sample and the version of the model: /data/daos/twitter-sentiment/samples. Ordered as /data/daos.',
  of: listedDaos,
  record: sentimentRecord,
  datasets: [twitterSentiment, daoLinks, tokenPrices],
  name: 'twitter-sentiment',
  asOf: 's.observed_at',
  values: 'd.id, d.name, tuple(s.positive, s.neutral, s.negative, s.observed_at)',
  joins: toSentiment('twitter_sentiment_latest FINAL'),
  pastJoins: toSentiment(lastCurrentRows(twitterSentiment)),
})
