import { isGovernor } from '../../shared/datasets/governance.ts'
import { OF_SCOPE } from '../../shared/datasets/governance-scope.ts'
import { GOVERNOR_SUMS, toGovernorScores } from '../../shared/datasets/governors.ts'
import { HISTORY_START } from '../../shared/intervals.ts'
import { time } from '../parameters/kinds.ts'
import { NOW, STATE } from './states.ts'

/** Adds `asOf`; `about` describes what it returns. */
export const toAsOfParameter = (about: string) => ({
  asOf: time(about, '2024-01-01T00:00:00Z', { earliest: HISTORY_START }).optional(),
})

/** Whether a later vote of the voter would replace a vote: all on Snapshot, and whole votes on governors that allow it. */
const IS_REPLACEABLE = `(is_whole OR NOT ${isGovernor('space')})`

/**
 * A WITH clause: of the `isSelected` votes, those that were replaced after the time `at` (SQL), and so counted at that time.
 * They are few: the others of a proposal are the last votes of their voters. Only votes of voters with a replaced vote are grouped;
 * `isRequested` selects these without sets, which cannot be passed on to shards within a set.
 */
export const toRestored = (isSelected: string, isRequested: string, at: string): string => `
  (
    SELECT groupArray(tuple(dao, toString(space), toString(proposal), voter, last_at)) FROM
    (
      SELECT dao, space, proposal, voter, max(created_at) AS last_at FROM dao_cast_votes FINAL
      WHERE ${isSelected} AND created_at <= ${at} AND ${IS_REPLACEABLE}
        AND (proposal, voter) IN (SELECT proposal, voter FROM dao_cast_votes WHERE ${isRequested} AND created_at <= ${at} AND is_replaced)
      GROUP BY dao, space, proposal, voter HAVING argMax(is_replaced, created_at)
    )
  ) AS restored`

/** Whether a vote counted at the time of `toRestored`. */
export const COUNTED_THEN = `(NOT is_replaced OR (dao, space, proposal, voter, created_at) IN
    (SELECT one.1, one.2, one.3, one.4, one.5 FROM (SELECT arrayJoin(restored) AS one)))`

/** How Snapshot adds up votes of these types; those of other types are not known before the end. */
const ONE_CHOICE = `voting_type IN ('single-choice', 'basic')`

/** A voter may sign any weights. Sums of larger ones, and quotients of negative ones, are not shares of the power. */
const MOST_WEIGHT = 1e18
const WEIGHT_LIST = `arrayMap(pair -> pair.2, JSONExtractKeysAndValues(choice, 'Float64'))`
const WEIGHTS = `arraySum(${WEIGHT_LIST})`
const HAS_WEIGHTS = `arrayAll(weight -> weight BETWEEN 0 AND ${MOST_WEIGHT}, ${WEIGHT_LIST}) AND ${WEIGHTS} > 0`

/** The power of a vote on Snapshot for the choice `number`; 0 unless the vote is clear. */
const PART = `multiIf(NOT is_clear, 0, ${ONE_CHOICE}, if(choice = toString(number), power, 0),
    voting_type = 'approval', if(has(JSONExtract(choice, 'Array(UInt32)'), number), power, 0),
    power * JSONExtractFloat(choice, toString(number)) / ${WEIGHTS})`

const IS_CLEAR = `isNotNull(voting_power) AND size > 0 AND multiIf(${ONE_CHOICE}, match(choice, '^[0-9]{1,9}$') AND toUInt32OrZero(choice) BETWEEN 1 AND size,
    voting_type = 'approval', match(choice, '^\\\\[[0-9,]*\\\\]$'),
    voting_type = 'weighted', match(choice, '^\\\\{("[0-9]+":[-+.eE0-9]+,?)+\\\\}$') AND ${HAS_WEIGHTS}, false)`

/** Votes on proposals with more choices are not added up: each vote is compared with each choice. */
const MOST_CHOICES = 1000

/** A WITH clause: the proposals whose vote was open at `NOW`. The votes on all others are complete. */
export const OPEN = `
  (
    SELECT groupArray(tuple(dao, toString(space), proposal, toString(voting_type), if(length(choices) > ${MOST_CHOICES}, 0, toUInt32(length(choices))))) FROM dao_proposal_details FINAL
    WHERE ${OF_SCOPE} AND NOT is_deleted AND ifNull(starts_at <= ${NOW}, true) AND ifNull(ends_at > ${NOW}, true)
  ) AS open`

/** The votes on open proposals that counted at `NOW`, added up. */
const SUMS = `
  SELECT dao, space, proposal, ${GOVERNOR_SUMS}, sumForEach(parts) AS sums, countIf(NOT is_clear) AS unclear,
    countIf(isNull(voting_power)) AS powerless, toFloat64(sum(toDecimal256(ifNull(voting_power, 0), 18))) AS power
  FROM
  (
    SELECT dao, space, proposal, choice, voting_power, power_exact, choice_powers, decimals, ifNull(voting_power, 0) AS power, ${IS_CLEAR} AS is_clear,
      arrayMap(number -> toDecimal256(${PART}, 18), range(1, size + 1)) AS parts
    FROM
    (
      SELECT v.*, o.voting_type AS voting_type, o.size AS size, max(created_at) OVER (PARTITION BY dao, space, proposal, voter, is_whole) AS last_at
      FROM
      (
        SELECT dao, toString(space) AS space, toString(proposal) AS proposal, voter, created_at, choice, voting_power, power_exact, choice_powers, decimals, is_whole
        FROM dao_cast_votes FINAL WHERE ${OF_SCOPE} AND created_at <= ${NOW}
      ) AS v
      INNER JOIN (SELECT one.1 AS dao, one.2 AS space, one.3 AS proposal, one.4 AS voting_type, one.5 AS size FROM (SELECT arrayJoin(open) AS one)) AS o
        ON o.dao = v.dao AND o.space = v.space AND o.proposal = v.proposal
    )
    WHERE created_at = last_at OR NOT ${IS_REPLACEABLE}
  )
  GROUP BY dao, space, proposal`

/**
 * The outcome at `NOW`; `unknown` if its time was not collected, and for a canceled proposal between the time from which it could be
 * executed and its cancellation: it may have expired.
 */
const OUTCOME = `multiIf(
      (c.outcome = 'canceled' AND isNull(c.canceled_at)) OR (c.outcome = 'executed' AND isNull(c.executed_at)) OR (c.outcome = 'queued' AND isNull(c.queued_at)), 'unknown',
      ifNull(c.canceled_at <= ${NOW}, false), 'canceled', ifNull(c.executed_at <= ${NOW}, false), 'executed',
      ifNull(c.queued_at > ${NOW}, true), '', c.outcome = 'canceled' AND ifNull(c.executable_at <= ${NOW}, true), 'unknown', 'queued')`

const toKnown = (time: string) => `if(ifNull(${time} <= ${NOW}, false), ${time}, NULL)`

/** A quorum was known from the start of the vote on, and one that changes is known at the end only. */
const QUORUM_UNKNOWN = `(${isGovernor('c.space')} AND (ifNull(c.starts_at > ${NOW}, true) OR (c.is_quorum_live AND ifNull(c.ends_at > ${NOW}, true))))`

const SCORES = toGovernorScores('s', 'c.choices')

const IS_OPEN = `(ifNull(c.ends_at > ${NOW}, true))`

/** The details of proposals at `NOW`, in the columns of `dao_proposal_details`; used with `OPEN`. */
export const PAST_DETAILS = `
  SELECT c.* REPLACE (
    if(${IS_OPEN}, if(${isGovernor('c.space')}, ${SCORES.scores}, if(s.unclear > 0, [], arrayResize(arrayMap(sum -> toFloat64(sum), s.sums), length(c.choices)))), c.scores) AS scores,
    if(${IS_OPEN}, if(${isGovernor('c.space')}, ${SCORES.total}, if(s.powerless > 0, NULL, s.power)), c.scores_total) AS scores_total,
    if(${IS_OPEN}, s.votes, c.votes) AS votes,
    if(${IS_OPEN} AND ${isGovernor('c.space')}, ${SCORES.exact}, c.scores_exact) AS scores_exact,
    if(${IS_OPEN} AND ${isGovernor('c.space')}, ${SCORES.totalExact}, c.total_exact) AS total_exact,
    if(${IS_OPEN}, s.decimals, c.decimals) AS decimals,
    if(${QUORUM_UNKNOWN}, NULL, c.quorum) AS quorum,
    if(${QUORUM_UNKNOWN}, NULL, c.quorum_exact) AS quorum_exact,
    ${OUTCOME} AS outcome,
    if(${OUTCOME} = 'unknown' OR ifNull(c.queued_at > ${NOW}, true), NULL, c.executable_at) AS executable_at,
    ${toKnown('c.queued_at')} AS queued_at,
    ${toKnown('c.executed_at')} AS executed_at,
    ${toKnown('c.canceled_at')} AS canceled_at)
  FROM (SELECT * FROM dao_proposal_details FINAL WHERE ${OF_SCOPE}) AS c
  LEFT JOIN (${SUMS}) AS s ON s.dao = c.dao AND s.space = c.space AND s.proposal = c.proposal`

/** Like `STATE`, of `PAST_DETAILS`. */
export const PAST_STATE = `if(d.outcome = 'unknown', if(ifNull(d.ends_at <= ${NOW}, false), 'closed', NULL), ${STATE})`
