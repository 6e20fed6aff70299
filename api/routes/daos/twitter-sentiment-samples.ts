import { twitterSampleSeries } from '../../../shared/datasets/twitter-sentiment.ts'
import { serveSeries } from '../../series/daily.ts'

export const twitterSentimentSamplesRoute = serveSeries(twitterSampleSeries, {
  operation: 'getDaoTwitterSentimentSamples',
  path: '/data/daos/twitter-sentiment/samples',
  summary: 'The samples behind the mood of posts about a DAO on Twitter',
  description:
    'One point per day, newest first, at the days of /data/daos/socials/historic-twitter-sentiment: the size of the sample, and the version of the model that classified it. With `interval=7d`, the sample of the first day of the week. A day without posts is absent. `limit` is in points.',
})
