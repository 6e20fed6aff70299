import { z } from 'zod'
import { FROM_PROPOSALS } from '../../shared/datasets/governance-records.ts'
import { COUNTED, READINGS, SOURCES, toSource } from '../../shared/datasets/governance-scope.ts'
import type { Database } from '../../shared/store/store.ts'
import { toWholeTokens } from '../../shared/whole-tokens.ts'
import { toPowers } from './delegates.ts'

/**
 * How all addresses of a DAO took part in the proposals of a range of time, in SQL. Parameters: those of `toProposalRange`.
 * `person.ts` has one person, who may have several addresses.
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

/** Longer lists of choices are not read with the proposals: anyone can create a Snapshot proposal with a list of any length. */
const [MOST_CHOICES, MOST_CHOICE_BYTES] = [20, 1_000]

/** Most proposals of a range: their names are parameters of the statements. No DAO has had as many. */
export const MOST_PROPOSALS = 10_000

/**
 * The proposals of the range, and those whose end is unknown. `choices` is empty if they are long. `leading` is the choice with the most power as
 * JSON, apart from `abstain`, which decides nothing; empty if two have as much, and if the scores are unknown.
 */
const PROPOSALS = `
SELECT p.id AS id, toString(p.space) AS space, p.proposal AS proposal, d.title AS title, ${toSource('p.space')} AS source,
  d.starts_at AS starts, d.ends_at AS ends, if(match(d.url, '^https?://'), d.url, NULL) AS url, ${REASON} AS reason,
  if(length(d.choices) <= ${MOST_CHOICES} AND arraySum(arrayMap(choice -> length(choice), d.choices)) <= ${MOST_CHOICE_BYTES}, d.choices, []) AS choices,
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
  choices: z.array(z.string()),
})

/** A proposal of a range; times are Unix milliseconds. Its end is null if it is unknown, and it may then belong to it. */
export type ListedProposal = z.infer<typeof listed>

/** Reads the proposals of a range, in the order of their ends, and those whose end is unknown; at most one more than `MOST_PROPOSALS`. */
export const readProposals = (db: Database, params: Readonly<Record<string, unknown>>): Promise<ListedProposal[]> =>
  db.rows({
    name: 'governance-range',
    sql: `WITH ${COUNTED}
SELECT id, space, proposal, title, source, toInt64(toUnixTimestamp(starts)) * 1000 AS starts, toInt64(toUnixTimestamp(ends)) * 1000 AS ends,
  url, reason, leading, abstain, choices
FROM (${PROPOSALS}) ORDER BY ends, id LIMIT ${MOST_PROPOSALS + 1}`,
    params,
    schema: listed,
  })

/** The start of the vote on a proposal, in Unix seconds. */
export interface Start {
  readonly id: string
  readonly at: number
}

/** Whether a proposal is on-chain, and its votes are known. */
export const isKnownOnchain = ({ source, ends, reason }: ListedProposal): boolean =>
  source === 'governor' && ends !== null && reason === ''

/** The known starts of the votes on-chain, in their order. */
export const toStarts = (proposals: readonly ListedProposal[]): Start[] =>
  proposals
    .filter(isKnownOnchain)
    .flatMap(({ id, starts }) => (starts === null ? [] : [{ id, at: starts / 1000 }]))
    .sort((one, other) => one.at - other.at)

/**
 * The parameters about the proposals of a range: their numbers, the first start, start and id of each one on-chain, in the
 * order of the starts, and those of `toWantedParams`. As parameters, because ClickHouse would read the proposals again for each
 * use of them.
 */
export function toProposalParams(proposals: readonly ListedProposal[]): Readonly<Record<string, unknown>> {
  const dated = proposals.filter(({ ends }) => ends !== null)
  const started = toStarts(proposals)
  return {
    proposals: dated.length,
    known: dated.filter(({ reason }) => reason === '').length,
    onchain: dated.filter(isKnownOnchain).length,
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

/** A value of a wanted proposal, by its `position` from 1 on. */
const ofWanted = (member: string, type: string) => `{wanted_${member}: Array(${type})}[position]`

const START_TIMES = '{start_times: Array(UInt32)}'
const START_IDS = '{start_ids: Array(String)}'

/**
 * The votes of each voter on each of the proposals of `toWantedParams`. `choice` is the SQL of a vote's choice; if the votes
 * of a voter on a proposal differ, the choice is `mixed`. Votes are cast after the start, which may be an estimate. An array finds the position of a proposal once for each name in the column's dictionary, and
 * a join once for each vote. No two proposals of a range have one name: those of governors begin with their contract, and the same
 * proposal in a former space does not count.
 */
const toBallots = (choice = 'choice', mixed = "''") => `
SELECT voter AS person, position, cityHash64(${ofWanted('ids', 'String')}) AS key,
  sum(toDecimal256(ifNull(voting_power, 0), 18)) AS power, countIf(isNull(voting_power)) > 0 AS is_unknown,
  min(created_at) AS first_at, max(created_at) AS last_at, if(min(cast_choice) = max(cast_choice), min(cast_choice), ${mixed}) AS only_choice
FROM
(
  SELECT toUInt16(transform(proposal, {wanted_proposals: Array(String)}, arrayEnumerate({wanted_proposals: Array(String)}), 0)) AS position,
    voter, created_at, ${choice} AS cast_choice, voting_power
  FROM dao_cast_votes FINAL
  WHERE dao = {dao: UInt64} AND created_at >= ${toTime('first')} - INTERVAL 1 DAY AND created_at < ${toTime('to')}
    AND NOT is_replaced AND choice != 'null' AND position > 0 AND ${ofWanted('spaces', 'String')} = space
)
GROUP BY person, position`

/** The votes of each voter, with `agrees`: whether the person voted for the choice with the most power, NULL if this is unknown. */
const COMPARED_BALLOTS = `
SELECT *, ${ofWanted('known', 'UInt8')} AS is_known, ${ofWanted('onchain', 'UInt8')} AS is_onchain, ${ofWanted('ends', 'UInt32')} AS ends,
  ${ofWanted('leading', 'String')} AS leading,
  multiIf(leading = '' OR only_choice = ${ofWanted('abstain', 'String')} OR NOT match(only_choice, '^[0-9]+$'), NULL, only_choice = leading) AS agrees
FROM (${toBallots()})`

/** Most vectors that are compared with each other, and most members of a vector in the answer. */
const MOST_VECTORS = 2_000
export const MOST_MEMBERS = 100

/** A number of 48 bits for a choice: that of one choice, and a hash above all of them for others. */
const toCode = (choice: string) =>
  `if(length(${choice}) < 10 AND isNotNull(toUInt32OrNull(${choice})), toUInt64(toUInt32OrZero(${choice})), bitOr(bitShiftRight(sipHash64(${choice}), 17), bitShiftLeft(toUInt64(1), 47)))`

const CODED_BALLOTS = toBallots(toCode('choice'), toCode("''"))

/**
 * The voters by their choices on the proposals of `toWantedParams`, those with the most power first: a row for all with the same
 * choices. `positions` are those of the voted proposals, with the `codes` of the choices; both are empty after the first
 * vectors. The power of a voter is that of its last vote with a known power. `powers` are those of its voters.
 */
export const VECTORS_SQL = `
SELECT row_number() OVER (ORDER BY sum_power DESC, hash) <= ${MOST_VECTORS} AS is_compared, arrayMap(one -> bitShiftRight(one, 48), if(is_compared, vector, [])) AS positions,
  arrayMap(one -> bitAnd(one, bitShiftLeft(toUInt64(1), 48) - 1), if(is_compared, vector, [])) AS codes, sum_power AS power, voters, members, powers
FROM
(
  SELECT hash, any(vector) AS vector, sum(power) AS sum_power, count() AS voters,
    arraySlice(arrayMap(one -> one.2, arraySort(one -> (-one.1, one.2), groupArray(tuple(power, person)))), 1, ${MOST_MEMBERS}) AS members,
    groupArray(power) AS powers
  FROM
  (
    SELECT person, toFloat64(argMaxIf(power, (last_at, key), NOT is_unknown)) AS power,
      arraySort(groupArray(bitOr(bitShiftLeft(toUInt64(position), 48), only_choice))) AS vector, sipHash64(vector) AS hash
    FROM (${CODED_BALLOTS})
    GROUP BY person
  )
  GROUP BY hash
)
ORDER BY power DESC, hash`

/** The known votes of each person, added up. */
const VOTED = `
SELECT person, countIf(is_known) AS voted, countIf(is_onchain) AS onchain_voted,
  toFloat64(sumIf(power, is_known)) AS power_cast, countIf(is_unknown AND is_known) AS powers_unknown,
  minOrNullIf(first_at, is_known) AS first_vote_at, maxOrNullIf(last_at, is_known) AS last_vote_at,
  quantileExactInclusiveIf(0.5)((toInt64(ends) - toInt64(toUnixTimestamp(last_at))) / 3600, is_known) AS hours,
  countIf(ifNull(agrees, 0) AND is_known) AS agreed, countIf(isNotNull(agrees) AND is_known) AS comparable,
  groupArrayIf(key, is_onchain) AS onchain, toFloat64(sumIf(power, is_onchain)) AS onchain_power
FROM (${COMPARED_BALLOTS})
GROUP BY person`

/**
 * The on-chain votes at whose start a person had power, and the sum of these powers in whole tokens. Changes of a delegate are first reduced to the last one before
 * each start; `filled` repeats it until the next one.
 */
const ELIGIBLE = `
SELECT person, arrayFilter((key, own) -> own > 0, arrayMap(id -> cityHash64(id), ${START_IDS}), units) AS eligible_keys,
  ${toWholeTokens('arraySum(units)', 'decimals')} AS power_held
FROM
(
  SELECT delegate AS person, sumForEach(arrayResize(filled, length(${START_TIMES}), filled[-1])) AS units, any(decimals) AS decimals FROM
  (
    SELECT delegate, any(decimals) AS decimals, groupArrayInsertAt(units, toUInt32(number - 1)) AS sparse,
      groupArrayInsertAt(toUInt8(1), toUInt32(number - 1)) AS changed, arrayFill((units, is_changed) -> is_changed, sparse, changed) AS filled
    FROM
    (
      SELECT c.delegate AS delegate, toUInt32(s.number) AS number, argMax(c.power, (c.block_number, c.log_index)) AS units, any(c.decimals) AS decimals
      FROM
      (
        SELECT delegate, toUnixTimestamp(at) AS at, power, block_number, log_index, decimals, 1 AS one
        FROM delegate_powers WHERE {has_powers: Bool} AND dao = {dao: UInt64} AND space = {space: String}
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

/** A row for each address that had power at the end of the range, or that voted in it. */
export const toPersonsSql = (isPast: boolean): string => `
SELECT if(p.delegate = '', v.person, p.delegate) AS person, ${OF_PERSON},
  if({has_powers: Bool}, p.power, NULL) AS power, if(p.delegate = '', NULL, p.place) AS rank
FROM
(
  SELECT delegate, ${toWholeTokens('units', 'decimals')} AS power, rank() OVER (ORDER BY units DESC) AS place FROM (${toPowers(isPast)})
) AS p
FULL OUTER JOIN (${VOTED}) AS v ON v.person = p.delegate
LEFT JOIN (${ELIGIBLE}) AS e ON e.person = if(p.delegate = '', v.person, p.delegate)`
