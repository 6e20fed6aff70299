import { z } from 'zod'
import { telegramMembers } from '../../../../shared/datasets/telegram.ts'
import { countOrNull, idValue, timeValue } from '../../../records/values.ts'
import { defineDailySeries } from '../../../series/daily.ts'

export const historicTelegramRoute = defineDailySeries({
  path: '/data/daos/socials/historic-telegram',
  summary: "Members of a DAO's community on Telegram over time",
  description:
    'One point per day, newest first; a day without a count is absent. `activeMembers` are those online, null for channels. `limit` is in points.',
  dataset: telegramMembers,
  point: z.strictObject({
    recordedAt: timeValue,
    _id: idValue,
    dao: idValue,
    activeMembers: countOrNull,
    totalMembers: countOrNull,
  }),
  values: 'active_members, total_members',
})
