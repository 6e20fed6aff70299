import { z } from 'zod'
import { discordMembers } from '../../../../shared/datasets/discord.ts'
import { countOrNull, idValue, timeValue } from '../../../records/values.ts'
import { defineDailySeries } from '../../../series/daily.ts'

export const historicDiscordRoute = defineDailySeries({
  path: '/data/daos/socials/historic-discord',
  summary: "Members of a DAO's community on Discord over time",
  description:
    'One point per day, newest first; a day without a count is absent. `activeMembers` are those online. `limit` is in points.',
  dataset: discordMembers,
  point: z.strictObject({
    lastUpdated: timeValue,
    _id: idValue,
    dao: idValue,
    activeMembers: countOrNull,
    totalMembers: countOrNull,
  }),
  values: 'active_members, total_members',
})
