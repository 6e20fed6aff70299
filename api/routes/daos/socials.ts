import { z } from 'zod'
import { daoLinks } from '../../../shared/datasets/daos.ts'
import { discordMembers } from '../../../shared/datasets/discord.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { twitterCounts } from '../../../shared/datasets/twitter.ts'
import { countOrNull, idValue, numberOrNull, timeValue } from '../../formats/formats.ts'
import { defineList, lastCurrentRows, listedDaos } from '../../lists/lists.ts'

const followerChange = (over: string) =>
  numberOrNull.describe(`Change of \`followers\` over ${over}, in percent; null if that day has no count.`)

const lastUpdated = timeValue.nullable().describe('The day of the counts; null if there are none.')

const socialRecord = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    discordData: z
      .strictObject({
        activeMembers: countOrNull.describe('Members online when they were counted; null if unknown.'),
        totalMembers: countOrNull.describe('All members; null if unknown.'),
        lastUpdated,
      })
      .describe('Its community on Discord.'),
    twitterData: z
      .strictObject({
        followers: countOrNull.describe('Accounts that follow it; null if unknown.'),
        following: countOrNull.describe('Accounts that it follows; null if unknown.'),
        tweets: countOrNull.describe('Posts so far; null if unknown.'),
        percentChange24h: followerChange('24 hours'),
        percentChange7d: followerChange('7 days'),
        percentChange30d: followerChange('30 days'),
        lastUpdated,
      })
      .describe('Its account on Twitter.'),
  })
  .meta({ id: 'DaoSocials', description: 'The communities of a DAO.' })

/** Change of the followers between the newest day and exactly `days` days before: no other day is used instead. */
const change = (days: number) => {
  const before = `maxIf(past.followers, past.observed_at = newest.observed_at - INTERVAL ${days} DAY)`
  return `100 * (newest.followers - ${before}) / nullIf(${before}, 0)`
}

/**
 * The newest rows of both networks. A network without data joins as nulls. There is at most one row per DAO and day, so
 * "max" only picks it.
 */
const toCommunities = (twitter: string, discord: string) => `LEFT JOIN
(
  SELECT newest.dao AS dao, toNullable(newest.observed_at) AS at, newest.followers AS follower_count,
    newest.following AS following_count, newest.tweets AS tweet_count,
    ${change(1)} AS change_1, ${change(7)} AS change_7, ${change(30)} AS change_30
  FROM (SELECT * FROM ${twitter}) AS newest
  LEFT JOIN
  (
    SELECT dao, observed_at, followers FROM twitter_counts FINAL
    WHERE (dao, observed_at) IN (SELECT dao, observed_at - INTERVAL arrayJoin([1, 7, 30]) DAY FROM (SELECT * FROM ${twitter}))
  ) AS past ON past.dao = newest.dao
  GROUP BY newest.dao, newest.observed_at, newest.followers, newest.following, newest.tweets
) AS x ON x.dao = d.key
LEFT JOIN
(
  SELECT dao, toNullable(observed_at) AS at, active_members, total_members FROM (SELECT * FROM ${discord})
) AS g ON g.dao = d.key`

export const socialsRoute = defineList({
  operation: 'listDaoSocials',
  path: '/data/daos/socials',
  summary: "DAOs' communities on Discord and Twitter",
  description:
    'For all live DAOs with data of either network, or those that `id` and `name` select. A network without data is all null; each has its own `lastUpdated`. Percent changes compare the followers of the newest day with those of exactly 1, 7 and 30 days before; null if that day has no value. Ordered as /data/daos.',
  of: listedDaos,
  record: socialRecord,
  datasets: [twitterCounts, discordMembers, daoLinks, tokenPrices],
  name: 'socials',
  asOf: 'assumeNotNull(arrayMax(arrayFilter(at -> isNotNull(at), [x.at, g.at])))',
  values: `d.id, d.name, tuple(g.active_members, g.total_members, g.at),
    tuple(x.follower_count, x.following_count, x.tweet_count, x.change_1, x.change_7, x.change_30, x.at)`,
  joins: toCommunities('twitter_counts_latest FINAL', 'discord_members_latest FINAL'),
  pastJoins: toCommunities(lastCurrentRows(twitterCounts), lastCurrentRows(discordMembers)),
  where: 'isNotNull(x.at) OR isNotNull(g.at)',
})
