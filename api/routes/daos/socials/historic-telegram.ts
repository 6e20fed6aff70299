import { z } from 'zod'
import { telegramMembers } from '../../../../shared/datasets/telegram.ts'
import { countOrNull, idValue, timeValue } from '../../../../shared/record-values.ts'
import { defineDailySeries } from '../../../series/daily.ts'

export const historicTelegramRoute = defineDailySeries({
  operation: 'getDaoTelegramHistory',
  path: '/data/daos/socials/historic-telegram',
  summary: "Members of a DAO's community on Telegram over time",
  description:
    'One point per day, newest first; a day without a count is absent. `activeMembers` are those online, null for channels. `limit` is in points.',
  dataset: telegramMembers,
  point: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      _id: idValue.describe('Id of the point.'),
      dao: idValue.describe('Id of the DAO.'),
      activeMembers: countOrNull.describe(
        'Members online when they were counted; null for channels, and where unknown.',
      ),
      totalMembers: countOrNull.describe('All members; null if unknown.'),
    })
    .meta({ id: 'TelegramPoint', description: "A DAO's community on Telegram on one day." }),
  values: 'active_members, total_members',
})
