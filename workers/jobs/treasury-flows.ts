import { treasuryFlows } from '../../shared/datasets/treasury-flows.ts'
import { defineJob } from '../job/define-job.ts'
import { toFlowDaos } from '../providers/contracts/treasury-flows.ts'
import { treasuryTransfers } from '../providers/treasury-transfers.ts'

/**
 * Transfers of the treasuries of every live DAO. Each run continues from the time of the last one. All DAOs are one job,
 * because the accounts of a chain are read from its node together.
 */
export default defineJob({
  name: 'treasury-flows',
  cadence: '1d',
  dataset: treasuryFlows,
  providers: [treasuryTransfers],
  entities: toFlowDaos,
  history: { intervals: ['1d'], chunkEntities: 4, chunkPoints: 365, firstRunDays: 365 },
  run: ({ provider, range, ...request }) =>
    range ? provider.fetchHistory({ ...request, range }) : provider.fetchNew(request),
})
