import { governors } from '../../shared/datasets/governors.ts'
import { defineJob } from '../job/define-job.ts'
import { ethereum } from '../providers/evm/governors.ts'

/**
 * Votes and proposals on the governors of every live DAO that has any. Each run continues from the blocks of the last
 * one; the first runs read the whole history.
 */
export default defineJob({
  name: 'governors',
  cadence: '1h',
  dataset: governors,
  providers: [ethereum],
  entities: governors.entities,
  run: ({ provider, ...request }) => provider.fetchNew(request),
})
