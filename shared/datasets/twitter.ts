import { z } from 'zod'
import { countOrNull, idValue, timeValue } from '../record-values.ts'
import { defineDataset, STORED_PROVIDER } from './define-dataset.ts'
import { defineSeries } from './define-series.ts'
import { MOST_PEOPLE } from './members.ts'

/** More than any account has posted. */
const MOST_POSTS = 1e9

const peopleOrNull = z.int().nonnegative().max(MOST_PEOPLE).nullable()

/** The counts of a DAO's account on X on a day. Unknown is null; a row with only unknown counts is rejected. */
export const twitterCountsRow = z
  .strictObject({
    dao: z.int().nonnegative(),
    observed_at: z.iso.datetime(),
    followers: peopleOrNull,
    following: peopleOrNull,
    tweets: z.int().nonnegative().max(MOST_POSTS).nullable(),
  })
  .refine(({ followers, following, tweets }) => (followers ?? following ?? tweets) !== null, 'no count')

export type TwitterCountsRow = z.infer<typeof twitterCountsRow>

/** The state name of the account ids by DAO key. A DAO record's `twitterid` comes from here if the files have none. */
export const ACCOUNT_IDS = 'account ids'

/** The format of these ids, stored as JSON. */
export const accountIds = z.record(z.string(), z.string())

/** Twitter counts: a row per DAO and day. */
export const twitterCounts = defineDataset({
  name: 'twitter',
  title: 'Twitter followers',
  cadence: '1d',
  table: 'twitter_counts',
  row: twitterCountsRow,
  dispensable: ['followers', 'following', 'tweets'],
  entities: ({ daos }) => daos.filter(({ live, twitter }) => live && twitter !== null),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  isAttributed: true,
  series: { table: 'twitter_counts', entity: 'dao', time: 'observed_at', provider: STORED_PROVIDER },
})

/** Counts of accounts by day. */
export const twitterSeries = defineSeries(twitterCounts, {
  about: 'dao',
  record: z
    .strictObject({
      lastUpdated: timeValue.describe('The first moment of the day, in UTC.'),
      _id: idValue.describe('Id of the point.'),
      dao: idValue.describe('Id of the DAO.'),
      followers: countOrNull.describe('Accounts that follow it; null if unknown.'),
      following: countOrNull.describe('Accounts that it follows; null if unknown.'),
      tweets: countOrNull.describe('Posts so far; null if unknown.'),
    })
    .meta({ id: 'TwitterPoint', description: "A DAO's account on Twitter on one day." }),
  values: { followers: 'followers', following: 'following', tweets: 'tweets' },
})
