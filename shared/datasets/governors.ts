import { z } from 'zod'
import { GOVERNOR_COUNTED } from '../registry/schema.ts'
import { toWholeTokens } from '../whole-tokens.ts'
import { defineDataset } from './define-dataset.ts'
import { account, isGovernor, MOST_POWER } from './governance.ts'

const text = z.string().min(1)
const at = z.iso.datetime()
/** A uint256 as a decimal text. */
const integer = z.string().regex(/^\d{1,78}$/)

/** An event of `proposal` on the contract `space`, in a block with the time `at`. */
const happened = z.strictObject({ dao: z.number().int().nonnegative(), space: text, proposal: text, at })
const vote = happened.extend({
  kind: z.literal('vote'),
  address: account,
  /** JSON: the number of a choice, from 1 on, or powers by those numbers. */
  choice: text,
  voting_power: z.number().nonnegative().nullable(),
  /**
   * In base units of the voting token, as are the parts of each choice, in the order of the proposal's choices. Null for
   * a vote without a choice of the contract, which counts for no total.
   */
  power_exact: integer.nullable(),
  choice_powers: z.array(integer),
  decimals: z.int().min(0).max(77),
  /** Whether it replaces the voter's earlier votes on the proposal. */
  is_whole: z.boolean(),
})
const hex = z.string().regex(/^0x([0-9a-f]{2})*$/)
const argument = z.strictObject({ name: z.string().nullable(), type: z.string(), value: z.string() })
/**
 * The calls that a proposal makes when it is executed. If the function of the calldata is unknown, `function` is null
 * and there are no arguments.
 */
const actions = z.array(
  z.strictObject({
    target: account,
    value_wei: integer,
    function: z.string().nullable(),
    signature: z.string().nullable(),
    arguments: z.array(argument),
    calldata: hex,
  }),
)
const hash = z.string().regex(/^0x[0-9a-f]{64}$/)
const proposal = happened.extend({
  kind: z.literal('proposal'),
  address: account,
  title: z.string(),
  body: z.string(),
  choices: z.array(z.string()),
  url: z.string().nullable(),
  actions,
  /** Ids that OpenZeppelin's timelock may have for its calls, and the keys of its calls in Compound's timelock. */
  operations: z.array(hash),
  calls: z.array(hash),
})
/** The text or the actions of a proposal after a change by its author. */
const updated = happened.extend({ kind: z.literal('updated'), title: z.string(), body: z.string() })
const updatedActions = happened.extend({ kind: z.literal('actions'), actions, calls: z.array(hash) })
/** `tx` is the transaction. */
const outcome = happened.extend({ kind: z.enum(['canceled', 'executed']), tx: hash })
const queued = happened.extend({ kind: z.literal('queued'), executable_at: at.nullable() })
const times = happened.extend({
  kind: z.literal('times'),
  starts_at: at.nullable(),
  ends_at: at.nullable(),
  is_estimated: z.boolean(),
})
/** The quorum of a proposal, in base units of the voting token. */
const quorum = happened.extend({
  kind: z.literal('quorum'),
  quorum_exact: integer,
  quorum_counts: z.enum([...GOVERNOR_COUNTED, '']),
  /** Whether it changes until the vote ends. */
  is_quorum_live: z.boolean(),
  decimals: z.int().min(0).max(77),
})
/**
 * An event of an operation in a timelock of the governor `space`. `eta` and `expires_at` are those of Compound's
 * timelock: when a call can be executed, and until when.
 */
const timelock = happened.extend({
  kind: z.literal('timelock'),
  proposal: z.literal(''),
  operation: hash,
  step: z.enum(['scheduled', 'canceled', 'executed']),
  eta: at.nullable(),
  executable_at: at.nullable(),
  expires_at: at.nullable(),
  block_number: z.int().nonnegative(),
  log_index: z.int().nonnegative(),
  tx: hash,
})
const reading = happened.extend({ kind: z.literal('reading'), proposal: z.literal('') })

/**
 * A reading of a governor's events: a vote, a proposal, an update of it or its outcome; the start and end of the vote, if known; its
 * quorum; an event of its timelock; or a reading, which means that all events up to `at` were read.
 */
export const governorsRow = z.discriminatedUnion('kind', [
  vote,
  proposal,
  updated,
  updatedActions,
  outcome,
  queued,
  times,
  quorum,
  timelock,
  reading,
])

export type GovernorsRow = z.infer<typeof governorsRow>

const OF_RUN = "dao IN {entities: Array(UInt64)} AND collected_at >= {slot: DateTime64(3, 'UTC')}"
/** A scalar, because on a cluster a set built from several sets cannot be passed on. */
const TOUCHED = `(
    SELECT groupUniqArray(tuple(dao, space, proposal)) FROM
    (
      SELECT dao, toString(space) AS space, proposal FROM governor_events WHERE ${OF_RUN}
      UNION ALL
      SELECT dao, toString(space) AS space, toString(proposal) AS proposal FROM dao_cast_votes WHERE ${OF_RUN}
      UNION ALL
      SELECT dao, space, proposal FROM
      (
        SELECT dao, toString(space) AS space, proposal, arrayJoin(arrayConcat(operations, calls)) AS operation FROM governor_events
        WHERE dao IN {entities: Array(UInt64)} AND kind IN ('proposal', 'actions')
      )
      WHERE (dao, space, operation) IN (SELECT dao, toString(space), operation FROM timelock_events WHERE ${OF_RUN})
    )
  ) AS touched`
const IS_TOUCHED = `dao IN {entities: Array(UInt64)}
    AND (dao, space, proposal) IN (SELECT pair.1, pair.2, pair.3 FROM (SELECT arrayJoin(touched) AS pair))`

/**
 * Unmarks partial votes, which earlier versions marked as replaced. The proposals of these votes are touched, so the
 * next statement recomputes their scores.
 */
const MARKED_PARTS = `
INSERT INTO dao_cast_votes (dao, created_at, proposal, voter, space, choice, voting_power, power_exact, choice_powers, decimals, is_whole, is_replaced, collected_at)
SELECT dao, created_at, proposal, voter, space, choice, voting_power, power_exact, choice_powers, decimals, is_whole, false,
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
WHERE is_replaced AND NOT is_whole`

/** Marks votes that their voters replaced by later ones, on contracts that allow it. */
const REPLACED_VOTES = `
INSERT INTO dao_cast_votes (dao, created_at, proposal, voter, space, choice, voting_power, power_exact, choice_powers, decimals, is_whole, is_replaced, collected_at)
WITH ${TOUCHED}
SELECT dao, created_at, proposal, voter, space, choice, voting_power, power_exact, choice_powers, decimals, is_whole, true,
  greatest(now64(3, 'UTC'), collected_at + INTERVAL 1 MILLISECOND)
FROM
(
  SELECT *, max(created_at) OVER (PARTITION BY dao, space, proposal, voter) AS last_at
  FROM (SELECT * FROM dao_cast_votes FINAL WHERE ${IS_TOUCHED} AND is_whole)
)
WHERE created_at < last_at AND NOT is_replaced`

/** The part of a split vote for a choice. A vote on Snapshot may have any number there, which no decimal can hold. */
const toPart = (number: number) => {
  const part = `JSONExtractFloat(choice, '${number}')`
  return `if(${part} BETWEEN 0 AND ${MOST_POWER}, ${part}, 0)`
}

/** Voting power for the choice with this number, of single-choice votes and of split votes. */
const toScore = (number: number) =>
  `toFloat64(sum(toDecimal256(if(choice = '${number}', ifNull(voting_power, 0), ${toPart(number)}), 12)))`

/**
 * SQL of the votes on a proposal, added up. If an earlier version stored votes without exact powers, floats are summed as
 * decimals, because sums of floats depend on the order of parts, which changes with merges.
 */
export const GOVERNOR_SUMS = `count() AS votes, [${[1, 2, 3].map(toScore).join(', ')}] AS scores,
    toFloat64(sum(toDecimal256(ifNull(voting_power, 0), 12))) AS total,
    countIf(isNull(power_exact) AND choice != 'null') AS unknown, sumForEach(choice_powers) AS powers, sum(ifNull(power_exact, 0)) AS sum, max(decimals) AS decimals`

/** SQL of the scores of a proposal with these choices, nearest to the exact sums; `sums` is a row of `GOVERNOR_SUMS`. */
export const toGovernorScores = (sums: string, choices: string) => ({
  scores: `arrayResize(if(${sums}.unknown > 0, ${sums}.scores, arrayMap(power -> ${toWholeTokens('power', `${sums}.decimals`)}, ${sums}.powers)), length(${choices}))`,
  total: `if(${sums}.unknown > 0, ${sums}.total, ${toWholeTokens(`${sums}.sum`, `${sums}.decimals`)})`,
  exact: `if(${sums}.unknown > 0, [], arrayResize(${sums}.powers, length(${choices})))`,
  totalExact: `if(${sums}.unknown > 0, NULL, ${sums}.sum)`,
})

/**
 * The states of touched proposals in their timelocks, by the last event of each operation. A call of Compound's
 * timelock belongs to a proposal if it has the time with which the proposal was queued. A proposal was canceled if any
 * of its operations was, and executed if all of its calls were.
 */
const TIMELOCKED = `
  SELECT dao, space, proposal,
    maxOrNullIf(at, step = 'canceled') AS canceled_at, argMaxIf(tx, at, step = 'executed') AS executed_tx,
    if(countIf(step = 'executed' AND isNull(eta)) > 0 OR (countIf(step = 'executed') > 0 AND countIf(step = 'executed') = any(calls)), maxOrNullIf(at, step = 'executed'), NULL) AS executed_at,
    maxOrNullIf(executable_at, step = 'scheduled') AS executable_at,
    maxOrNullIf(expires_at, step = 'scheduled') AS expires_at
  FROM
  (
    SELECT p.dao AS dao, p.space AS space, p.proposal AS proposal, any(length(p.calls)) AS calls,
      argMax(tuple(t.step, t.at, t.eta, t.executable_at, t.expires_at, t.tx), (t.block_number, t.log_index)) AS last,
      last.1 AS step, last.2 AS at, last.3 AS eta, last.4 AS executable_at, last.5 AS expires_at, last.6 AS tx
    FROM
    (
      SELECT dao, space, proposal, arrayJoin(arrayDistinct(arrayConcat(operations, calls))) AS operation, calls, eta FROM
      (
        SELECT dao, space, proposal, anyIf(operations, kind = 'proposal') AS operations,
          if(countIf(kind = 'actions') > 0, anyIf(calls, kind = 'actions'), anyIf(calls, kind = 'proposal')) AS calls,
          anyIf(executable_at, kind = 'queued') AS eta
        FROM (SELECT * FROM governor_events FINAL WHERE ${IS_TOUCHED})
        GROUP BY dao, space, proposal
        HAVING countIf(kind = 'queued') > 0
      )
    ) AS p
    INNER JOIN
    (
      SELECT dao, space, operation, step, at, eta, executable_at, expires_at, block_number, log_index, tx FROM timelock_events FINAL
      WHERE dao IN {entities: Array(UInt64)}
    ) AS t ON t.dao = p.dao AND t.space = p.space AND t.operation = p.operation
    WHERE isNull(t.eta) OR t.eta = p.eta
    GROUP BY p.dao, p.space, p.proposal, p.operation
  )
  GROUP BY dao, space, proposal`

const SCORES = toGovernorScores('v', 'e.choices')

/** The details of each proposal that the run touched, from its events and votes, and from its timelock. */
const PROPOSAL_DETAILS = `
INSERT INTO dao_proposal_details (dao, space, proposal, title, voting_type, choices, scores, scores_total, votes, starts_at, ends_at,
  url, outcome, is_estimated, scores_exact, total_exact, decimals, body, queued_at, executable_at, executed_at, canceled_at, expires_at,
  executed_tx, quorum, quorum_exact, quorum_counts, is_quorum_live, collected_at)
WITH ${TOUCHED}
SELECT e.dao, e.space, e.proposal, e.title, 'basic', e.choices, ${SCORES.scores},
  ${SCORES.total}, v.votes,
  e.starts_at, e.ends_at, e.url,
  multiIf(isNotNull(e.canceled_at), 'canceled', isNotNull(e.executed_at) OR isNotNull(l.executed_at), 'executed', isNotNull(l.canceled_at), 'canceled', isNotNull(e.queued_at), 'queued', '') AS outcome,
  e.is_estimated,
  ${SCORES.exact}, ${SCORES.totalExact}, v.decimals,
  e.body, e.queued_at, ifNull(l.executable_at, e.executable_at),
  if(outcome = 'executed', ifNull(e.executed_at, l.executed_at), NULL),
  if(outcome = 'canceled', ifNull(e.canceled_at, l.canceled_at), NULL), if(outcome = 'queued', l.expires_at, NULL),
  multiIf(outcome != 'executed', '', isNotNull(e.executed_at), e.executed_tx, l.executed_tx),
  ${toWholeTokens('e.quorum_exact', 'e.quorum_decimals')}, e.quorum_exact, e.quorum_counts, e.is_quorum_live, now64(3, 'UTC')
FROM
(
  SELECT dao, space, proposal, if(countIf(kind = 'updated') > 0, anyIf(title, kind = 'updated'), anyIf(title, kind = 'proposal')) AS title, anyIf(choices, kind = 'proposal') AS choices,
    if(countIf(kind = 'updated') > 0, anyIf(body, kind = 'updated'), anyIf(body, kind = 'proposal')) AS body,
    anyIf(url, kind = 'proposal') AS url,
    maxOrNullIf(at, kind = 'queued') AS queued_at, anyIf(executable_at, kind = 'queued') AS executable_at,
    maxOrNullIf(at, kind = 'executed') AS executed_at, maxOrNullIf(at, kind = 'canceled') AS canceled_at,
    anyIf(tx, kind = 'executed') AS executed_tx,
    anyIf(starts_at, kind = 'times') AS starts_at, anyIf(ends_at, kind = 'times') AS ends_at,
    anyIf(is_estimated, kind = 'times') AS is_estimated,
    anyIf(quorum_exact, kind = 'quorum') AS quorum_exact, anyIf(toString(quorum_counts), kind = 'quorum') AS quorum_counts,
    anyIf(is_quorum_live, kind = 'quorum') AS is_quorum_live, anyIf(decimals, kind = 'quorum') AS quorum_decimals
  FROM (SELECT * FROM governor_events FINAL WHERE ${IS_TOUCHED})
  GROUP BY dao, space, proposal
  HAVING countIf(kind = 'proposal') > 0
) AS e
LEFT JOIN
(
  SELECT dao, space, proposal, ${GOVERNOR_SUMS}
  FROM (SELECT * FROM dao_cast_votes FINAL WHERE ${IS_TOUCHED} AND NOT is_replaced)
  GROUP BY dao, space, proposal
) AS v ON v.dao = e.dao AND v.space = e.space AND v.proposal = e.proposal
LEFT JOIN (${TIMELOCKED}) AS l ON l.dao = e.dao AND l.space = e.space AND l.proposal = e.proposal`

/**
 * The outcome of a proposal on its chain at a time, with its details as `d`; empty if it has none. Nothing happens on the
 * chain when a queued proposal expires.
 */
export const toOutcome = (now: string) =>
  `if(d.outcome = 'queued' AND ifNull(d.expires_at <= ${now}, false), 'expired', toString(d.outcome))`

/**
 * Votes on contracts and the outcomes of their proposals. Rows are inserted into `governors_in`; its views separate the
 * kinds.
 */
export const governors = defineDataset({
  name: 'governors',
  title: 'On-chain governance',
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
    { name: 'replaced-governor-votes', sql: REPLACED_VOTES, isFull: false },
    { name: 'governor-proposals', sql: PROPOSAL_DETAILS, isFull: false },
  ],
  series: { table: 'governor_readings', entity: 'dao', time: 'read_at' },
})
