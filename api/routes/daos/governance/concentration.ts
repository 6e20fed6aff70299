import { z } from 'zod'
import { delegations } from '../../../../shared/datasets/delegations.ts'
import { governors } from '../../../../shared/datasets/governors.ts'
import { DAY_MS } from '../../../../shared/intervals.ts'
import { countOrNull, numberOrNull, timeValue } from '../../../../shared/record-values.ts'
import { toWholeTokens } from '../../../../shared/whole-tokens.ts'
import { answerRecords, toObject } from '../../../formats/formats.ts'
import { requireDelegations } from '../../../governance/delegates.ts'
import { limit } from '../../../parameters/kinds.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { delegatingDaoKind } from '../../../route/entities.ts'

const concentration = z
  .strictObject({
    recordedAt: timeValue.describe('End of the day, in UTC.'),
    totalPower: z.number().describe('All delegated power, in whole tokens.'),
    top10Share: numberOrNull.describe(
      'Share of the ten delegates with the most power as a fraction, 0.1 = 10 %; null if there is no delegated power.',
    ),
    holdersOfHalf: countOrNull.describe(
      'Smallest number of delegates with half of the power; null if there is no delegated power.',
    ),
    gini: numberOrNull.describe(
      'Gini coefficient of the delegates with power: 0 if all have equal power, near 1 if one delegate has all; null if there is no delegated power.',
    ),
    quorum: numberOrNull.describe(
      'Power that a proposal needs, in whole tokens: that of the last proposal whose vote started by then, or a constant of the governor; null if it is unknown.',
    ),
    quorumReachableBy: countOrNull.describe(
      'Smallest number of delegates that reach the quorum; null if all together have less, or if the quorum is unknown.',
    ),
  })
  .meta({ id: 'GovernanceConcentration', description: 'How concentrated the voting power of a DAO is on a day.' })

const RECORD = toObject(
  concentration,
  `fromUnixTimestamp64Milli(toInt64(day) * 86400000 + 86399999, 'UTC'), total, if(total > 0, arraySum(arraySlice(powers, 1, 10)) / total, NULL),
  if(total > 0, arrayFirstIndex(sum -> sum * 2 >= total, arrayCumSum(powers)), NULL),
  if(total > 0, (length(powers) + 1 - 2 * arraySum(arrayMap((power, place) -> power * place, powers, arrayEnumerate(powers))) / total) / length(powers), NULL),
  quorum, nullIf(arrayFirstIndex(sum -> ifNull(sum >= quorum, false), arrayCumSum(powers)), 0)`,
)

/** The value of the last day until `day`; an array has 0 before its first element, which stands for unknown. */
const toLast = (values: string, days: string) =>
  `nullIf(${values}[arrayLastIndex(from_day -> from_day <= day, ${days})], 0)`

/** The quorum of the day: as a governor stated it for its last proposal, or else a constant of the registry. */
const QUORUM = `coalesce(${toLast('stated.2', 'stated.1')}, ${toLast('{quorum_powers: Array(Float64)}', '{quorum_days: Array(UInt32)}')})`

/** Start of the vote and quorum of each proposal on a governor that counts the voting token. */
const STATED = `
  (
    SELECT arraySort(groupArray(tuple(toUInt32(toDate(assumeNotNull(starts_at))), assumeNotNull(quorum)))) FROM dao_proposal_details FINAL
    WHERE dao = {dao: UInt64} AND has({governors: Array(String)}, space) AND isNotNull(quorum_exact) AND isNotNull(starts_at)
  ) AS stated`

/**
 * Reads the last power of each delegate on each day with a change. This power is the delegate's power at the end of
 * every day until the next change.
 */
const SQL = `
WITH ${STATED}
SELECT toDateTime64(fromUnixTimestamp64Milli({read_at: Int64}, 'UTC'), 3, 'UTC') AS as_of, ${RECORD} AS record FROM
(
  SELECT day, arrayReverseSort(groupArray(power)) AS powers, ${toWholeTokens('sum(units)', 'any(decimals)')} AS total, ${QUORUM} AS quorum FROM
  (
    SELECT arrayJoin(arrayMap(day -> (day, arrayLast(one -> one.1 <= day, changes)), range(toUInt32({first_day: UInt32}), toUInt32({last_day: UInt32}) + 1))) AS pair,
      pair.1 AS day, pair.2.2 AS power, pair.2.3 AS units, decimals
    FROM
    (
      SELECT delegate, any(decimals) AS decimals, arraySort(one -> one.1, groupArray((day, whole, units))) AS changes FROM
      (
        SELECT delegate, toUInt32(toDate(at)) AS day, argMax(power, (block_number, log_index)) AS units, any(decimals) AS decimals,
          ${toWholeTokens('units', 'decimals')} AS whole
        FROM delegate_powers WHERE dao = {dao: UInt64} AND space = {space: String}
        GROUP BY delegate, day
      )
      GROUP BY delegate
    )
  )
  WHERE power > 0
  GROUP BY day
)
ORDER BY day DESC`

export const governanceConcentrationRoute = defineRoute({
  operation: 'getDaoConcentration',
  path: '/data/daos/governance/concentration',
  tag: 'DAOs',
  summary: 'Concentration of the voting power of one DAO',
  description:
    'How concentrated the delegated power of a DAO was at the end of each of the last days, newest first; the first point is the day of the last reading. Days before the first delegation are not listed. A DAO whose token has no delegations, or is not completely read yet, has no points: `no_data`.',
  one: delegatingDaoKind,
  query: { limit: limit('days', { default: 30, max: 366 }) },
  record: concentration,
  datasets: [delegations, governors],
  mayHaveNoData: true,
  handle: async (call) => {
    const { found: dao, query } = call
    const asOf = await requireDelegations(call, dao)
    const lastDay = Math.floor(asOf / DAY_MS)
    const days = { first_day: lastDay - query.limit + 1, last_day: lastDay, read_at: asOf }
    const quorums = dao.votingToken?.quorums ?? []
    const params = {
      ...{ dao: dao.key, space: dao.votingToken?.space ?? '', ...days },
      governors: dao.governors.map(({ proposalSpace }) => proposalSpace),
      quorum_days: quorums.map(({ from }) => Date.parse(from) / DAY_MS),
      quorum_powers: quorums.map(({ power }) => power ?? 0),
    }
    return { ...(await answerRecords(call, { name: 'governance-concentration', sql: SQL, params })), asOf }
  },
})
