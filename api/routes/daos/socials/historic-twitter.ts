import { z } from 'zod'
import { twitterCounts } from '../../../../shared/datasets/twitter.ts'
import { idValue, numberOrNull, timeValue } from '../../../route/values.ts'
import { defineDailySeries } from '../../../series/daily.ts'

export const historicTwitterRoute = defineDailySeries({
  path: '/data/daos/socials/historic-twitter',
  summary: "Followers, followed accounts and posts of a DAO's Twitter account over time",
  description: 'One point per day, newest first; a day without a count is absent. `limit` is in points.',
  dataset: twitterCounts,
  time: 'lastUpdated',
  members: {
    types: 'followers Nullable(UInt64), following Nullable(UInt64), tweets Nullable(UInt64)',
    values: 'followers, following, tweets',
  },
  point: z.strictObject({
    lastUpdated: timeValue,
    _id: idValue,
    dao: idValue,
    followers: numberOrNull,
    following: numberOrNull,
    tweets: numberOrNull,
  }),
})
