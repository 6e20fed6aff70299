import { z } from 'zod'
import { delegations } from '../../../../../shared/datasets/delegations.ts'
import { toWholeTokens } from '../../../../../shared/whole-tokens.ts'
import { timeValue } from '../../../../formats/formats.ts'
import { answerTokenEvents } from '../../../../governance/delegates.ts'
import { account, manyAccounts, page } from '../../../../parameters/kinds.ts'
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

const VALUES = `toDateTime64(at, 3, 'UTC'), ${toWholeTokens('power', 'decimals')}, ${SIGNED}, toString(cause), tx`

/** The column of a table with several DAOs or delegates. */
const delegate = { delegate: z.string().describe('The delegate, in lower case.') }

export const delegateHistoryRoute = defineRoute({
  operation: 'getDelegateHistory',
  path: '/data/daos/governance/delegates/historic',
  tag: 'DAOs',
  summary: 'Voting power of one delegate over time',
  description:
    "Every change of a delegate's power in one DAO with its cause, newest first. The list is empty for an address that never had power. If the token has no delegations, or is not completely read yet, the code is `no_data`. With another format than JSON the route takes several DAOs and several addresses: DAO after DAO in the order of their ids, in each address after address, with the columns `id`, `name` and `delegate` first; `limit` counts the rows of all together.",
  one: delegatingDaoKind,
  severalInTables: { address: manyAccounts('delegates') },
  query: { address: account('The delegate.'), ...page('changes', { default: 100, max: 1000 }) },
  record: change,
  datasets: [delegations],
  mayHaveNoData: true,
  handle: (call) => {
    // A list in tables; one address has many spellings.
    const addresses = [...new Set([call.query.address].flat())]
    const isOne = addresses.length === 1 && call.entities.length === 1
    return answerTokenEvents(call, {
      name: 'delegate-history',
      table: 'delegate_powers',
      record: change,
      values: VALUES,
      isWanted: isOne ? 'delegate = {address: String}' : 'delegate IN {addresses: Array(String)}',
      params: { address: addresses[0], addresses },
      ofSeveral: isOne ? undefined : delegate,
    })
  },
})
