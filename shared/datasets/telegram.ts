import { defineDataset } from './define-dataset.ts'
import { membersRow } from './members.ts'

/** Members of DAOs' communities on Telegram: a row per DAO and day. */
export const telegramMembers = defineDataset({
  name: 'telegram',
  cadence: '1d',
  table: 'telegram_members',
  row: membersRow,
  dispensable: ['active_members', 'total_members'],
  entities: ({ daos }) => daos.filter((dao) => dao.live && dao.telegram !== null),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  series: { table: 'telegram_members', entity: 'dao', time: 'observed_at' },
})
