import { z } from 'zod'
import { countOrNull, idValue, timeValue } from '../record-values.ts'
import { defineDataset, STORED_PROVIDER } from './define-dataset.ts'
import { defineSeries } from './define-series.ts'
import { membersRow } from './members.ts'

/** Members of DAOs' communities on Telegram: a row per DAO and day. */
export const telegramMembers = defineDataset({
  name: 'telegram',
  title: 'Telegram members',
  cadence: '1d',
  table: 'telegram_members',
  row: membersRow,
  dispensable: ['active_members', 'total_members'],
  entities: ({ daos }) => daos.filter((dao) => dao.live && dao.telegram !== null),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  isAttributed: true,
  series: { table: 'telegram_members', entity: 'dao', time: 'observed_at', provider: STORED_PROVIDER },
})

/** Members of communities on Telegram by day. */
export const telegramSeries = defineSeries(telegramMembers, {
  about: 'dao',
  record: z
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
  values: { active_members: 'active_members', total_members: 'total_members' },
})
