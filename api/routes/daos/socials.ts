import { z } from 'zod'
import { daoLinks } from '../../../shared/datasets/daos.ts'
import { discordMembers } from '../../../shared/datasets/discord.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { twitterCounts } from '../../../shared/datasets/twitter.ts'
import { DAO_ORDER, DAO_PLACE, LISTED_DAOS, selectedDaos } from '../../lists/daos.ts'
import { page } from '../../parameters/kinds.ts'
import { answerRecords } from '../../records/answer.ts'
import { defineRoute } from '../../route/define.ts'
import { daoKind, manyOfKind, selectMany } from '../../route/entities.ts'
import { idValue, numberOrNull, timeValue } from '../../route/values.ts'

const socialRecord = z.strictObject({
  _id: idValue,
  name: z.string(),
  discordData: z.strictObject({
    activeMembers: numberOrNull,
    totalMembers: numberOrNull,
    lastUpdated: timeValue.nullable(),
  }),
  twitterData: z.strictObject({
    followers: numberOrNull,
    following: numberOrNull,
    tweets: numberOrNull,
    percentChange24h: numberOrNull,
    percentChange7d: numberOrNull,
    percentChange30d: numberOrNull,
    lastUpdated: timeValue.nullable(),
  }),
})

const TIME = "Nullable(DateTime64(3, 'UTC'))"
const RECORD = `Tuple(_id String, name String,
  discordData Tuple(activeMembers Nullable(UInt64), totalMembers Nullable(UInt64), lastUpdated ${TIME}),
  twitterData Tuple(followers Nullable(UInt64), following Nullable(UInt64), tweets Nullable(UInt64),
    percentChange24h Nullable(Float64), percentChange7d Nullable(Float64), percentChange30d Nullable(Float64),
    lastUpdated ${TIME}))`

/** Followers of the newest day against those of exactly so many days before: no other day stands in. */
const change = (days: number) => {
  const before = `maxIf(past.followers, past.observed_at = newest.observed_at - INTERVAL ${days} DAY)`
  return `100 * (newest.followers - ${before}) / nullIf(${before}, 0)`
}

// A network without data joins as nulls. There is at most one row of a DAO and day, so "max" only picks it.
const toSql = (after: string) => `
SELECT assumeNotNull(arrayMax(arrayFilter(at -> isNotNull(at), [x.at, g.at]))) AS as_of, ${DAO_PLACE} AS page_key,
  CAST(tuple(d.id, d.name, tuple(g.active_members, g.total_members, g.at),
    tuple(x.follower_count, x.following_count, x.tweet_count, x.change_1, x.change_7, x.change_30, x.at)), $record$${RECORD}$record$) AS record
FROM ${LISTED_DAOS}
LEFT JOIN
(
  SELECT newest.dao AS dao, toNullable(newest.observed_at) AS at, newest.followers AS follower_count,
    newest.following AS following_count, newest.tweets AS tweet_count,
    ${change(1)} AS change_1, ${change(7)} AS change_7, ${change(30)} AS change_30
  FROM (SELECT * FROM twitter_counts_latest FINAL) AS newest
  LEFT JOIN
  (
    SELECT dao, observed_at, followers FROM twitter_counts FINAL
    WHERE (dao, observed_at) IN (SELECT dao, observed_at - INTERVAL arrayJoin([1, 7, 30]) DAY FROM twitter_counts_latest)
  ) AS past ON past.dao = newest.dao
  GROUP BY newest.dao, newest.observed_at, newest.followers, newest.following, newest.tweets
) AS x ON x.dao = d.key
LEFT JOIN
(
  SELECT dao, toNullable(observed_at) AS at, active_members, total_members FROM discord_members_latest FINAL
) AS g ON g.dao = d.key
WHERE ${selectedDaos(after)} AND (isNotNull(x.at) OR isNotNull(g.at))
ORDER BY ${DAO_ORDER}
LIMIT {limit: UInt32}`

export const socialsRoute = defineRoute({
  path: '/data/daos/socials',
  tag: 'DAOs',
  summary: "DAOs' communities on Discord and Twitter",
  description:
    'For all live DAOs with data of either network, or those that `id` and `name` select. A network without data is all null; each has its own `lastUpdated`. Percent changes compare the followers of the newest day with those of exactly 1, 7 and 30 days before, null where that day has none. Ordered as /data/daos.',
  query: { ...manyOfKind(daoKind), ...page('DAOs', { default: 10, max: 500 }) },
  record: socialRecord,
  datasets: [twitterCounts, discordMembers, daoLinks, tokenPrices],
  handle: (call) => {
    const { query, registry } = call
    const selection = selectMany(daoKind, registry, query)
    return answerRecords(call, { name: 'socials', sql: toSql(call.wanted.after), params: selection, page: query.limit })
  },
})
