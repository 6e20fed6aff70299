import { daoRatings } from '../../shared/datasets/ratings.ts'
import { defineJob } from '../job/define-job.ts'
import { ratingsFile } from '../providers/ratings-file/ratings.ts'

/** Ratings of live DAOs from the operator's file, read once a day. */
export default defineJob({
  name: 'ratings',
  cadence: '1d',
  dataset: daoRatings,
  providers: [ratingsFile],
  entities: daoRatings.entities,
  run: ({ provider, entities, slot, ...run }) => provider.fetchRatings(entities, slot, run),
})
