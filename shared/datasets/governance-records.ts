import { z } from 'zod'
import { toIdSql } from '../ids.ts'
import { columnTypes, countOrNull, idValue, numberIn, timeValue } from '../record-values.ts'
import { isGovernor } from './governance.ts'
import { QUORUM_VALUES, quorumState } from './governance-quorums.ts'
import { COUNTED, COUNTS, IS_COUNTED, OF_SCOPE, SOURCES, toSource } from './governance-scope.ts'
import { toOutcome } from './governors.ts'

/** The states of a proposal. */
export const STATES = ['active', 'closed', 'pending', 'unsettled'] as const

const power = numberIn('voting power')

/** A voting power as a decimal text. */
export const exactPower = z.string().regex(/^\d+(\.\d+)?$/)

/** SQL for an integer in base units as a decimal text of whole tokens; NULL stays NULL. */
export function toDecimalText(units: string, decimals: string): string {
  // leftPad cuts a text that is longer than its length.
  const digits = `leftPad(toString(${units}), greatest(length(toString(${units})), ${decimals} + 1), '0')`
  const whole = `substring(${digits}, 1, length(${digits}) - ${decimals})`
  const fraction = `trimRight(substring(${digits}, length(${digits}) - ${decimals} + 1), '0')`
  return `if(${decimals} = 0 OR ${fraction} = '', ${whole}, concat(${whole}, '.', ${fraction}))`
}

const OUTCOMES = ['canceled', 'queued', 'executed', 'expired'] as const

export const proposal = z
  .strictObject({
    _id: idValue.describe('Id of the proposal.'),
    dao: idValue.describe('Id of the DAO.'),
    title: z.string().describe('Its title, empty where it was not collected.'),
    author: z.string().describe('Address of its author, in lower case.'),
    state: z
      .enum(STATES)
      .nullable()
      .describe(
        '`pending` before the vote starts, `active` until it ends, then `closed`, by the clock; `unsettled` after the end while Snapshot has not counted all votes or revealed secret choices, so that `scores` are not final; null where its times were not collected.',
      ),
    choices: z.array(z.string()).describe('Choices; a vote contains their numbers, starting at 1.'),
    scores: z.array(power).describe('Voting power of each choice; empty if the source does not report it.'),
    scoresTotal: power.nullable().describe('Voting power of all votes; null if the source does not report it.'),
    votes: countOrNull.describe(
      'Votes that the source counted when the proposal was last read; null where it was not collected.',
    ),
    quorum: power
      .nullable()
      .describe(
        'Required voting power; null if the source does not report it. On governors it is the one that the contract states for the proposal, from the start of its vote on.',
      ),
    createdAt: timeValue.describe('When it was made.'),
    startsAt: timeValue.nullable().describe('When the vote starts; null where it was not collected.'),
    endsAt: timeValue.nullable().describe('When the vote ends; null where it was not collected.'),
    url: z.url().nullable().describe('URL of its web page; null if the source does not report it.'),
  })
  .meta({ id: 'GovernanceProposal', description: 'A proposal that a DAO votes on, or voted on.' })

export const PROPOSAL_OF_SOURCE = {
  source: z
    .enum(SOURCES)
    .describe('Where votes on it are cast: on `snapshot`, or on a `governor`, which is a contract.'),
  outcome: z
    .enum(OUTCOMES)
    .nullable()
    .describe(
      'Outcome on its chain, which closes the proposal: also what happened in its timelock. `expired` if it was queued and its timelock no longer executes it. Null if it has none, and for all proposals on Snapshot.',
    ),
  timesEstimated: z
    .boolean()
    .describe(
      'Whether `startsAt` or `endsAt` is an estimate: the contract counts blocks, and the chain has not reached that one.',
    ),
  flagged: z.boolean().describe('Whether Snapshot flagged it as spam or a scam; false on governors.'),
  queuedAt: timeValue.nullable().describe('When it was queued on its chain; null if it was not, and on Snapshot.'),
  executableAt: timeValue
    .nullable()
    .describe(
      'From when it can be executed, as its timelock states; null if it was not queued, was canceled or has expired, or if its contract does not state it, and on Snapshot.',
    ),
  executedAt: timeValue
    .nullable()
    .describe('When it was executed, also directly by its timelock; null if it was not, and on Snapshot.'),
  canceledAt: timeValue
    .nullable()
    .describe('When it was canceled or vetoed, also in its timelock; null if it was not, and on Snapshot.'),
}

export const proposalOfSource = proposal
  .extend(PROPOSAL_OF_SOURCE)
  .meta({ id: 'GovernanceProposalOfSource', description: 'A proposal, and where votes on it are cast. With `source`.' })

export const detailedProposal = proposalOfSource
  .extend({
    scoresExact: z
      .array(exactPower)
      .describe(
        'Voting power for each choice with all digits, as decimal texts; empty on Snapshot, which counts in floating-point numbers. With `exact=true`.',
      ),
    scoresTotalExact: exactPower
      .nullable()
      .describe('Voting power of all votes with all digits; null on Snapshot. With `exact=true`.'),
    body: z
      .string()
      .nullable()
      .describe(
        'Its text in Markdown, as written in the proposal: show it as untrusted. Empty if the author wrote none; null if it was not collected. With `include=body`.',
      ),
    quorumState: quorumState.describe('The quorum, and how much is missing. With `include=quorum`.'),
  })
  .meta({ id: 'GovernanceProposalDetails', description: 'A proposal, with all members.' })

const toTime = (time: string) => `toDateTime64(${time}, 3, 'UTC')`

/**
 * SQL of the members of a proposal at the time `now` (SQL), from `FROM_PROPOSALS`, but for those that the API adds. Details that were never collected
 * have no row, and their time reads as 0: all of them are then unknown.
 */
export function toProposalValues(now: string) {
  const outcome = toOutcome(now)
  return {
    _id: 'p.id',
    title: 'd.title',
    author: 'p.author',
    choices: 'd.choices',
    scores: 'd.scores',
    scoresTotal: 'd.scores_total',
    votes: 'd.votes',
    quorum: 'd.quorum',
    createdAt: toTime('p.created_at'),
    startsAt: toTime('d.starts_at'),
    endsAt: toTime('d.ends_at'),
    url: "if(match(d.url, '^https?://'), d.url, NULL)",
    source: toSource('p.space'),
    outcome: `nullIf(${outcome}, '')`,
    timesEstimated: 'd.is_estimated',
    flagged: 'd.is_flagged',
    queuedAt: 'd.queued_at',
    executableAt: `if(${outcome} IN ('canceled', 'expired'), NULL, d.executable_at)`,
    executedAt: 'd.executed_at',
    canceledAt: 'd.canceled_at',
    quorumState: `tuple(${Object.values(QUORUM_VALUES).join(', ')})`,
    scoresExact: `arrayMap(power -> ${toDecimalText('power', 'd.decimals')}, d.scores_exact)`,
    scoresTotalExact: toDecimalText('d.total_exact', 'd.decimals'),
  } as const
}

/** SQL for the proposals of a scope that count as `p`, and their details as `d`; used with `COUNTED`. */
export const FROM_PROPOSALS = (
  isSelected = 'true',
  details = `SELECT * FROM dao_proposal_details FINAL WHERE ${OF_SCOPE}`,
): string =>
  `FROM (SELECT dao, space, proposal, id, author, created_at FROM dao_proposals FINAL WHERE ${COUNTS} AND ${isSelected}) AS p
LEFT JOIN (${details}) AS d
  ON d.dao = p.dao AND d.space = p.space AND d.proposal = p.proposal`

/** The ClickHouse type of a choice. */
export const CHOICE_TYPE = 'Variant(Array(Float64), Float64, Map(String, Float64), String)'

/** A voter's choice, in the form of the proposal's voting type. */
const choiceValue = z
  .union([z.number(), z.array(z.number()), z.record(z.string(), z.number()), z.string()])
  .register(columnTypes, { type: CHOICE_TYPE })

export const vote = z
  .strictObject({
    _id: idValue.describe(
      'Id of the vote, which does not change when the voter changes the vote. Each part of a vote on a governor has its own id.',
    ),
    proposal: idValue.describe('Id of the proposal.'),
    voter: z.string().describe('Address of the voter, in lower case.'),
    choice: choiceValue
      .nullable()
      .describe(
        "By the proposal's type of voting: the number of one choice, a list of numbers (approval, ranked), or weights by number (weighted, quadratic), from 1 on; a text while the vote is secret; null where it was not collected.",
      ),
    votingPower: power
      .nullable()
      .describe('Voting power with the digits of the source; null if the source does not report it.'),
    createdAt: timeValue.describe('When it was cast, or last changed.'),
  })
  .meta({ id: 'GovernanceVote', description: 'A vote on a proposal of a DAO.' })

export const voteOfSource = vote
  .extend({
    source: z.enum(SOURCES).describe('Where it was cast: on `snapshot`, or on a `governor`, which is a contract.'),
  })
  .meta({ id: 'GovernanceVoteOfSource', description: 'A vote, and where it was cast. With `source`.' })

export const detailedVote = voteOfSource
  .extend({
    votingPowerExact: exactPower
      .nullable()
      .describe(
        'Voting power with all digits, as a decimal text; null on Snapshot, which counts in floating-point numbers. With `exact=true`.',
      ),
  })
  .extend({
    choiceText: z
      .string()
      .nullable()
      .describe(
        'The choice in the words of the proposal: names separated by commas, or each with its weight; null while the choice is secret or unknown. With `include=choiceText`.',
      ),
  })
  .meta({ id: 'GovernanceVoteDetails', description: 'A vote, with all members.' })

const ON_PROPOSAL = ["'vote'", 'v.dao', 'v.proposal', 'v.voter'] as const

/** SQL of the members of a vote, from a row `v` of `selectVotes`, except its choice. */
export const VOTE_VALUES = {
  // A voter has one vote on Snapshot, and any number on a governor.
  _id: `if(${isGovernor('v.space')}, ${toIdSql(...ON_PROPOSAL, 'toUnixTimestamp(v.created_at)')}, ${toIdSql(...ON_PROPOSAL)})`,
  proposal: toIdSql("'proposal'", 'v.dao', 'v.proposal'),
  voter: 'v.voter',
  votingPower: 'v.voting_power',
  createdAt: toTime('v.created_at'),
  source: toSource('v.space'),
  votingPowerExact: toDecimalText('v.power_exact', 'v.decimals'),
} as const

/** SQL for the votes that count, of the selected rows; choices as JSON. */
export const selectVotes = (isSelected: string): string => `
WITH ${COUNTED}
SELECT dao, created_at, proposal, voter, space, choice, voting_power, power_exact, decimals FROM dao_cast_votes FINAL
WHERE ${isSelected} AND ${IS_COUNTED} AND NOT is_replaced`
