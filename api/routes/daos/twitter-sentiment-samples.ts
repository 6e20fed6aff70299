import { z } from 'zod'
import { twitterSentiment } from '../../../shared/datasets/twitter-sentiment.ts'
import { idValue, timeValue } from '../../../shared/record-values.ts'
import { defineDailySeries } from '../../series/daily.ts'

/** The values of a row in the order of the point's members. */
export const SAMPLE = 'positive_posts + neutral_posts + negative_posts AS posts, unknown_posts, model'

export const twitterSentimentSamplesRoute = defineDailySeries({
  operation: 'getDaoTwitterSentimentSamples',
  path: '/data/daos/twitter-sentiment/samples',
  summary: 'The samples behind the mood of posts about a DAO on Twitter',
  description:
    'One point per day, newest first, at the days of /data/daos/socials/historic-twitter-sentiment: the size of the sample, and the version of the model that classified it. With `interval=7d`, the sample of the first day of the week. A day without posts is absent. `limit` is in points.',
  dataset: twitterSentiment,
  point: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      _id: idValue.describe('Id of the point: that of the shares of the same day.'),
      dao: idValue.describe('Id of the DAO.'),
      posts: z.int().describe('Number of classified posts.'),
      unknownPosts: z
        .int()
        .nullable()
        .describe('Number of posts without a known word, which count as neutral; null if they were not counted.'),
      model: z
        .string()
        .describe('Version of the model that classified the posts. Values of different versions are not comparable.'),
    })
    .meta({ id: 'TwitterSentimentSample', description: 'The sample behind the mood of one day.' }),
  values: SAMPLE,
})
