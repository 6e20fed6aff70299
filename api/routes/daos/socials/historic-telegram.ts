import { telegramSeries } from '../../../../shared/datasets/telegram.ts'
import { serveSeries } from '../../../series/daily.ts'

export const historicTelegramRoute = serveSeries(telegramSeries, {
  operation: 'getDaoTelegramHistory',
  path: '/data/daos/socials/historic-telegram',
  summary: "Members of a DAO's community on Telegram over time",
  description:
    'One point per day, newest first; a day without a count is absent. `activeMembers` are those online, null for channels. `limit` is in points.',
})
