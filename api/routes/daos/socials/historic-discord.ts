import { z } from 'zod'
import { discordMembers } from '../../../../shared/datasets/discord.ts'
import { idValue, numberOrNull, timeValue } from '../../../route/values.ts'
import { defineDailySeries } from '../../../series/daily.ts'

export const historicDiscordRoute = defineDailySeries({
  path: '/data/daos/socials/historic-discord',
  summary: "Members of a DAO's community on Discord over time",
  description:
    'One point per day, newest first; a day without a count is absent. `activeMembers` are those online. `limit` is in points.',
  dataset: discordMembers,
  time: 'lastUpdated',
  members: {
    types: 'activeMembers Nullable(UInt64), totalMembers Nullable(UInt64)',
    values: 'active_members, total_members',
  },
  point: z.strictObject({
    lastUpdated: timeValue,
    _id: idValue,
    dao: idValue,
    activeMembers: numberOrNull,
    totalMembers: numberOrNull,
  }),
})
