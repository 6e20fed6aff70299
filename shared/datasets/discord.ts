import { z } from 'zod'
import { countOrNull, idValue, timeValue } from '../record-values.ts'
import { defineDataset, STORED_PROVIDER } from './define-dataset.ts'
import { defineSeries } from './define-series.ts'
import { membersRow } from './members.ts'

/** Members of DAOs' communities on Discord: a row per DAO and day. */
export const discordMembers = defineDataset({
  name: 'discord',
  title: 'Discord members',
  cadence: '1d',
  table: 'discord_members',
  row: membersRow,
  dispensable: ['active_members', 'total_members'],
  entities: ({ daos }) => daos.filter((dao) => dao.live && dao.discord !== null),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  isAttributed: true,
  series: { table: 'discord_members', entity: 'dao', time: 'observed_at', provider: STORED_PROVIDER },
})

/** Members of communities on Discord by day. */
export const discordSeries = defineSeries(discordMembers, {
  about: 'dao',
  record: z
    .strictObject({
      lastUpdated: timeValue.describe('The first moment of the day, in UTC.'),
      _id: idValue.describe('Id of the point.'),
      dao: idValue.describe('Id of the DAO.'),
      activeMembers: countOrNull.describe('Members online when they were counted; null if unknown.'),
      totalMembers: countOrNull.describe('All members; null if unknown.'),
    })
    .meta({ id: 'DiscordPoint', description: "A DAO's community on Discord on one day." }),
  values: { active_members: 'active_members', total_members: 'total_members' },
})
