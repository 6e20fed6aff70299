import { z } from 'zod'
import { delegations } from '../../../../../shared/datasets/delegations.ts'
import { answerTokenEvents, toWholeTokens } from '../../../../governance/delegates.ts'
import { account, page } from '../../../../parameters/kinds.ts'
import { toObject } from '../../../../records/answer.ts'
import { timeValue } from '../../../../records/table.ts'
import { defineRoute } from '../../../../route/define-route.ts'
import { delegatingDaoKind } from '../../../../route/entities.ts'

const change = z
  .strictObject({
    recordedAt: timeValue.describe('Time of the block.'),
    votingPower: z.number().describe('Power after the change, in whole tokens.'),
    change: z
      .number()
      .describe('Power that it gained, or lost if negative: whole tokens, not a fraction of the power before.'),
    cause: z
      .enum(['delegation', 'transfer'])
      .describe('`delegation` if an account delegated to another address, `transfer` if tokens of a delegator moved.'),
    transactionHash: z.string().describe('The transaction.'),
  })
  .meta({ id: 'DelegatePowerChange', description: "A change of a delegate's voting power." })

const SIGNED = `if(power >= previous, 1, -1) * ${toWholeTokens('if(power >= previous, power - previous, previous - power)', 'decimals')}`

const RECORD = toObject(
  change,
  `toDateTime64(at, 3, 'UTC'), ${toWholeTokens('power', 'decimals')}, ${SIGNED}, toString(cause), tx`,
)

export const delegateHistoryRoute = defineRoute({
  operation: 'getDelegateHistory',
  path: '/data/daos/governance/delegates/historic',
  tag: 'DAOs',
  summary: 'Voting power of one delegate over time',
  description:
    "Every change of a delegate's power in one DAO with its cause, newest first. The list is empty for an address that never had power. If the token has no delegations, or is not completely read yet, the code is `no_data`.",
  one: delegatingDaoKind,
  query: { address: account('The delegate.'), ...page('changes', { default: 100, max: 1000 }) },
  record: change,
  datasets: [delegations],
  mayHaveNoData: true,
  handle: (call) =>
    answerTokenEvents(call, {
      name: 'delegate-history',
      table: 'delegate_powers',
      record: RECORD,
      isWanted: 'delegate = {address: String}',
      params: { address: call.query.address },
    }),
})
