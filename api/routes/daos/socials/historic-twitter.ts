import { z } from 'zod'
import { twitterCounts } from '../../../../shared/datasets/twitter.ts'
import { countOrNull, idValue, timeValue } from '../../../../shared/record-values.ts'
import { defineDailySeries } from '../../../series/daily.ts'

export const historicTwitterRoute = defineDailySeries({
  operation: 'getDaoTwitterHistory',
  path: '/data/daos/socials/historic-twitter',
  summary: "Followers, followed accounts and posts of a DAO's Twitter account over time",
  description: 'One point per day, newest first; a day without a count is absent. `limit` is in points.',
  dataset: twitterCounts,
  point: z
    .strictObject({
      lastUpdated: timeValue.describe('The first moment of the day, in UTC.'),
      _id: idValue.describe('Id of the point.'),
      dao: idValue.describe('Id of the DAO.'),
      followers: countOrNull.describe('Accounts that follow it; null if unknown.'),
      following: countOrNull.describe('Accounts that it follows; null if unknown.'),
      tweets: countOrNull.describe('Posts so far; null if unknown.'),
    })
    .meta({ id: 'TwitterPoint', description: "A DAO's account on Twitter on one day." }),
  values: 'followers, following, tweets',
})
