import { discordSeries } from '../../../../shared/datasets/discord.ts'
import { serveSeries } from '../../../series/daily.ts'

export const historicDiscordRoute = serveSeries(discordSeries, {
  operation: 'getDaoDiscordHistory',
  path: '/data/daos/socials/historic-discord',
  summary: "Members of a DAO's community on Discord over time",
  description:
    'One point per day, newest first; a day without a count is absent. `activeMembers` are those online. `limit` is in points.',
})
