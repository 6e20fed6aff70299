import { z } from 'zod'
import { defineDataset } from './define-dataset.ts'

const countOrNull = z.int().nonnegative().nullable()

/** What a DAO's account on X counts on a day. Unknown is null; a row in which all is unknown is rejected. */
export const twitterCountsRow = z
  .strictObject({
    dao: z.int().nonnegative(),
    observed_at: z.iso.datetime(),
    followers: countOrNull,
    following: countOrNull,
    tweets: countOrNull,
  })
  .refine(({ followers, following, tweets }) => (followers ?? following ?? tweets) !== null, 'no count')

export type TwitterCountsRow = z.infer<typeof twitterCountsRow>

/** The name under which the job remembers the accounts' ids by the DAOs' keys: a record's `twitterid` where the files have none. */
export const ACCOUNT_IDS = 'account ids'

/** The form of these ids, stored as JSON. */
export const accountIds = z.record(z.string(), z.string())

/** Twitter counts: a row per DAO and day. */
export const twitterCounts = defineDataset({
  name: 'twitter',
  cadence: '1d',
  table: 'twitter_counts',
  row: twitterCountsRow,
  entities: ({ daos }) => daos.filter(({ live, twitter }) => live && twitter !== null),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  series: { table: 'twitter_counts', entity: 'dao', time: 'observed_at' },
})
