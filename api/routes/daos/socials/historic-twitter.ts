import { twitterSeries } from '../../../../shared/datasets/twitter.ts'
import { serveSeries } from '../../../series/daily.ts'

export const historicTwitterRoute = serveSeries(twitterSeries, {
  operation: 'getDaoTwitterHistory',
  path: '/data/daos/socials/historic-twitter',
  summary: "Followers, followed accounts and posts of a DAO's Twitter account over time",
  description: 'One point per day, newest first; a day without a count is absent. `limit` is in points.',
})
