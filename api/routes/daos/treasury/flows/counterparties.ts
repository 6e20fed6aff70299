import { z } from 'zod'
import { FLOW_KINDS } from '../../../../../shared/datasets/treasury-flows.ts'
import { timeValue, uint32, usd } from '../../../../../shared/record-values.ts'
import { FLOW_SOURCES } from '../../../../flows/day-flows.ts'
import { FLOW_VALUES, fromSelection, rangeParameters, selectFlows, toFlowParams } from '../../../../flows/selection.ts'
import { defineKeyset, toObject } from '../../../../formats/formats.ts'
import { answerLongList } from '../../../../governance/list.ts'
import { LIST_HEADERS } from '../../../../http/headers.ts'
import { oneOf, page } from '../../../../parameters/kinds.ts'
import { toQuestions } from '../../../../parameters/questions.ts'
import { VALUES_PER_LIST } from '../../../../route/cost.ts'
import { defineRoute } from '../../../../route/define-route.ts'
import { treasuryDaoKind } from '../../../../route/entities.ts'

const record = z
  .strictObject({
    counterparty: z.string().describe('The other address, in lower case.'),
    counterpartyLabel: z.string().nullable().describe('Its name; null if it is unknown.'),
    kind: z.enum(FLOW_KINDS).describe('Kind of the transfers.'),
    valueUsd: usd
      .nullable()
      .describe(
        'Value in US dollars of the transfers with a price, at the prices of their days; null if none has one.',
      ),
    transfers: uint32.describe('Number of transfers.'),
    transfersWithoutPrice: uint32.describe('Number of transfers without a price, whose value is not in the sum.'),
    firstAt: timeValue.describe('Time of the first transfer.'),
    lastAt: timeValue.describe('Time of the last transfer.'),
  })
  .meta({ id: 'TreasuryCounterparty', description: 'Transfers between a treasury and one other address.' })

const questions = toQuestions(record)

const SIDES = ['in', 'out'] as const

/** The largest sum first, unknown ones last. */
const LARGEST_FIRST = defineKeyset(
  ['toUInt8(isNull(value_usd))', 'UInt8'],
  ['ifNull(value_usd, 0)', 'Float64', 'descending'],
  ['counterparty', 'String'],
  ['kind', 'String'],
)

/** Like the total of `flows/historic`, unless a kind is requested. */
const IS_COUNTED = "kind NOT IN ('internal', 'spam', 'swap')"
const IS_ON_SIDE = "if(direction = 'swap', leg, toString(direction)) IN ({side: String}, 'internal')"

export const treasuryCounterpartiesRoute = defineRoute({
  operation: 'listDaoTreasuryCounterparties',
  path: '/data/daos/treasury/flows/counterparties',
  tag: 'DAOs',
  summary: 'Addresses that the treasury of one DAO paid, or was paid by',
  description:
    'The addresses that received most from the treasury, or with `direction=in` those that paid most into it, by value, largest first; unknown values come last. An address has a record for each kind of its transfers. Spam, swaps and transfers between addresses of the DAO are left out unless `kind` requests them.',
  one: treasuryDaoKind,
  query: {
    ...rangeParameters,
    direction: oneOf(SIDES, 'Payments out of the treasury, or into it.', 'in').default('out'),
    kind: oneOf(FLOW_KINDS, 'Only transfers of this kind.', 'spending').optional(),
    ...questions.parameters,
    ...page('addresses', { default: 100, max: 1_000 }),
  },
  record,
  estimateValues: () => VALUES_PER_LIST,
  datasets: FLOW_SOURCES,
  headers: LIST_HEADERS,
  handle: (call) => {
    const { query, found: dao, registry } = call
    const { start, end, kind, direction } = query
    const selection = selectFlows({ start, end, kind }, registry)
    const isSelected = [selection.isSelected, IS_ON_SIDE, ...(kind === undefined ? [IS_COUNTED] : [])].join(' AND ')
    const sql = `SELECT bitShiftRight(cityHash64(counterparty, kind), 12) AS key, counterparty AS name, last_at AS as_of, *,
  ${toObject(record, "counterparty, nullIf(label, ''), kind, value_usd, transfers, without_price, first_at, last_at")} AS record
FROM
(
  SELECT f.counterparty AS counterparty, toString(f.kind) AS kind, argMax(f.counterparty_label, f.recorded_at) AS label,
    sumOrNull(${FLOW_VALUES.valueUsd}) AS value_usd, count() AS transfers, countIf(isNull(${FLOW_VALUES.valueUsd})) AS without_price,
    min(f.recorded_at) AS first_at, max(f.recorded_at) AS last_at
  ${fromSelection({ ...selection, isSelected })}
  GROUP BY counterparty, kind
)`
    // Prices change no number of addresses.
    const count = `SELECT uniqExact(counterparty, kind) AS total FROM treasury_flows FINAL
WHERE dao = {dao: UInt64} AND ${selection.isPossible} AND ${isSelected}`
    const params = { ...toFlowParams(dao, registry), ...selection.params, side: direction }
    return answerLongList(call, questions, {
      ...{ name: 'treasury-counterparties', sql, count, params, keyset: LARGEST_FIRST },
    })
  },
})
