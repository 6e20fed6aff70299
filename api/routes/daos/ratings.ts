import { daoRatings, ratingRecord } from '../../../shared/datasets/ratings.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { defineList, lastCurrentRows, listedDaos } from '../../lists/lists.ts'

export const ratingsRoute = defineList({
  operation: 'listDaoRatings',
  path: '/data/daos/ratings',
  summary: 'Ratings of DAOs',
  description:
    "For all live DAOs with a rating, or those that `id` and `name` select: scores from 0 to 100 that the operator of this service imports from a rating provider; `lastUpdated` is the time of the rating. A DAO without a rating is not listed. A rating that is no longer in the import is listed for one more week. Exact name matches come first, then by the token's market cap, largest first, then by name.",
  of: listedDaos,
  record: ratingRecord,
  datasets: [daoRatings, tokenPrices],
  name: 'dao-ratings',
  asOf: 'r.observed_at',
  values: `d.id, d.name, tuple(r.overall_rating, r.fundamental_rating, tuple(r.governance, r.team, r.competitive_moat,
    r.value_proposition, r.token_economics), r.rated_at)`,
  // An invalid row today does not remove yesterday's rating; an absence of one week does.
  joins: `INNER JOIN
(
  SELECT * FROM dao_ratings_latest FINAL
  WHERE observed_at > (SELECT max(observed_at) FROM dao_ratings_latest) - INTERVAL 7 DAY
) AS r ON r.dao = d.key`,
  pastJoins: `INNER JOIN ${lastCurrentRows(daoRatings)} AS r ON r.dao = d.key`,
})
