import { z } from 'zod'
import { twitterCounts } from '../../../../shared/datasets/twitter.ts'
import { countOrNull, idValue, timeValue } from '../../../records/values.ts'
import { defineDailySeries } from '../../../series/daily.ts'

export const historicTwitterRoute = defineDailySeries({
  path: '/data/daos/socials/historic-twitter',
  summary: "Followers, followed accounts and posts of a DAO's Twitter account over time",
  description: 'One point per day, newest first; a day without a count is absent. `limit` is in points.',
  dataset: twitterCounts,
  point: z.strictObject({
    lastUpdated: timeValue,
    _id: idValue,
    dao: idValue,
    followers: countOrNull,
    following: countOrNull,
    tweets: countOrNull,
  }),
  values: 'followers, following, tweets',
})
