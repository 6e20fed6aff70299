import { z } from 'zod'
import { isGovernor } from '../../shared/datasets/governance.ts'
import { QUORUM_VALUES } from '../../shared/datasets/governance-quorums.ts'
import { GOVERNOR_SUMS, toGovernorScores } from '../../shared/datasets/governors.ts'
import { groupBy, toBatches } from '../../shared/group-by.ts'
import type { ConditionContext } from './conditions/condition.ts'
import { type CorrectedRule, type Correction, MOST_PAIRS, toHistory, toWithdrawnFacts } from './corrections.ts'
import { type AlertStore, EVENTS_MS } from './state.ts'
import type { Firing, RecordedFiring } from './state-rows.ts'

const quorumRow = z.object({
  pair: z.int(),
  quorum: z.number().nullable(),
  counted: z.number().nullable(),
  isReached: z.boolean().nullable(),
  isLive: z.boolean(),
})
type QuorumRow = z.infer<typeof quorumRow>

const SCORES = toGovernorScores('s', 'c.choices')

/**
 * The quorum of proposals at times, by the votes until then that are stored now. A vote that was replaced later counts; one without
 * a known power does not.
 */
const QUORUMS = `
WITH pairs AS
(
  SELECT one.1 AS id, one.2 AS at, one.3 AS pair
  FROM (SELECT arrayJoin(arrayZip({ids: Array(String)}, {times: Array(Int64)}, range(length({ids: Array(String)})))) AS one)
),
about AS
(
  SELECT p.pair AS pair, p.at AS at, d.dao AS dao, toString(d.space) AS space, d.proposal AS proposal
  FROM (SELECT dao, space, proposal, id FROM dao_proposals FINAL WHERE id IN {ids: Array(String)}) AS d
  INNER JOIN pairs AS p ON p.id = d.id
)
SELECT d.pair AS pair, ${QUORUM_VALUES.quorum} AS quorum, ${QUORUM_VALUES.power} AS counted, ${QUORUM_VALUES.reached} AS isReached, ${QUORUM_VALUES.live} AS isLive
FROM
(
  SELECT a.pair AS pair, c.space AS space, c.choices AS choices, c.quorum AS quorum, c.quorum_exact AS quorum_exact,
    c.quorum_counts AS quorum_counts, c.is_quorum_live AS is_quorum_live,
    if(${isGovernor('c.space')}, ${SCORES.scores}, [s.total]) AS scores, if(${isGovernor('c.space')}, ${SCORES.exact}, []) AS scores_exact
  FROM about AS a
  INNER JOIN
  (
    SELECT * FROM dao_proposal_details FINAL
    WHERE (dao, toString(space), proposal) IN (SELECT dao, space, proposal FROM about) AND NOT is_deleted
  ) AS c
    ON c.dao = a.dao AND c.space = a.space AND c.proposal = a.proposal
  INNER JOIN
  (
    SELECT pair, ${GOVERNOR_SUMS} FROM
    (
      SELECT a.pair AS pair, v.space AS space, v.choice AS choice, v.voting_power AS voting_power, v.power_exact AS power_exact,
        v.choice_powers AS choice_powers, v.decimals AS decimals, v.is_whole AS is_whole, v.created_at AS created_at,
        max(v.created_at) OVER (PARTITION BY a.pair, v.voter, v.is_whole) AS last_at
      FROM
      (
        SELECT dao, toString(space) AS space, toString(proposal) AS proposal, voter, created_at, choice, voting_power, power_exact,
          choice_powers, decimals, is_whole
        FROM dao_cast_votes FINAL WHERE (dao, toString(space), toString(proposal)) IN (SELECT dao, space, proposal FROM about)
      ) AS v
      INNER JOIN about AS a ON a.dao = v.dao AND a.space = v.space AND a.proposal = v.proposal
      WHERE toInt64(toUnixTimestamp(v.created_at)) * 1000 <= a.at
    )
    WHERE created_at = last_at OR (${isGovernor('space')} AND NOT is_whole)
    GROUP BY pair
  ) AS s ON s.pair = a.pair
) AS d`

/** Whether the quorum was reached for certain: one that changes has been at most the larger of the one of the alert and today's. */
function wasReached({ quorum, counted, isReached, isLive }: QuorumRow, threshold: number | null): boolean {
  if (!isLive) return isReached === true
  return quorum !== null && counted !== null && counted >= Math.max(quorum, threshold ?? quorum)
}

/**
 * Returns a withdrawal for each alert about a missing quorum that was wrong, according to the votes and the quorum that are stored
 * now: votes were read late, or the quorum was corrected. The stored votes must reach the quorum both at the time of the reminder
 * and when the alert fired. So votes after the reminder and changed votes withdraw no alert.
 */
export async function findQuorumWithdrawals<R extends CorrectedRule>(
  rules: readonly R[],
  /** Of this evaluation. */
  firings: readonly Firing[],
  { db, now, store }: ConditionContext & { readonly store: AlertStore },
): Promise<readonly { readonly evaluated: R; readonly correction: Correction }[]> {
  const own = rules.filter(({ rule: { what } }) => what.kind === 'proposal' && what.quorumShort === true)
  if (own.length === 0) return []
  const names = own.map(({ rule }) => rule.name)
  const recorded = await store.readRecorded(names, now - EVENTS_MS)
  const fired = new Set(firings.map(({ id }) => id))
  const alerts = own.flatMap((evaluated) =>
    [...groupBy(recorded.filter(isOf(evaluated)), ({ subject }) => subject).values()].flatMap((all) => {
      const history = toHistory(all)
      return [...history.active].flatMap(([at, firing]) =>
        fired.has(firing.id) ? [] : [{ evaluated, firing, at, repeats: history.repeats(at, false) }],
      )
    }),
  )
  const found = await Promise.all(
    toBatches(alerts, MOST_PAIRS).map(async (batch) => {
      const rows = await db.rows({
        name: 'alert-quorums',
        sql: QUORUMS,
        params: {
          ids: batch.flatMap(({ firing }) => [firing.subject, firing.subject]),
          times: batch.flatMap(({ at, firing }) => [at, firing.firedAt]),
        },
        schema: quorumRow,
      })
      const byPair = new Map(rows.map((row) => [row.pair, row]))
      return batch.flatMap(({ evaluated, firing, at, repeats }, index) => {
        const [then, later] = [byPair.get(2 * index), byPair.get(2 * index + 1)]
        if (then === undefined || later === undefined) return []
        if (!wasReached(then, firing.threshold) || !wasReached(later, firing.threshold)) return []
        const facts = { ...toWithdrawnFacts(firing, then.counted), threshold: then.quorum }
        return [{ evaluated, correction: { facts, subject: firing.subject, at, holds: false, repeats } }]
      })
    }),
  )
  return found.flat()
}

const isOf =
  ({ rule, revision }: CorrectedRule) =>
  (one: RecordedFiring) =>
    one.rule === rule.name && one.revision === revision
