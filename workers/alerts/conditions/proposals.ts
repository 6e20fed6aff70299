import { z } from 'zod'
import { groupBy } from '../../../shared/group-by.ts'
import type { Database } from '../../../shared/store/store.ts'
import { findEntities } from '../rules.ts'
import { EVENTS_MS, formatTime } from '../state.ts'
import { type Evaluate, isSelected, NOTHING, type Result, type RuleOf, toRequest, toSelection } from './condition.ts'

const timeOrNull = z.int().nullable()
const proposalRow = z.object({
  dao: z.number(),
  space: z.string(),
  proposal: z.string(),
  id: z.string(),
  title: z.string(),
  created: z.int(),
  starts: timeOrNull,
  ends: timeOrNull,
  isSettled: z.boolean(),
  isFlagged: z.boolean(),
  queued: timeOrNull,
  executed: timeOrNull,
  canceled: timeOrNull,
})
type ProposalRow = z.infer<typeof proposalRow>

const seconds = (column: string) => `toInt64(toUnixTimestamp(${column})) * 1000`
const outcome = (kind: string) =>
  `if(countIf(kind = '${kind}') = 0, NULL, maxIf(${seconds('at')}, kind = '${kind}')) AS ${kind}`

/** Proposals with a time since {since}, without deleted ones. */
const PROPOSALS = `
SELECT p.dao AS dao, p.space AS space, p.proposal AS proposal, p.id AS id, d.title AS title,
  ${seconds('p.created_at')} AS created, ${seconds('d.starts_at')} AS starts, ${seconds('d.ends_at')} AS ends,
  toBool(d.outcome != '' OR d.scores_state NOT IN ('pending', 'invalid')) AS isSettled,
  toBool(d.is_flagged) AS isFlagged, e.queued AS queued, e.executed AS executed,
  e.canceled AS canceled
FROM (SELECT dao, space, proposal, id, created_at FROM dao_proposals FINAL WHERE ${isSelected('dao')}) AS p
LEFT JOIN (SELECT * FROM dao_proposal_details FINAL WHERE ${isSelected('dao')}) AS d
  ON d.dao = p.dao AND d.space = p.space AND d.proposal = p.proposal
LEFT JOIN
(
  SELECT dao, space, proposal, ${outcome('queued')}, ${outcome('executed')}, ${outcome('canceled')}
  FROM governor_events FINAL WHERE ${isSelected('dao')} GROUP BY dao, space, proposal
) AS e ON e.dao = p.dao AND e.space = p.space AND e.proposal = p.proposal
WHERE NOT d.is_deleted
  AND greatest(created, ifNull(starts, 0), ifNull(ends, 0), ifNull(queued, 0), ifNull(executed, 0), ifNull(canceled, 0)) >= {since: Int64}`

const voteRow = z.object({ dao: z.number(), space: z.string(), proposal: z.string(), voter: z.string() })
const toVote = ({ dao, space, proposal, voter }: z.infer<typeof voteRow>) => `${dao} ${space} ${proposal} ${voter}`

async function readVotes(rules: readonly RuleOf<'proposal'>[], daos: readonly number[], db: Database) {
  const voters = [...new Set(rules.flatMap(({ what }) => what.unlessVotedBy ?? []))]
  if (voters.length === 0) return new Set<string>()
  const sql = `SELECT DISTINCT dao, space, proposal, voter FROM dao_votes
WHERE ${isSelected('dao')} AND voter IN {voters: Array(String)}`
  const rows = await db.rows({ name: 'alert-votes', sql, params: { ...toSelection(daos), voters }, schema: voteRow })
  return new Set(rows.map(toVote))
}

/** Snapshot's mark of spam and scams, which lists show, too. */
const FLAGGED = ' (flagged by Snapshot as spam or a scam)'

const PROPOSALS_PATH = '/data/daos/governance/proposals'

const PAST_TENSE = {
  created: 'new proposal',
  started: 'vote started',
  ending: 'vote ends soon',
  ended: 'vote ended',
  queued: 'proposal queued',
  executed: 'proposal executed',
  canceled: 'proposal canceled',
} as const

/** When an event of a proposal happened, if it has happened by now. */
function toEventTime(
  row: ProposalRow,
  { on, hours = 0, unlessVotedBy }: RuleOf<'proposal'>['what'],
  votes: ReadonlySet<string>,
  now: number,
): number | null {
  const past = (at: number | null) => (at !== null && at <= now ? at : null)
  if (on === 'created') return row.created
  if (on === 'started') return row.canceled === null ? past(row.starts) : null
  if (on === 'ended') return row.isSettled && row.canceled === null ? past(row.ends) : null
  if (on !== 'ending') return past(row[on])
  const { starts, ends, canceled } = row
  if (starts === null || ends === null || canceled !== null || starts > now || ends <= now) return null
  const hasVoted = unlessVotedBy !== undefined && votes.has(toVote({ ...row, voter: unlessVotedBy }))
  return hasVoted ? null : past(ends - hours * 3_600_000)
}

const toEndText = (ends: number | null, now: number) =>
  ends === null ? '' : ` The vote ${ends > now ? 'ends' : 'ended'} at ${formatTime(ends)}.`

export const evaluateProposals: Evaluate<'proposal'> = async (rules, { db, registry, now }) => {
  const entities = new Map(rules.map((rule) => [rule.name, findEntities(rule, registry) ?? []]))
  const daos = [...new Set([...entities.values()].flatMap((own) => own.map(({ key }) => key)))]
  const params = { ...toSelection(daos), since: now - EVENTS_MS }
  const [proposals, votes] = await Promise.all([
    db.rows({ name: 'alert-proposals', sql: PROPOSALS, params, schema: proposalRow }),
    readVotes(rules, daos, db),
  ])
  const byDao = groupBy(proposals, ({ dao }) => dao)
  return new Map(
    rules.map((rule): [string, Result] => {
      const events = (entities.get(rule.name) ?? []).flatMap((entity) =>
        (byDao.get(entity.key) ?? []).flatMap((row) => {
          const happenedAt = toEventTime(row, rule.what, votes, now)
          if (happenedAt === null) return []
          const isReminder = rule.what.on === 'ending'
          return {
            ...NOTHING,
            ...{ entity, page: `/daos/${entity.id}/proposals/${row.id}` },
            // Without `source` the answer has only those on Snapshot.
            request: toRequest(PROPOSALS_PATH, { id: entity.id, source: 'all', filter: `_id=${row.id}` }),
            // A vote that ends after the rule began is worth a reminder, even if its time came before.
            ...{ subject: row.id, at: isReminder ? now : happenedAt, observedAt: happenedAt },
            describe: () => ({
              title: `${entity.name}: ${PAST_TENSE[rule.what.on]}${row.isFlagged ? FLAGGED : ''}`,
              text: `${row.title || 'A proposal without a title'}.${toEndText(row.ends, now)}`,
            }),
          }
        }),
      )
      return [rule.name, { type: 'events', events }]
    }),
  )
}
