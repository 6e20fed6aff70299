import { z } from 'zod'
import { twitterSentiment } from '../../../../shared/datasets/twitter-sentiment.ts'
import { idValue, timeValue } from '../../../../shared/record-values.ts'
import { defineDailySeries } from '../../../series/daily.ts'
import { SHARES, shareValues } from '../twitter-sentiment.ts'

export const historicTwitterSentimentRoute = defineDailySeries({
  operation: 'getDaoTwitterSentimentHistory',
  path: '/data/daos/socials/historic-twitter-sentiment',
  aliases: ['/data/daos/twitter-sentiment/historic', '/data/daos/historic-twitter-sentiment'],
  summary: 'The mood of posts about a DAO on Twitter over time',
  description:
    'One point per day, newest first: the shares of positive, neutral and negative posts in a sample of that day, which sum to 1. Sizes of the samples and versions of the model: /data/daos/twitter-sentiment/samples. Compare points of the same version only. A day without posts is absent. `limit` is in points.',
  dataset: twitterSentiment,
  point: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      _id: idValue.describe('Id of the point.'),
      dao: idValue.describe('Id of the DAO.'),
      sentiment: z.strictObject(shareValues).describe('Shares of the moods in a sample of posts, which sum to 1.'),
    })
    .meta({ id: 'TwitterSentimentPoint', description: 'The mood of posts about a DAO on one day.' }),
  values: `tuple(${SHARES})`,
})
