import { z } from 'zod'
import { FROM_PROPOSALS } from '../../shared/datasets/governance-records.ts'
import { COUNTED, READINGS, SOURCES, toSource } from '../../shared/datasets/governance-scope.ts'
import type { Database } from '../../shared/store/store.ts'
import { toWholeTokens } from '../../shared/whole-tokens.ts'
import { toChoiceText } from './choice.ts'
import { toPowers } from './delegates.ts'

/**
 * How persons took part in the proposals of a range of time, in SQL: for one person, who may have several addresses, and for
 * all addresses of a DAO. Parameters: those of `toProposalRange`, and `addresses` for one person.
 *
 * - A proposal is in the range if its vote ended in it, and if it was neither canceled nor flagged as spam.
 * - Its votes are unknown while its source has not counted them, or was not read to its end. Such a proposal counts as
 *   neither voted nor missed.
 * - A replaced vote does not count. Parts of a vote and votes of several addresses of a person add up.
 */

/** Why the votes on a proposal are not completely known. */
export const UNKNOWN_REASONS = ['unsettled', 'unread'] as const

const toTime = (parameter: string) => `fromUnixTimestamp64Milli({${parameter}: Int64}, 'UTC')`

/** The newest final block of a chain may be that much older than the reading. */
const READING_LAG = 'INTERVAL 1 HOUR'

/** Why the votes on a proposal are not completely known; empty if they are. */
const REASON = `multiIf(d.outcome = '' AND d.scores_state IN ('pending', 'invalid'), 'unsettled', r.read_at < d.ends_at + ${READING_LAG}, 'unread', '')`

const IN_RANGE = `d.ends_at >= ${toTime('from')} AND d.ends_at < ${toTime('to')} AND d.ends_at <= ${toTime('now')}`

/**
 * The proposals of the range, and those whose end is unknown (`is_undated`). `leading` is the choice with the most power as
 * JSON, apart from `abstain`, which decides nothing; empty if two have as much, and if the scores are unknown.
 */
const PROPOSALS = `
SELECT p.id AS id, toString(p.space) AS space, p.proposal AS proposal, d.title AS title, ${toSource('p.space')} AS source,
  d.starts_at AS starts, d.ends_at AS ends, if(match(d.url, '^https?://'), d.url, NULL) AS url, ${REASON} AS reason, d.choices AS choices,
  indexOf(arrayMap(choice -> lowerUTF8(choice), d.choices), 'abstain') AS abstaining, if(abstaining = 0, '', toString(abstaining)) AS abstain,
  arrayMap((score, number) -> if(number = abstaining, -1, score), d.scores, arrayEnumerate(d.scores)) AS deciding,
  if(notEmpty(deciding) AND arrayMax(deciding) > 0 AND countEqual(deciding, arrayMax(deciding)) = 1, toString(indexOf(deciding, arrayMax(deciding))), '') AS leading,
  isNull(ends) AS is_undated, NOT is_undated AND reason = '' AS is_known, is_known AND source = 'governor' AS is_onchain
${FROM_PROPOSALS()}
INNER JOIN ${READINGS} AS r ON r.dao = p.dao AND r.space = p.space
WHERE ((${IN_RANGE}) OR (d.ends_at IS NULL AND p.created_at < ${toTime('to')})) AND d.outcome != 'canceled' AND NOT d.is_flagged`

const listed = z.object({
  id: z.string(),
  title: z.string(),
  source: z.enum(SOURCES),
  starts: z.int().nullable(),
  ends: z.int().nullable(),
  url: z.string().nullable(),
  reason: z.enum(['', ...UNKNOWN_REASONS]),
})

/** A proposal of a range; times are Unix milliseconds. Its end is null if it is unknown, and it may then belong to it. */
export type ListedProposal = z.infer<typeof listed>

/** Reads the proposals of a range, in the order of their ends, and those whose end is unknown. */
export const readProposals = (db: Database, params: Readonly<Record<string, unknown>>): Promise<ListedProposal[]> =>
  db.rows({
    name: 'governance-range',
    sql: `WITH ${COUNTED}
SELECT id, title, source, toInt64(toUnixTimestamp(starts)) * 1000 AS starts, toInt64(toUnixTimestamp(ends)) * 1000 AS ends, url, reason
FROM (${PROPOSALS}) ORDER BY ends, id`,
    params,
    schema: listed,
  })

/**
 * The parameters about the proposals of a range: their numbers, the first start, and start and id of each one on-chain, in the
 * order of the starts. As parameters, because ClickHouse would read the proposals again for each use of them.
 */
export function toProposalParams(proposals: readonly ListedProposal[]): Readonly<Record<string, unknown>> {
  const dated = proposals.filter(({ ends }) => ends !== null)
  const known = dated.filter(({ reason }) => reason === '')
  const onchain = known.filter(({ source }) => source === 'governor')
  const started = onchain
    .flatMap(({ id, starts }) => (starts === null ? [] : [{ id, at: starts / 1000 }]))
    .sort((one, other) => one.at - other.at)
  return {
    ...{ proposals: dated.length, known: known.length, onchain: onchain.length },
    first: dated.reduce((first, { starts }) => Math.min(first, starts ?? 0), Date.parse('2100-01-01')),
    start_times: started.map(({ at }) => at),
    start_ids: started.map(({ id }) => id),
  }
}

const START_TIMES = '{start_times: Array(UInt32)}'
const START_IDS = '{start_ids: Array(String)}'

/**
 * The votes of each person on each proposal of the range; `person` is SQL of the person of a `voter`. `agrees`: whether
 * the person voted for the choice with the most power, NULL if this is unknown. `choice` is empty if the votes differ.
 * Votes are cast after the start, which may be an estimate.
 */
const toBallots = (person: string, isWanted: string, more = '') => `
SELECT ${person} AS person, w.key AS key${more}, any(w.is_known) AS is_known, any(w.is_onchain) AS is_onchain, any(w.ends) AS ends,
  sum(toDecimal256(ifNull(c.voting_power, 0), 18)) AS power, countIf(isNull(c.voting_power)) > 0 AS is_unknown,
  min(c.created_at) AS first_at, max(c.created_at) AS last_at, if(min(c.choice) = max(c.choice), min(c.choice), '') AS choice,
  multiIf(any(w.leading) = '' OR choice = any(w.abstain) OR NOT match(choice, '^[0-9]+$'), NULL, choice = any(w.leading)) AS agrees
FROM
(
  SELECT toString(space) AS space, toString(proposal) AS proposal, voter, created_at, choice, voting_power FROM dao_cast_votes FINAL
  PREWHERE ${isWanted}
  WHERE dao = {dao: UInt64} AND created_at >= ${toTime('first')} - INTERVAL 1 DAY AND created_at < ${toTime('to')}
    AND NOT is_replaced AND choice != 'null'
) AS c
INNER JOIN
(
  SELECT space, proposal, id, cityHash64(id) AS key, is_known, is_onchain, assumeNotNull(ends) AS ends, leading, abstain, choices FROM (${PROPOSALS}) WHERE NOT is_undated
) AS w ON w.space = c.space AND w.proposal = c.proposal
GROUP BY person, key`

/** Most vectors that are compared with each other, and most members of a vector in the answer. */
const MOST_VECTORS = 2_000
export const MOST_MEMBERS = 100

/** A number for a choice: that of one choice, and a hash above all of them for others. */
const CODE =
  'if(length(choice) < 10 AND isNotNull(toUInt32OrNull(choice)), toUInt64(toUInt32OrZero(choice)), bitOr(bitShiftRight(sipHash64(choice), 12), bitShiftLeft(toUInt64(1), 52)))'

/**
 * The voters by their choices on the proposals `ids`, those with the most power first: a row for all with the same choices.
 * `positions` are the voted proposals in `ids`, from 1 on, with the `codes` of the choices; both are empty after the first
 * vectors. The power of a voter is that of its last vote with a known power. `powers` are those of its voters.
 */
export const VECTORS_SQL = `
WITH ${COUNTED}
SELECT row_number() OVER (ORDER BY sum_power DESC, hash) <= ${MOST_VECTORS} AS is_compared, if(is_compared, vector.1, []) AS positions,
  if(is_compared, vector.2, []) AS codes, sum_power AS power, voters, members, powers
FROM
(
  SELECT hash, any(vector) AS vector, sum(power) AS sum_power, count() AS voters,
    arraySlice(arrayMap(one -> one.2, arraySort(one -> (-one.1, one.2), groupArray(tuple(power, person)))), 1, ${MOST_MEMBERS}) AS members,
    groupArray(power) AS powers
  FROM
  (
    SELECT person, toFloat64(argMaxIf(power, (last_at, key), NOT is_unknown)) AS power,
      arraySort(groupArray(tuple(toUInt16(position), ${CODE}))) AS vector, sipHash64(vector) AS hash
    FROM (${toBallots('voter', 'true')}) AS b
    INNER JOIN
    (
      SELECT cityHash64(pair.1) AS own, pair.2 AS position
      FROM (SELECT arrayJoin(arrayZip({ids: Array(String)}, arrayEnumerate({ids: Array(String)}))) AS pair)
    ) AS i ON i.own = b.key
    GROUP BY person
  )
  GROUP BY hash
)
ORDER BY power DESC, hash`

/** The known votes of each person, added up. */
const toVoted = (ballots: string, more = '') => `
SELECT person, countIf(is_known) AS voted, countIf(is_onchain) AS onchain_voted,
  toFloat64(sumIf(power, is_known)) AS power_cast, countIf(is_unknown AND is_known) AS powers_unknown,
  minOrNullIf(first_at, is_known) AS first_vote_at, maxOrNullIf(last_at, is_known) AS last_vote_at,
  quantileExactInclusiveIf(0.5)((toInt64(toUnixTimestamp(ends)) - toInt64(toUnixTimestamp(last_at))) / 3600, is_known) AS hours,
  countIf(ifNull(agrees, 0) AND is_known) AS agreed, countIf(isNotNull(agrees) AND is_known) AS comparable,
  groupArrayIf(key, is_onchain) AS onchain, toFloat64(sumIf(power, is_onchain)) AS onchain_power${more}
FROM (${ballots})
GROUP BY person`

/**
 * The power of each person at the start of each on-chain vote. Changes of a delegate are first reduced to the last one before
 * each start; `filled` repeats it until the next one.
 */
const toEligible = (person: string, isWanted: string) => `
SELECT ${person} AS person, sumForEach(arrayResize(filled, length(${START_TIMES}), filled[-1])) AS units, any(decimals) AS decimals FROM
(
  SELECT delegate, any(decimals) AS decimals, groupArrayInsertAt(units, toUInt32(number - 1)) AS sparse,
    groupArrayInsertAt(toUInt8(1), toUInt32(number - 1)) AS changed, arrayFill((units, is_changed) -> is_changed, sparse, changed) AS filled
  FROM
  (
    SELECT c.delegate AS delegate, toUInt32(s.number) AS number, argMax(c.power, (c.block_number, c.log_index)) AS units, any(c.decimals) AS decimals
    FROM
    (
      SELECT delegate, toUnixTimestamp(at) AS at, power, block_number, log_index, decimals, 1 AS one
      FROM delegate_powers WHERE {has_powers: Bool} AND dao = {dao: UInt64} AND space = {space: String} AND ${isWanted}
    ) AS c
    ASOF INNER JOIN
    (
      SELECT 1 AS one, pair.1 AS at, pair.2 AS number FROM (SELECT arrayJoin(arrayZip(${START_TIMES}, arrayEnumerate(${START_TIMES}))) AS pair)
    ) AS s ON s.one = c.one AND s.at >= c.at
    GROUP BY delegate, number
  )
  GROUP BY delegate
)
GROUP BY person`

/** Columns of a person from the range, from its votes `v` and its powers `e`. */
const OF_PERSON = `{proposals: UInt32} AS proposals, {known: UInt32} AS known, {onchain: UInt32} AS onchain_known,
  {has_powers: Bool} AND onchain_known = length(${START_TIMES}) AS is_eligibility_known,
  v.voted AS voted, v.onchain_voted AS onchain_voted, if(v.powers_unknown > 0, NULL, v.power_cast) AS power_cast,
  v.first_vote_at AS first_vote_at, v.last_vote_at AS last_vote_at, if(v.voted = 0, NULL, v.hours) AS hours,
  if(v.comparable = 0, NULL, v.agreed / v.comparable) AS majority_share, v.agreed AS agreed,
  arrayFilter((key, units) -> units > 0, arrayMap(id -> cityHash64(id), ${START_IDS}), arrayResize(e.units, length(${START_TIMES}))) AS eligible_keys,
  if(is_eligibility_known, length(eligible_keys), NULL) AS eligible,
  if(is_eligibility_known AND notEmpty(eligible_keys), length(arrayIntersect(eligible_keys, v.onchain)) / length(eligible_keys), NULL) AS eligible_participation,
  ${toWholeTokens('arraySum(e.units)', 'e.decimals')} AS power_held,
  if(is_eligibility_known AND power_held > 0 AND v.powers_unknown = 0, v.onchain_power / power_held, NULL) AS power_participation`

const BALLOT = ', any(w.id) AS id, any(w.choices) AS choices'

/** All ballots of a person; an unknown power is NULL. */
const BALLOTS = `,
  CAST(groupArray(tuple(id, if(is_unknown, NULL, toFloat64(power)), toInt64(toUnixTimestamp(last_at)) * 1000, if(choice = '', NULL, ${toChoiceText('choice', 'choices')}), toBool(agrees))),
    'Array(Tuple(id String, power Nullable(Float64), at Int64, choice Nullable(String), agrees Nullable(Bool)))') AS ballots`

const IS_OWN = 'has({addresses: Array(String)}, delegate)'

/** One row of a person with the addresses of the parameter `addresses`, also if it did nothing. */
export const toPersonSql = (isPast: boolean): string => `
WITH ${COUNTED}
SELECT ${OF_PERSON.replaceAll(/v\.(first|last)_vote_at/g, 'toInt64(toUnixTimestamp(v.$1_vote_at)) * 1000')}, v.ballots AS ballots, if({has_powers: Bool}, ${toWholeTokens('d.own', 'd.decimals')}, NULL) AS power,
  if(d.own > 0, 1 + d.ahead, NULL) AS rank
FROM
(
  SELECT 'one' AS person, any(decimals) AS decimals, sumIf(units, is_own) AS own,
    arrayCount(other -> other > own, groupArrayIf(units, NOT is_own)) AS ahead
  FROM (SELECT units, decimals, ${IS_OWN} AS is_own FROM (${toPowers(isPast)}))
) AS d
LEFT JOIN (${toVoted(toBallots("'one'", 'voter IN {addresses: Array(String)}', BALLOT), BALLOTS)}) AS v ON v.person = d.person
LEFT JOIN (${toEligible("'one'", 'delegate IN {addresses: Array(String)}')}) AS e ON e.person = d.person`

/** A row for each address that had power at the end of the range, or that voted in it. */
export const toPersonsSql = (isPast: boolean): string => `
WITH ${COUNTED}
SELECT if(p.delegate = '', v.person, p.delegate) AS person, ${OF_PERSON},
  if({has_powers: Bool}, p.power, NULL) AS power, if(p.delegate = '', NULL, p.place) AS rank
FROM
(
  SELECT delegate, ${toWholeTokens('units', 'decimals')} AS power, rank() OVER (ORDER BY units DESC) AS place FROM (${toPowers(isPast)})
) AS p
FULL OUTER JOIN (${toVoted(toBallots('voter', 'true'))}) AS v ON v.person = p.delegate
LEFT JOIN (${toEligible('delegate', 'true')}) AS e ON e.person = if(p.delegate = '', v.person, p.delegate)`
