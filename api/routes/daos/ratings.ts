import { z } from 'zod'
import { daoRatings } from '../../../shared/datasets/ratings.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { DAO_ORDER, DAO_PLACE, LISTED_DAOS, selectedDaos } from '../../lists/daos.ts'
import { page } from '../../parameters/kinds.ts'
import { answerRecords } from '../../records/answer.ts'
import { defineRoute } from '../../route/define.ts'
import { daoKind, manyOfKind, selectMany } from '../../route/entities.ts'
import { idValue, timeValue } from '../../route/values.ts'

const score = z.number().min(0).max(100)

const ratingsRecord = z.strictObject({
  _id: idValue,
  name: z.string(),
  ratings: z.strictObject({
    overallRating: score,
    fundamentalRating: score,
    fundamentals: z.strictObject({
      governance: score,
      team: score,
      competitiveMoat: score,
      valueProposition: score,
      tokenEconomics: score,
    }),
    lastUpdated: timeValue,
  }),
})

const RECORD = `Tuple(_id String, name String, ratings Tuple(overallRating Float64, fundamentalRating Float64,
  fundamentals Tuple(governance Float64, team Float64, competitiveMoat Float64, valueProposition Float64,
    tokenEconomics Float64), lastUpdated DateTime64(3, 'UTC')))`

// A row that is bad today does not take back yesterday's rating; one that left the file for a week does.
const toSql = (after: string) => `
SELECT r.observed_at AS as_of, ${DAO_PLACE} AS page_key,
  CAST(tuple(d.id, d.name, tuple(r.overall_rating, r.fundamental_rating, tuple(r.governance, r.team, r.competitive_moat,
    r.value_proposition, r.token_economics), r.rated_at)), $record$${RECORD}$record$) AS record
FROM ${LISTED_DAOS}
INNER JOIN
(
  SELECT * FROM dao_ratings_latest FINAL
  WHERE observed_at > (SELECT max(observed_at) FROM dao_ratings_latest) - INTERVAL 7 DAY
) AS r ON r.dao = d.key
WHERE ${selectedDaos(after)}
ORDER BY ${DAO_ORDER}
LIMIT {limit: UInt32}`

export const ratingsRoute = defineRoute({
  path: '/data/daos/ratings',
  tag: 'DAOs',
  summary: 'Ratings of DAOs',
  description:
    "For all live DAOs with a rating, or those that `id` and `name` select: scores from 0 to 100 as the operator of this service was given them by whoever made them; `lastUpdated` is when the rating was made. A DAO without a rating is not listed, and one that the ratings no longer have is listed for another week. Exact name matches come first, then by the token's market cap, largest first, then by name.",
  query: { ...manyOfKind(daoKind), ...page('DAOs', { default: 10, max: 500 }) },
  record: ratingsRecord,
  datasets: [daoRatings, tokenPrices],
  handle: (call) => {
    const { query, registry } = call
    const selection = selectMany(daoKind, registry, query)
    return answerRecords(call, {
      name: 'dao-ratings',
      sql: toSql(call.wanted.after),
      params: selection,
      page: query.limit,
    })
  },
})
