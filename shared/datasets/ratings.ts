import { z } from 'zod'
import { defineDataset } from './define-dataset.ts'

const score = z.number('must be a number').min(0, 'must be at least 0').max(100, 'must be at most 100')

/**
 * An imported rating of a DAO: scores from 0 to 100. `rated_at` is the time of the rating, `source` its author,
 * `observed_at` the day of the import.
 */
export const daoRatingRow = z.strictObject({
  dao: z.number().int().nonnegative(),
  observed_at: z.iso.datetime(),
  rated_at: z.iso.datetime('must be an ISO date or date-time'),
  overall_rating: score,
  fundamental_rating: score,
  governance: score,
  team: score,
  competitive_moat: score,
  value_proposition: score,
  token_economics: score,
  source: z.string(),
  report_url: z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).nullable(),
})

export type DaoRatingRow = z.infer<typeof daoRatingRow>

/** DAO ratings: a row per DAO and import. */
export const daoRatings = defineDataset({
  name: 'ratings',
  cadence: '1d',
  table: 'dao_ratings',
  row: daoRatingRow,
  entities: ({ daos }) => daos.filter(({ live }) => live),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  series: { table: 'dao_ratings', entity: 'dao', time: 'observed_at', source: 'source' },
})
