import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { defineJob } from '../job/define-job.ts'
import { defillama } from '../providers/defillama/tvl.ts'
import { openTvlCheck } from '../providers/plausibility.ts'

/** Total value locked of every live DAO with protocols that DefiLlama knows. */
export default defineJob({
  name: 'tvl',
  cadence: '1h',
  dataset: protocolTvl,
  providers: [defillama],
  entities: protocolTvl.entities,
  openPlausibilityCheck: openTvlCheck,
  history: { intervals: ['1d'], chunkEntities: 20, chunkPoints: 2500 },
  run: ({ provider, entities, range, slot, ...run }) =>
    range ? provider.fetchTvlHistory(entities, range, run) : provider.fetchTvl(entities, slot, run.signal),
})
