import { indexToken } from '../../shared/datasets/index-token.ts'
import { defineJob } from '../job/define-job.ts'
import { indexTokenContract } from '../providers/index-token/index-token.ts'

/** Supply and value of the Index Token, read from its chain. The past is not read: nodes have only the newest state. */
export default defineJob({
  name: 'index-token',
  cadence: '5m',
  dataset: indexToken,
  providers: [indexTokenContract],
  entities: indexToken.entities,
  run: ({ provider, entities, slot, signal }) =>
    Promise.all(entities.map((index) => provider.fetchToken(index, slot, signal))),
})
