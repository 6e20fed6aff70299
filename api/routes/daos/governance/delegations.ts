import { z } from 'zod'
import { delegations } from '../../../../shared/datasets/delegations.ts'
import { idValue, timeValue, toIdSql } from '../../../formats/formats.ts'
import { answerTokenEvents } from '../../../governance/delegates.ts'
import { page } from '../../../parameters/kinds.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { delegatingDaoKind } from '../../../route/entities.ts'

const delegation = z
  .strictObject({
    _id: idValue.describe('Id of the event.'),
    recordedAt: timeValue.describe('Time of the block.'),
    delegator: z.string().describe('Account that delegates, in lower case.'),
    from: z.string().nullable().describe('Previous delegate; null if there was none.'),
    to: z.string().nullable().describe('New delegate; null if there is none.'),
    transactionHash: z.string().describe('The transaction.'),
  })
  .meta({ id: 'GovernanceDelegation', description: 'A change of the delegate of an account.' })

const VALUES = `${toIdSql("'delegation'", 'dao', 'space', 'block_number', 'log_index')}, toDateTime64(at, 3, 'UTC'), delegator, nullIf(from_delegate, ''), nullIf(to_delegate, ''), tx`

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
