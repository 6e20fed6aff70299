import { twitterSentimentSeries } from '../../../../shared/datasets/twitter-sentiment.ts'
import { serveSeries } from '../../../series/daily.ts'

export const historicTwitterSentimentRoute = serveSeries(twitterSentimentSeries, {
  operation: 'getDaoTwitterSentimentHistory',
  path: '/data/daos/socials/historic-twitter-sentiment',
  aliases: ['/data/daos/twitter-sentiment/historic', '/data/daos/historic-twitter-sentiment'],
  summary: 'The mood of posts about a DAO on Twitter over time',
  description:
    'One point per day, newest first: the shares of positive, neutral and negative posts in a sample of that day, which sum to 1. Sizes of the samples and versions of the model: /data/daos/twitter-sentiment/samples. Compare points of the same version only. A day without posts is absent. `limit` is in points.',
})
