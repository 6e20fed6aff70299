import { selectVotes } from '../../shared/datasets/governance-records.ts'
import { COUNTED, IS_COUNTED } from '../../shared/datasets/governance-scope.ts'
import { defineKeyset, type Keyset } from '../formats/formats.ts'
import { COUNTED_THEN, toRestored } from './past.ts'

/** Newest first. */
export const NEWEST_VOTES_FIRST: Keyset = defineKeyset(
  ['-toInt64(toUnixTimestamp(created_at))', 'Int64'],
  ['toString(proposal)', 'String'],
  ['voter', 'String'],
)

// The statement fixes one DAO key: only then does ClickHouse read rows in the order of the rest of the sorting key.
const IS_REQUESTED = `dao = {daos: Array(UInt64)}[1] AND ({proposal: String} = '' OR proposal = {proposal: String})`

const IS_SELECTED = `${IS_REQUESTED} AND ${IS_COUNTED}`

const toBound = (parameter: string) => `created_at <= toDateTime({${parameter}: Int64}, 0)`

/** The last second of the state that is requested, if it is one of the past. */
const UNTIL = toBound('until')

/** WITH clauses, and whether a vote counts; with `isPast` at the time of the parameter `until`, in Unix seconds. */
const toCondition = (isPast: boolean) =>
  isPast
    ? {
        clauses: `${COUNTED},${toRestored(IS_SELECTED, IS_REQUESTED, 'toDateTime({until: Int64}, 0)')}`,
        isCast: `${UNTIL} AND ${COUNTED_THEN}`,
      }
    : { clauses: COUNTED, isCast: 'NOT is_replaced' }

const COLUMNS = 'dao, created_at, proposal, voter, space, choice, voting_power, power_exact, decimals'

/** The requested votes: of the one DAO in scope, and of one proposal unless `proposal` is empty. */
export function toCastVotes(isPast: boolean): string {
  if (!isPast) return selectVotes(IS_REQUESTED)
  const { clauses, isCast } = toCondition(true)
  return `
WITH ${clauses}
SELECT ${COLUMNS} FROM dao_cast_votes FINAL WHERE ${IS_SELECTED} AND ${isCast}`
}

export function toVotesCount(isPast: boolean): string {
  const { clauses, isCast } = toCondition(isPast)
  return `
WITH ${clauses}
SELECT count() AS total FROM dao_cast_votes FINAL WHERE ${IS_SELECTED} AND ${isCast}`
}

/** Rows read per requested vote: a vote that was read again has several rows until they are merged. */
export const COPIES = 4

const BEFORE = toBound('before')

/**
 * Selects a page of votes, newest first. FINAL, which removes replaced rows, reads all rows of a range. The first part
 * therefore finds how far back the requested number of votes reaches: a read along the sorting key, which stops after
 * `rows` rows. The first part does not count the last second, which may be incomplete, nor votes with a replaced row.
 * If the first part finds fewer votes than requested, FINAL reads the whole range.
 */
export function toVotesPage(after: string, isPast: boolean): string {
  const { clauses, isCast } = toCondition(isPast)
  return `
WITH ${clauses},
(
  SELECT tuple(count() < {rows: UInt32} OR
    uniqExactIf((created_at, proposal, voter, space), NOT is_replaced) >= {limit: UInt32}
      + uniqExactIf((created_at, proposal, voter, space), is_replaced)
      + arrayCount(at -> at = arrayMin(groupArray(created_at)), groupArray(created_at)), min(created_at))
  FROM
  (
    SELECT created_at, proposal, voter, space, is_replaced FROM dao_cast_votes
    WHERE ${IS_SELECTED} AND ${BEFORE}${NEWEST_VOTES_FIRST.isAfter(after)}
    ORDER BY created_at DESC LIMIT {rows: UInt32}
  )
) AS nearest
SELECT ${COLUMNS}, ${NEWEST_VOTES_FIRST.place} AS page_key
FROM dao_cast_votes FINAL
WHERE ${IS_SELECTED} AND ${BEFORE} AND created_at >= if(nearest.1, nearest.2, toDateTime(0)) AND ${isCast}${NEWEST_VOTES_FIRST.isAfter(after)}
ORDER BY ${NEWEST_VOTES_FIRST.order}
LIMIT {limit: UInt32}`
}
