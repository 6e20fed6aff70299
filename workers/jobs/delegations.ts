import { delegations } from '../../shared/datasets/delegations.ts'
import { defineJob } from '../job/define-job.ts'
import { ethereum } from '../providers/evm/delegations.ts'

/**
 * Delegations and delegated power of the token that a live DAO's governors count. Each run continues from the blocks of
 * the last one; the first runs read the whole history.
 */
export default defineJob({
  name: 'delegations',
  cadence: '1h',
  dataset: delegations,
  providers: [ethereum],
  entities: delegations.entities,
  run: ({ provider, ...request }) => provider.fetchNew(request),
})
