import { z } from 'zod'
import { defineDataset } from './define-dataset.ts'
import { account, isGovernor } from './governance.ts'

const text = z.string().min(1)
const at = z.iso.datetime()

/** An event of `proposal` on the contract `space`, in a block with the time `at`. */
const happened = z.strictObject({ dao: z.number().int().nonnegative(), space: text, proposal: text, at })
const vote = happened.extend({
  kind: z.literal('vote'),
  address: account,
  /** JSON: the number of a choice, from 1 on, or powers by those numbers. */
  choice: text,
  voting_power: z.number().nonnegative().nullable(),
})
const proposal = happened.extend({
  kind: z.literal('proposal'),
  address: account,
  title: z.string(),
  choices: z.array(z.string()),
  url: z.string().nullable(),
})
const outcome = happened.extend({ kind: z.enum(['canceled', 'queued', 'executed']) })
const times = happened.extend({
  kind: z.literal('times'),
  starts_at: at.nullable(),
  ends_at: at.nullable(),
  is_estimated: z.boolean(),
})
const reading = happened.extend({ kind: z.literal('reading'), proposal: z.literal('') })

/**
 * A reading of a governor's events: a vote, a proposal or its outcome; the start and end of the vote, if known; or a
 * reading, which means that all events up to `at` were read.
 */
export const governorsRow = z.discriminatedUnion('kind', [vote, proposal, outcome, times, reading])

export type GovernorsRow = z.infer<typeof governorsRow>

const OF_RUN = "dao IN {entities: Array(UInt64)} AND collected_at >= {slot: DateTime64(3, 'UTC')}"
/** A scalar, because on a cluster a set built from several sets cannot be passed on. */
const TOUCHED = `(
    SELECT groupUniqArray(tuple(dao, space, proposal)) FROM
    (
      SELECT dao, toString(space) AS space, proposal FROM governor_events WHERE ${OF_RUN}
      UNION ALL
      SELECT dao, toString(space) AS space, toString(proposal) AS proposal FROM dao_cast_votes WHERE ${OF_RUN}
    )
  ) AS touched`
const IS_TOUCHED = `dao IN {entities: Array(UInt64)}
    AND (dao, space, proposal) IN (SELECT pair.1, pair.2, pair.3 FROM (SELECT arrayJoin(touched) AS pair))`

/**
 * Unmarks partial votes, which earlier versions marked as replaced. This touches their proposals, so the next statement
 * recomputes their scores.
 */
const MARKED_PARTS = `
INSERT INTO dao_cast_votes (dao, created_at, proposal, voter, space, choice, voting_power, is_replaced, collected_at)
SELECT dao, created_at, proposal, voter, space, choice, voting_power, false,
  greatest(now64(3, 'UTC'), collected_at + INTERVAL 1 MILLISECOND)
FROM
(
  SELECT * FROM dao_cast_votes FINAL
  WHERE dao IN {entities: Array(UInt64)} AND (dao, created_at, proposal, voter, space) IN
  (
    SELECT dao, created_at, proposal, voter, space FROM dao_cast_votes
    WHERE dao IN {entities: Array(UInt64)} AND is_replaced AND ${isGovernor('space')}
  )
)
WHERE is_replaced`

/** Voting power for the choice with this number, of single-choice votes and of split votes. */
const toScore = (number: number) =>
  `toFloat64(sum(toDecimal256(if(choice = '${number}', ifNull(voting_power, 0), JSONExtractFloat(choice, '${number}')), 12)))`

/**
 * The details of each proposal that the run touched, from its events and votes. Power is summed as decimals, because
 * sums of floats depend on the order of parts, which changes with merges.
 */
const PROPOSAL_DETAILS = `
INSERT INTO dao_proposal_details (dao, space, proposal, title, voting_type, choices, scores, scores_total, votes, starts_at, ends_at,
  url, outcome, is_estimated, collected_at)
WITH ${TOUCHED}
SELECT e.dao, e.space, e.proposal, e.title, 'basic', e.choices, arrayResize(v.scores, length(e.choices)), v.total, v.votes,
  e.starts_at, e.ends_at, e.url, e.outcome, e.is_estimated, now64(3, 'UTC')
FROM
(
  SELECT dao, space, proposal, anyIf(title, kind = 'proposal') AS title, anyIf(choices, kind = 'proposal') AS choices,
    anyIf(url, kind = 'proposal') AS url,
    anyIf(starts_at, kind = 'times') AS starts_at, anyIf(ends_at, kind = 'times') AS ends_at,
    anyIf(is_estimated, kind = 'times') AS is_estimated,
    multiIf(countIf(kind = 'canceled') > 0, 'canceled', countIf(kind = 'executed') > 0, 'executed', countIf(kind = 'queued') > 0, 'queued', '') AS outcome
  FROM (SELECT * FROM governor_events FINAL WHERE ${IS_TOUCHED})
  GROUP BY dao, space, proposal
  HAVING countIf(kind = 'proposal') > 0
) AS e
LEFT JOIN
(
  SELECT dao, space, proposal, count() AS votes, [${[1, 2, 3].map(toScore).join(', ')}] AS scores,
    toFloat64(sum(toDecimal256(ifNull(voting_power, 0), 12))) AS total
  FROM (SELECT * FROM dao_cast_votes FINAL WHERE ${IS_TOUCHED})
  GROUP BY dao, space, proposal
) AS v ON v.dao = e.dao AND v.space = e.space AND v.proposal = e.proposal`

/**
 * Votes on contracts and the outcomes of their proposals. Rows are inserted into `governors_in`; its views separate the
 * kinds.
 */
export const governors = defineDataset({
  name: 'governors',
  cadence: '1d',
  table: 'governors_in',
  row: governorsRow,
  entities: (registry) => registry.daos.filter(({ live, governors }) => live && governors.length > 0),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  resumes: true,
  derive: [
    { name: 'marked-parts', sql: MARKED_PARTS, isFull: false },
    { name: 'governor-proposals', sql: PROPOSAL_DETAILS, isFull: false },
  ],
  series: { table: 'governor_readings', entity: 'dao', time: 'read_at' },
})
