import { z } from 'zod'
import { daoLinks } from '../../../shared/datasets/daos.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { twitterSentiment } from '../../../shared/datasets/twitter-sentiment.ts'
import { DAO_ORDER, DAO_PLACE, LISTED_DAOS, selectedDaos } from '../../lists/daos.ts'
import { SHARE_TYPES, SHARES, shareValues } from '../../lists/sentiment-shares.ts'
import { page } from '../../parameters/kinds.ts'
import { answerRecords } from '../../records/answer.ts'
import { defineRoute } from '../../route/define.ts'
import { daoKind, manyOfKind, selectMany } from '../../route/entities.ts'
import { idValue, timeValue } from '../../route/values.ts'

const sentimentRecord = z.strictObject({
  _id: idValue,
  name: z.string(),
  twitterSentiment: z.strictObject({ ...shareValues, lastUpdated: timeValue }),
})

const RECORD = `Tuple(_id String, name String,
  twitterSentiment Tuple(${SHARE_TYPES}, lastUpdated DateTime64(3, 'UTC')))`

const toSql = (after: string) => `
SELECT s.observed_at AS as_of, ${DAO_PLACE} AS page_key,
  CAST(tuple(d.id, d.name, tuple(s.positive, s.neutral, s.negative, s.observed_at)), $record$${RECORD}$record$) AS record
FROM ${LISTED_DAOS}
INNER JOIN
(
  SELECT dao, observed_at, tuple(${SHARES}) AS shares, shares.1 AS positive, shares.2 AS neutral, shares.3 AS negative
  FROM twitter_sentiment_latest FINAL
) AS s ON s.dao = d.key
WHERE ${selectedDaos(after)}
ORDER BY ${DAO_ORDER}
LIMIT {limit: UInt32}`

export const twitterSentimentRoute = defineRoute({
  path: '/data/daos/twitter-sentiment',
  tag: 'DAOs',
  summary: 'The mood of recent posts about DAOs on Twitter',
  description:
    'For all live DAOs with posts, or those that `id` and `name` select: the shares of positive, neutral and negative ones in a sample of recent English posts, which sum to 1. Ordered as /data/daos.',
  query: { ...manyOfKind(daoKind), ...page('DAOs', { default: 10, max: 500 }) },
  record: sentimentRecord,
  datasets: [twitterSentiment, daoLinks, tokenPrices],
  handle: (call) => {
    const { query, registry } = call
    const selection = selectMany(daoKind, registry, query)
    return answerRecords(call, {
      name: 'twitter-sentiment',
      sql: toSql(call.wanted.after),
      params: selection,
      page: query.limit,
    })
  },
})
