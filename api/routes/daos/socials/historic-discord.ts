import { z } from 'zod'
import { discordMembers } from '../../../../shared/datasets/discord.ts'
import { countOrNull, idValue, timeValue } from '../../../../shared/record-values.ts'
import { defineDailySeries } from '../../../series/daily.ts'

export const historicDiscordRoute = defineDailySeries({
  operation: 'getDaoDiscordHistory',
  path: '/data/daos/socials/historic-discord',
  summary: "Members of a DAO's community on Discord over time",
  description:
    'One point per day, newest first; a day without a count is absent. `activeMembers` are those online. `limit` is in points.',
  dataset: discordMembers,
  point: z
    .strictObject({
      lastUpdated: timeValue.describe('The first moment of the day, in UTC.'),
      _id: idValue.describe('Id of the point.'),
      dao: idValue.describe('Id of the DAO.'),
      activeMembers: countOrNull.describe('Members online when they were counted; null if unknown.'),
      totalMembers: countOrNull.describe('All members; null if unknown.'),
    })
    .meta({ id: 'DiscordPoint', description: "A DAO's community on Discord on one day." }),
  values: 'active_members, total_members',
})
