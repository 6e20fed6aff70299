import { z } from 'zod'
import { FROM_PROPOSALS } from '../../shared/datasets/governance-records.ts'
import { COUNTED, READINGS, SOURCES, toSource } from '../../shared/datasets/governance-scope.ts'
import type { Database } from '../../shared/store/store.ts'
import { toWholeTokens } from '../../shared/whole-tokens.ts'
import { toChoiceText } from './choice.ts'
import { toPowers } from './delegates.ts'
import type { OwnPower } from './powers.ts'

/**
 * How persons took part in the proposals of a range of time, in SQL: for one person, who may have several addresses, and for
 * all addresses of a DAO. Parameters: those of `toProposalRange`, for one person also those of `toPersonParams`.
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
 * The proposals of the range, and those whose end is unknown. `leading` is the choice with the most power as
 * JSON, apart from `abstain`, which decides nothing; empty if two have as much, and if the scores are unknown.
 */
const PROPOSALS = `
SELECT p.id AS id, toString(p.space) AS space, p.proposal AS proposal, d.title AS title, ${toSource('p.space')} AS source,
  d.starts_at AS starts, d.ends_at AS ends, if(match(d.url, '^https?://'), d.url, NULL) AS url, ${REASON} AS reason,
  indexOf(arrayMap(choice -> lowerUTF8(choice), d.choices), 'abstain') AS abstaining, if(abstaining = 0, '', toString(abstaining)) AS abstain,
  arrayMap((score, number) -> if(number = abstaining, -1, score), d.scores, arrayEnumerate(d.scores)) AS deciding,
  if(notEmpty(deciding) AND arrayMax(deciding) > 0 AND countEqual(deciding, arrayMax(deciding)) = 1, toString(indexOf(deciding, arrayMax(deciding))), '') AS leading
${FROM_PROPOSALS()}
INNER JOIN ${READINGS} AS r ON r.dao = p.dao AND r.space = p.space
WHERE ((${IN_RANGE}) OR (d.ends_at IS NULL AND p.created_at < ${toTime('to')})) AND d.outcome != 'canceled' AND NOT d.is_flagged`

const listed = z.object({
  id: z.string(),
  space: z.string(),
  proposal: z.string(),
  title: z.string(),
  source: z.enum(SOURCES),
  starts: z.int().nullable(),
  ends: z.int().nullable(),
  url: z.string().nullable(),
  reason: z.enum(['', ...UNKNOWN_REASONS]),
  leading: z.string(),
  abstain: z.string(),
})

/** A proposal of a range; times are Unix milliseconds. Its end is null if it is unknown, and it may then belong to it. */
export type ListedProposal = z.infer<typeof listed>

/** Reads the proposals of a range, in the order of their ends, and those whose end is unknown. */
export const readProposals = (db: Database, params: Readonly<Record<string, unknown>>): Promise<ListedProposal[]> =>
  db.rows({
    name: 'governance-range',
    sql: `WITH ${COUNTED}
SELECT id, space, proposal, title, source, toInt64(toUnixTimestamp(starts)) * 1000 AS starts, toInt64(toUnixTimestamp(ends)) * 1000 AS ends,
  url, reason, leading, abstain
FROM (${PROPOSALS}) ORDER BY ends, id`,
    params,
    schema: listed,
  })

/**
 * The parameters about the proposals of a range: their numbers, the first start, start and id of each one on-chain, in the
 * order of the starts, and those of `toWantedParams`. As parameters, because ClickHouse would read the proposals again for each
 * use of them, and analyzing that statement takes longer than reading the votes of a person.
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
    ...toWantedParams(dated),
  }
}

/** The parameters for the proposals whose votes are read; each has an end. */
export function toWantedParams(proposals: readonly ListedProposal[]): Readonly<Record<string, unknown>> {
  return {
    wanted_spaces: proposals.map(({ space }) => space),
    wanted_proposals: proposals.map(({ proposal }) => proposal),
    wanted_ids: proposals.map(({ id }) => id),
    wanted_known: proposals.map(({ reason }) => (reason === '' ? 1 : 0)),
    wanted_onchain: proposals.map(({ reason, source }) => (reason === '' && source === 'governor' ? 1 : 0)),
    wanted_ends: proposals.map(({ ends }) => (ends ?? 0) / 1000),
    wanted_leading: proposals.map(({ leading }) => leading),
    wanted_abstain: proposals.map(({ abstain }) => abstain),
  }
}

/** The proposals of `toWantedParams`, with their positions from 1 on. */
const WANTED = `
SELECT tupleElement(one, 1) AS space, tupleElement(one, 2) AS proposal, tupleElement(one, 3) AS id, cityHash64(id) AS key, tupleElement(one, 4) AS is_known,
  tupleElement(one, 5) AS is_onchain, tupleElement(one, 6) AS ends, tupleElement(one, 7) AS leading, tupleElement(one, 8) AS abstain, tupleElement(one, 9) AS position
FROM
(
  SELECT arrayJoin(arrayZip({wanted_spaces: Array(String)}, {wanted_proposals: Array(String)}, {wanted_ids: Array(String)}, {wanted_known: Array(UInt8)},
    {wanted_onchain: Array(UInt8)}, {wanted_ends: Array(UInt32)}, {wanted_leading: Array(String)}, {wanted_abstain: Array(String)},
    arrayEnumerate({wanted_ids: Array(String)}))) AS one
)`

/** Like `WANTED`, with the texts of the choices. */
const WANTED_WITH_CHOICES = `
SELECT w.*, d.choices AS choices FROM (${WANTED}) AS w
LEFT JOIN (SELECT toString(space) AS space, proposal, choices FROM dao_proposal_details FINAL WHERE dao = {dao: UInt64}) AS d
  ON d.space = w.space AND d.proposal = w.proposal`

const START_TIMES = '{start_times: Array(UInt32)}'
const START_IDS = '{start_ids: Array(String)}'

/**
 * The votes of each person on each of the `wanted` proposals; `person` is SQL of the person of a `voter`. `agrees`: whether
 * the person voted for the choice with the most power, NULL if this is unknown. `choice` is empty if the votes differ.
 * Votes are cast after the start, which may be an estimate.
 */
const toBallots = (person: string, isWanted: string, { wanted = WANTED, more = '' } = {}) => `
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
INNER JOIN (${wanted}) AS w ON w.space = c.space AND w.proposal = c.proposal
GROUP BY person, key`

/** Most vectors that are compared with each other, and most members of a vector in the answer. */
const MOST_VECTORS = 2_000
export const MOST_MEMBERS = 100

/** A number for a choice: that of one choice, and a hash above all of them for others. */
const CODE =
  'if(length(choice) < 10 AND isNotNull(toUInt32OrNull(choice)), toUInt64(toUInt32OrZero(choice)), bitOr(bitShiftRight(sipHash64(choice), 12), bitShiftLeft(toUInt64(1), 52)))'

/**
 * The voters by their choices on the proposals of `toWantedParams`, those with the most power first: a row for all with the same
 * choices. `positions` are those of the voted proposals, with the `codes` of the choices; both are empty after the first
 * vectors. The power of a voter is that of its last vote with a known power. `powers` are those of its voters.
 */
export const VECTORS_SQL = `
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
    FROM (${toBallots('voter', 'true', { more: ', any(w.position) AS position' })})
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
  quantileExactInclusiveIf(0.5)((toInt64(ends) - toInt64(toUnixTimestamp(last_at))) / 3600, is_known) AS hours,
  countIf(ifNull(agrees, 0) AND is_known) AS agreed, countIf(isNotNull(agrees) AND is_known) AS comparable,
  groupArrayIf(key, is_onchain) AS onchain, toFloat64(sumIf(power, is_onchain)) AS onchain_power${more}
FROM (${ballots})
GROUP BY person`

/**
 * The on-chain votes at whose start a person had power, and the sum of these powers in whole tokens. Changes of a delegate are first reduced to the last one before
 * each start; `filled` repeats it until the next one.
 */
const toEligible = (person: string, isWanted: string) => `
SELECT person, arrayFilter((key, own) -> own > 0, arrayMap(id -> cityHash64(id), ${START_IDS}), units) AS eligible_keys,
  ${toWholeTokens('arraySum(units)', 'decimals')} AS power_held
FROM
(
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
  GROUP BY person
)`

/** Columns of a person from the range, from its votes `v` and its powers `e`. */
const OF_PERSON = `{proposals: UInt32} AS proposals, {known: UInt32} AS known, {onchain: UInt32} AS onchain_known,
  {has_powers: Bool} AND onchain_known = length(${START_TIMES}) AS is_eligibility_known,
  v.voted AS voted, v.onchain_voted AS onchain_voted, if(v.powers_unknown > 0, NULL, v.power_cast) AS power_cast,
  v.first_vote_at AS first_vote_at, v.last_vote_at AS last_vote_at, if(v.voted = 0, NULL, v.hours) AS hours,
  if(v.comparable = 0, NULL, v.agreed / v.comparable) AS majority_share, v.agreed AS agreed,
  if(is_eligibility_known, length(e.eligible_keys), NULL) AS eligible,
  if(is_eligibility_known AND notEmpty(e.eligible_keys), length(arrayIntersect(e.eligible_keys, v.onchain)) / length(e.eligible_keys), NULL) AS eligible_participation,
  if(is_eligibility_known AND e.power_held > 0 AND v.powers_unknown = 0, v.onchain_power / e.power_held, NULL) AS power_participation`

const BALLOT = { wanted: WANTED_WITH_CHOICES, more: ', any(w.id) AS id, any(w.choices) AS choices' }

/** All ballots of a person; an unknown power is NULL. */
const BALLOTS = `,
  CAST(groupArray(tuple(id, if(is_unknown, NULL, toFloat64(power)), toInt64(toUnixTimestamp(last_at)) * 1000, if(choice = '', NULL, ${toChoiceText('choice', 'choices')}), toBool(agrees))),
    'Array(Tuple(id String, power Nullable(Float64), at Int64, choice Nullable(String), agrees Nullable(Bool)))') AS ballots`

/** The parameters for one person, with the power that is delegated to the addresses. */
export const toPersonParams = (addresses: readonly string[], { units, decimals }: OwnPower) => ({
  ...{ addresses, own_units: String(units), own_decimals: decimals },
})

/** One row of a person with the addresses of the parameter `addresses`, also if it did nothing. */
export const PERSON_SQL = `
SELECT ${OF_PERSON.replaceAll(/v\.(first|last)_vote_at/g, 'toInt64(toUnixTimestamp(v.$1_vote_at)) * 1000')}, v.ballots AS ballots,
  if({has_powers: Bool}, ${toWholeTokens('{own_units: UInt256}', '{own_decimals: UInt8}')}, NULL) AS power
FROM (SELECT 'one' AS person) AS d
LEFT JOIN (${toVoted(toBallots("'one'", 'voter IN {addresses: Array(String)}', BALLOT), BALLOTS)}) AS v ON v.person = d.person
LEFT JOIN (${toEligible("'one'", 'delegate IN {addresses: Array(String)}')}) AS e ON e.person = d.person`

/** A row for each address that had power at the end of the range, or that voted in it. */
export const toPersonsSql = (isPast: boolean): string => `
SELECT if(p.delegate = '', v.person, p.delegate) AS person, ${OF_PERSON},
  if({has_powers: Bool}, p.power, NULL) AS power, if(p.delegate = '', NULL, p.place) AS rank
FROM
(
  SELECT delegate, ${toWholeTokens('units', 'decimals')} AS power, rank() OVER (ORDER BY units DESC) AS place FROM (${toPowers(isPast)})
) AS p
FULL OUTER JOIN (${toVoted(toBallots('voter', 'true'))}) AS v ON v.person = p.delegate
LEFT JOIN (${toEligible('delegate', 'true')}) AS e ON e.person = if(p.delegate = '', v.person, p.delegate)`
