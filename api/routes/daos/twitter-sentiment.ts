import { z } from 'zod'
import { daoLinks } from '../../../shared/datasets/daos.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { twitterSentiment } from '../../../shared/datasets/twitter-sentiment.ts'
import { defineList, listedDaos } from '../../lists/list.ts'
import { lastKnown } from '../../lists/past-quotes.ts'
import { SAMPLE, SHARES, sampleValues, shareValues } from '../../lists/sentiment-shares.ts'
import { idValue, timeValue } from '../../records/values.ts'

const sentimentRecord = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    twitterSentiment: z
      .strictObject({ ...shareValues, lastUpdated: timeValue.describe('When the posts were read.'), ...sampleValues })
      .describe('Shares of the moods in a sample of posts, which sum to 1.'),
  })
  .meta({ id: 'TwitterSentiment', description: 'The mood of recent posts about a DAO.' })

const toSentiment = (rows: string) => `INNER JOIN
(
  SELECT dao, observed_at, tuple(${SHARES}) AS shares, shares.1 AS positive, shares.2 AS neutral, shares.3 AS negative,
    ${SAMPLE}
  FROM ${rows}
) AS s ON s.dao = d.key`

export const twitterSentimentRoute = defineList({
  operation: 'listDaoTwitterSentiment',
  path: '/data/daos/twitter-sentiment',
  summary: 'The mood of recent posts about DAOs on Twitter',
  description:
    "For all live DAOs with posts, or those that `id` and `name` select: the shares of positive, neutral and negative posts in a sample of recent ones in English, Arabic, French, German, Hindi, Italian, Portuguese and Spanish, which sum to 1: the means of the probabilities that a model gives each post. The model is right about two thirds of the time in English and less often in the other languages: a share tells more about a DAO's change over time than about one post. `model` names its version; compare values of the same version only. Ordered as /data/daos.",
  of: listedDaos,
  record: sentimentRecord,
  datasets: [twitterSentiment, daoLinks, tokenPrices],
  name: 'twitter-sentiment',
  asOf: 's.observed_at',
  values: 'd.id, d.name, tuple(s.positive, s.neutral, s.negative, s.observed_at, s.posts, s.unknown_posts, s.model)',
  joins: toSentiment('twitter_sentiment_latest FINAL'),
  pastJoins: toSentiment(lastKnown(twitterSentiment)),
})
