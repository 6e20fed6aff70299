import { defineDataset } from './define-dataset.ts'
import { membersRow } from './members.ts'

/** Members of DAOs' communities on Discord: a row per DAO and day. */
export const discordMembers = defineDataset({
  name: 'discord',
  cadence: '1d',
  table: 'discord_members',
  row: membersRow,
  dispensable: ['active_members', 'total_members'],
  entities: ({ daos }) => daos.filter((dao) => dao.live && dao.discord !== null),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  series: { table: 'discord_members', entity: 'dao', time: 'observed_at' },
})
