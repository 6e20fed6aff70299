import { z } from 'zod'
import type { Database } from '../../shared/store/store.ts'
import { toChoiceText } from './choice.ts'
import { isKnownOnchain, type ListedProposal } from './participation.ts'
import type { OwnPower } from './powers.ts'
import type { ProposalRange } from './range.ts'

/**
 * How one person took part in the proposals of a range, by the rules of `participation.ts`. The statements select the rows of the
 * person only, and the rest is computed here: ClickHouse needs more time to analyze a statement with all of it than to run it.
 */

const toTime = (parameter: string) => `fromUnixTimestamp64Milli({${parameter}: Int64}, 'UTC')`

/** Decimals of the sums of powers. */
const POWER_DECIMALS = 18

/** A decimal text in its smallest units. */
function toUnits(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(POWER_DECIMALS, '0'))
}

const castVotes = z.object({
  space: z.string(),
  proposal: z.string(),
  units: z.string().transform(toUnits),
  is_unknown: z.int(),
  first_at: z.int(),
  last_at: z.int(),
  only_choice: z.string(),
})

/** The votes of the person on each proposal, also on proposals that are not in the range. `only_choice` is empty if the votes differ. */
const VOTES_SQL = `
SELECT toString(space) AS space, toString(proposal) AS proposal,
  toString(sum(toDecimal256(ifNull(voting_power, 0), ${POWER_DECIMALS}))) AS units, countIf(isNull(voting_power)) > 0 AS is_unknown,
  toUnixTimestamp(min(created_at)) AS first_at, toUnixTimestamp(max(created_at)) AS last_at, if(min(choice) = max(choice), min(choice), '') AS only_choice
FROM dao_votes_by_voter FINAL
WHERE dao = {dao: UInt64} AND voter IN {addresses: Array(String)} AND created_at >= ${toTime('first')} - INTERVAL 1 DAY AND created_at < ${toTime('to')}
  AND NOT is_replaced AND choice != 'null'
GROUP BY space, proposal`

const powerChanges = z.object({
  delegate: z.string(),
  number: z.int(),
  units: z.string().transform(BigInt),
  decimals: z.int(),
})

/** The last power of each address before the start of a proposal, if it changed since the start before; `number` is that of the start. */
const POWERS_SQL = `
SELECT delegate, arrayFirstIndex(start -> start >= toUnixTimestamp(at), {start_times: Array(UInt32)}) AS number,
  toString(argMax(power, (block_number, log_index))) AS units, any(decimals) AS decimals
FROM delegate_powers WHERE dao = {dao: UInt64} AND space = {space: String} AND delegate IN {addresses: Array(String)}
GROUP BY delegate, number HAVING number > 0
ORDER BY delegate, number`

/** The votes of a person on a proposal; times are Unix milliseconds, unknown values are null. */
export interface Ballot {
  readonly power: number | null
  readonly at: number
  readonly choice: string | null
  readonly agrees: boolean | null
}

/** Numbers about a person; those that are unknown are null. */
export interface Participation {
  readonly voted: number
  readonly onchainVoted: number
  readonly agreed: number
  readonly majorityShare: number | null
  readonly powerCast: number | null
  readonly firstVoteAt: number | null
  readonly lastVoteAt: number | null
  readonly medianHours: number | null
  readonly eligible: number | null
  readonly eligibleParticipation: number | null
  readonly powerParticipation: number | null
  /** Power at the end of the range, in whole tokens. */
  readonly power: number | null
  /** By the id of the proposal. */
  readonly ballots: ReadonlyMap<string, Ballot>
}

type CastVote = z.infer<typeof castVotes>

/** The votes on a proposal of the range. */
interface Cast extends CastVote {
  readonly about: ListedProposal & { readonly ends: number }
}

/** Converts base units to tokens, as the nearest double. */
const toTokens = (units: bigint, decimals: number) => Number(`${units}e-${decimals}`)

/**
 * A sum of powers as the number that ClickHouse converts such a decimal to, so that a record equals its row in the table of all
 * records: its digits are rounded to 64 bits, then to a number, and then divided.
 */
export function toPower(units: bigint): number {
  const excess = BigInt(Math.max(0, units.toString(2).length - 64))
  const [floor, half] = [units >> excess, excess === 0n ? 0n : 1n << (excess - 1n)]
  const rest = units - (floor << excess)
  const rounded = half > 0n && (rest > half || (rest === half && (floor & 1n) === 1n)) ? floor + 1n : floor
  return Number(rounded << excess) / 10 ** POWER_DECIMALS
}

/** Whether the votes were for the choice with the most power; null if they were for none or several, or if it is unknown. */
function findAgreement({ only_choice: choice, about }: Cast): boolean | null {
  if (about.leading === '' || choice === about.abstain || !/^[0-9]+$/.test(choice)) return null
  return choice === about.leading
}

const SIMPLE_CHOICE = /^(0|[1-9][0-9]{0,8})$/

const CHOICES_SQL = `
SELECT w.id AS id, ${toChoiceText('w.voted', 'd.choices')} AS text FROM
(
  SELECT one.1 AS id, one.2 AS space, one.3 AS proposal, one.4 AS voted
  FROM (SELECT arrayJoin(arrayZip({ids: Array(String)}, {spaces: Array(String)}, {proposals: Array(String)}, {voted: Array(String)})) AS one)
) AS w
LEFT JOIN
(
  SELECT toString(space) AS space, proposal, choices FROM dao_proposal_details FINAL
  WHERE dao = {dao: UInt64} AND proposal IN {proposals: Array(String)}
) AS d ON d.space = w.space AND d.proposal = w.proposal`

/**
 * The choices in the words of the proposals, by the id of the proposal. ClickHouse reads those that are not the number of one choice,
 * and those of proposals with long choices.
 */
async function findTexts(
  db: Database,
  dao: unknown,
  cast: readonly Cast[],
): Promise<ReadonlyMap<string, string | null>> {
  const texts = new Map<string, string | null>()
  const others: Cast[] = []
  for (const one of cast) {
    const { only_choice: choice, about } = one
    if (choice === '') texts.set(about.id, null)
    else if (SIMPLE_CHOICE.test(choice) && about.choices.length > 0)
      texts.set(about.id, about.choices[Number(choice) - 1] ?? choice)
    else others.push(one)
  }
  if (others.length === 0) return texts
  const rows = await db.rows({
    name: 'governance-record-choices',
    sql: CHOICES_SQL,
    params: {
      dao,
      ids: others.map(({ about }) => about.id),
      spaces: others.map(({ about }) => about.space),
      proposals: others.map(({ about }) => about.proposal),
      voted: others.map(({ only_choice: choice }) => choice),
    },
    schema: z.object({ id: z.string(), text: z.string().nullable() }),
  })
  for (const { id, text } of rows) texts.set(id, text)
  return texts
}

/** The middle of values, or the mean of the two in the middle; null without values. */
function findMedian(values: readonly number[]): number | null {
  const sorted = [...values].sort((one, other) => one - other)
  const place = (sorted.length - 1) / 2
  const [low, high] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]]
  return low === undefined || high === undefined ? null : low + (place - Math.floor(place)) * (high - low)
}

/** The power of the person at each start, from the changes of its addresses; `decimals` are those of the token. */
function toHeld(changes: readonly z.infer<typeof powerChanges>[], starts: number) {
  const held = new Array<bigint>(starts).fill(0n)
  for (const [index, { delegate, number, units }] of changes.entries()) {
    const next = changes[index + 1]
    const end = next?.delegate === delegate ? next.number - 1 : starts
    for (let at = number - 1; at < end; at += 1) held[at] = (held[at] ?? 0n) + units
  }
  return { held, decimals: changes[0]?.decimals ?? 0 }
}

const toKey = ({ space, proposal }: { readonly space: string; readonly proposal: string }) =>
  JSON.stringify([space, proposal])

/** Reads how the person with these addresses took part in the proposals of a range. */
export async function readPerson(
  db: Database,
  range: ProposalRange,
  addresses: readonly string[],
  own: OwnPower,
): Promise<Participation> {
  const { params, proposals, starts, hasPowers } = range
  const { dao, space, first, to } = params
  const [votes, changes] = await Promise.all([
    db.rows({ name: 'governance-record', sql: VOTES_SQL, params: { dao, first, to, addresses }, schema: castVotes }),
    hasPowers && starts.length > 0
      ? db.rows({
          name: 'governance-record-powers',
          sql: POWERS_SQL,
          params: { dao, space, addresses, start_times: starts.map(({ at }) => at) },
          schema: powerChanges,
        })
      : [],
  ])
  const byKey = new Map(proposals.map((one) => [toKey(one), one]))
  const cast = votes.flatMap((vote): Cast[] => {
    const about = byKey.get(toKey(vote))
    return about === undefined || about.ends === null ? [] : [{ ...vote, about: { ...about, ends: about.ends } }]
  })
  const texts = await findTexts(db, dao, cast)
  return {
    ...toParticipation(cast, toHeld(changes, starts.length), range),
    power: hasPowers ? toTokens(own.units, own.decimals) : null,
    ballots: new Map(
      cast.map((one) => [
        one.about.id,
        {
          power: one.is_unknown > 0 ? null : toPower(one.units),
          at: one.last_at * 1000,
          choice: texts.get(one.about.id) ?? null,
          agrees: findAgreement(one),
        },
      ]),
    ),
  }
}

/** The numbers about the person, from its votes and its power at each start. */
function toParticipation(
  cast: readonly Cast[],
  { held, decimals }: ReturnType<typeof toHeld>,
  { proposals, starts, hasPowers }: ProposalRange,
): Omit<Participation, 'power' | 'ballots'> {
  const known = cast.filter(({ about }) => about.reason === '')
  const onchain = known.filter(({ about }) => about.source === 'governor')
  const arePowersKnown = known.every(({ is_unknown: unknown }) => unknown === 0)
  const agreements = known.map(findAgreement).filter((agrees) => agrees !== null)
  const agreed = agreements.filter(Boolean).length
  const isEligibilityKnown = hasPowers && starts.length === proposals.filter(isKnownOnchain).length
  const eligible = isEligibilityKnown ? starts.filter((_, at) => (held[at] ?? 0n) > 0n) : null
  const voted = new Set(onchain.map(({ about }) => about.id))
  const powerHeld = toTokens(addUp(held), decimals)
  const isPowerKnown = isEligibilityKnown && arePowersKnown && powerHeld > 0
  const toTime = (times: readonly number[], pick: (one: number, other: number) => number) =>
    times.length === 0 ? null : 1000 * times.reduce((one, other) => pick(one, other))
  return {
    ...{ voted: known.length, onchainVoted: onchain.length, agreed },
    majorityShare: toShare(agreed, agreements.length),
    powerCast: arePowersKnown ? toPower(addUp(known.map(({ units }) => units))) : null,
    firstVoteAt: toTime(
      known.map((one) => one.first_at),
      Math.min,
    ),
    lastVoteAt: toTime(
      known.map((one) => one.last_at),
      Math.max,
    ),
    medianHours: findMedian(known.map(({ about, last_at: last }) => (about.ends / 1000 - last) / 3600)),
    eligible: eligible?.length ?? null,
    eligibleParticipation:
      eligible === null ? null : toShare(eligible.filter(({ id }) => voted.has(id)).length, eligible.length),
    powerParticipation: isPowerKnown ? toPower(addUp(onchain.map(({ units }) => units))) / powerHeld : null,
  }
}

/** Returns `part / all`, or null if `all` is 0. */
export const toShare = (part: number, all: number): number | null => (all === 0 ? null : part / all)

const addUp = (units: readonly bigint[]) => units.reduce((sum, one) => sum + one, 0n)
