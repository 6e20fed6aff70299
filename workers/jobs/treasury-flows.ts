import { treasuryFlows } from '../../shared/datasets/treasury-flows.ts'
import { defineJob } from '../job/define-job.ts'
import { toFlowDaos } from '../providers/contracts/treasury-flows.ts'
import { treasuryTransfers } from '../providers/treasury-transfers.ts'

/** A runway needs the last 365 completely read days, which may end three days ago. The first run reads all of them. */
const FIRST_RUN_DAYS = 368

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
  history: { intervals: ['1d'], chunkEntities: 4, chunkPoints: FIRST_RUN_DAYS, firstRunDays: FIRST_RUN_DAYS },
  run: ({ provider, range, ...request }) =>
    range ? provider.fetchHistory({ ...request, range }) : provider.fetchNew(request),
})
