import { z } from 'zod'
import type { Database } from '../../../shared/store/store.ts'
import { isSelected, toSelection } from './condition.ts'

const flipRow = z.object({
  dao: z.number(),
  space: z.string(),
  proposal: z.string(),
  at: z.int(),
  before: z.string(),
  after: z.string(),
})

/** The leading choice of an open proposal is another one than some hours ago. */
export type Flip = z.infer<typeof flipRow>

const TIME = (parameter: string) => `fromUnixTimestamp64Milli({${parameter}: Int64}, 'UTC')`

/** Of the votes of a voter at a time: the last one if it replaced others, else all of them, as parts of one vote. */
const atTime = (parameter: string) =>
  `arrayFilter(one -> one.1 <= ${TIME(parameter)}, votes) AS votes_${parameter}, if(arrayExists(one -> one.4, votes), arraySlice(votes_${parameter}, -1, 1), votes_${parameter}) AS counted_${parameter}`

/** The name of the choice with the most power, without abstentions; empty on a tie. */
const toLeading = (powers: string) =>
  `if(arrayMax(${powers}) > 0 AND countEqual(${powers}, arrayMax(${powers})) = 1, choices[indexOf(${powers}, arrayMax(${powers}))], '')`

const SQL = `
SELECT dao, space, proposal, toInt64(toUnixTimestamp(last_at)) * 1000 AS at, ${toLeading('powers_earlier')} AS before, ${toLeading('powers_now')} AS after FROM
(
  SELECT dao, space, proposal, any(choices) AS choices, max(last_at) AS last_at,
    arrayMap((choice, number) -> if(lowerUTF8(choice) = 'abstain', 0, sumMap(earlier_powers)[toString(number)]), choices, arrayEnumerate(choices)) AS powers_earlier,
    arrayMap((choice, number) -> if(lowerUTF8(choice) = 'abstain', 0, sumMap(now_powers)[toString(number)]), choices, arrayEnumerate(choices)) AS powers_now
  FROM
  (
    SELECT v.dao AS dao, v.space AS space, v.proposal AS proposal, any(d.choices) AS choices, max(v.created_at) AS last_at,
      arraySort(groupArray(tuple(v.created_at, v.choice, ifNull(v.voting_power, 0), v.is_replaced))) AS votes,
      ${atTime('earlier')}, ${atTime('now')},
      mapFromArrays(counted_earlier.2, counted_earlier.3) AS earlier_powers, mapFromArrays(counted_now.2, counted_now.3) AS now_powers
    FROM (SELECT * FROM dao_cast_votes FINAL WHERE ${isSelected('dao')} AND created_at >= ${TIME('since')}) AS v
    INNER JOIN
    (
      SELECT dao, space, proposal, choices FROM dao_proposal_details FINAL
      WHERE ${isSelected('dao')} AND outcome = '' AND NOT is_deleted AND starts_at <= ${TIME('now')} AND ends_at > ${TIME('now')}
    ) AS d ON d.dao = v.dao AND d.space = v.space AND d.proposal = v.proposal
    GROUP BY v.dao, v.space, v.proposal, v.voter
  )
  GROUP BY dao, space, proposal
)
WHERE before != '' AND after != '' AND before != after`

/** The longest vote that is compared, in milliseconds. */
const LONGEST_VOTE_MS = 90 * 86_400_000

/** Finds the open proposals whose leading choice is another one than `hours` ago. */
export const findFlips = (db: Database, daos: readonly number[], hours: number, now: number): Promise<Flip[]> =>
  db.rows({
    name: 'alert-flips',
    sql: SQL,
    params: { ...toSelection(daos), now, earlier: now - hours * 3_600_000, since: now - LONGEST_VOTE_MS },
    schema: flipRow,
  })
