import { z } from 'zod'
import { idValue, timeValue } from '../record-values.ts'
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
  title: 'Ratings',
  cadence: '1d',
  table: 'dao_ratings',
  row: daoRatingRow,
  entities: ({ daos }) => daos.filter(({ live }) => live),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  series: { table: 'dao_ratings', entity: 'dao', time: 'observed_at', source: 'source' },
})

const scoreOf = (of: string) => z.number().min(0).max(100).describe(`Score of ${of}, from 0 to 100.`)

const fundamentals = z.strictObject({
  governance: scoreOf('how it is governed'),
  team: scoreOf('the team'),
  competitiveMoat: scoreOf('what keeps competitors away'),
  valueProposition: scoreOf('what it offers'),
  tokenEconomics: scoreOf('the economics of its token'),
})

/** A rating of a DAO. */
export const ratingRecord = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    ratings: z
      .strictObject({
        overallRating: scoreOf('everything together'),
        fundamentalRating: scoreOf('the fundamentals together'),
        fundamentals: fundamentals.describe('The fundamentals one by one.'),
        lastUpdated: timeValue.describe('When the rating was made.'),
      })
      .describe('The newest rating.'),
  })
  .meta({ id: 'DaoRating', description: 'A rating of a DAO, as imported by the operator of this service.' })
