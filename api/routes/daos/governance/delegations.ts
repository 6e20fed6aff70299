import { DELEGATION_VALUES, delegation, delegations } from '../../../../shared/datasets/delegations.ts'
import { answerTokenEvents } from '../../../governance/delegates.ts'
import { page } from '../../../parameters/kinds.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { delegatingDaoKind } from '../../../route/entities.ts'

const VALUES = Object.values(DELEGATION_VALUES).join(', ')

export const governanceDelegationsRoute = defineRoute({
  operation: 'listDaoDelegations',
  path: '/data/daos/governance/delegations',
  tag: 'DAOs',
  summary: 'Delegations of one DAO',
  description:
    "Every event by which an account changed its delegate, of the token that the DAO's governors count, newest first. If the token has no delegations, or is not completely read yet, the code is `no_data`.",
  one: delegatingDaoKind,
  query: page('delegations', { default: 100, max: 1000 }),
  record: delegation,
  datasets: [delegations],
  mayHaveNoData: true,
  handle: (call) =>
    answerTokenEvents(call, {
      name: 'governance-delegations',
      table: 'delegation_events',
      record: delegation,
      values: VALUES,
      order: 'at DESC, block_number DESC, log_index DESC',
    }),
})
