import { z } from 'zod'
import { QUORUM_VALUES } from '../../../shared/datasets/governance-quorums.ts'
import { toOutcome } from '../../../shared/datasets/governors.ts'
import { groupBy } from '../../../shared/group-by.ts'
import { HOUR_MS } from '../../../shared/intervals.ts'
import type { Database } from '../../../shared/store/store.ts'
import { findEntities } from '../rule-entities.ts'
import { EVENTS_MS, formatTime } from '../state.ts'
import {
  type Evaluate,
  isSelected,
  NOTHING,
  NUMBER,
  type Result,
  type RuleOf,
  toRequest,
  toSelection,
} from './condition.ts'
import { type Flip, findFlips } from './flips.ts'

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
  executable: timeOrNull,
  expired: timeOrNull,
  quorum: z.number().nullable(),
  counted: z.number().nullable(),
  isReached: z.boolean().nullable(),
  isLive: z.boolean(),
  read: z.int(),
})
type ProposalRow = z.infer<typeof proposalRow>

const seconds = (column: string) => `toInt64(toUnixTimestamp(${column})) * 1000`
const OUTCOME = toOutcome("fromUnixTimestamp64Milli({now: Int64}, 'UTC')")

/**
 * Proposals with a time since {since}, without deleted ones. `queued` and `executable` are null unless the proposal is
 * in that state now.
 */
const PROPOSALS = `
SELECT p.dao AS dao, p.space AS space, p.proposal AS proposal, p.id AS id, d.title AS title,
  ${seconds('p.created_at')} AS created, ${seconds('d.starts_at')} AS starts, ${seconds('d.ends_at')} AS ends,
  toBool(d.outcome != '' OR d.scores_state NOT IN ('pending', 'invalid')) AS isSettled,
  toBool(d.is_flagged) AS isFlagged, ${OUTCOME} AS outcome,
  if(outcome IN ('canceled', 'expired'), NULL, ${seconds('d.queued_at')}) AS queued, ${seconds('d.executed_at')} AS executed,
  ${seconds('d.canceled_at')} AS canceled, if(outcome = 'queued', ${seconds('d.executable_at')}, NULL) AS executable,
  if(outcome = 'expired', ${seconds('d.expires_at')}, NULL) AS expired,
  ${QUORUM_VALUES.quorum} AS quorum, ${QUORUM_VALUES.power} AS counted, ${QUORUM_VALUES.reached} AS isReached, ${QUORUM_VALUES.live} AS isLive,
  toUnixTimestamp64Milli(r.read_at) AS read
FROM (SELECT dao, space, proposal, id, created_at FROM dao_proposals FINAL WHERE ${isSelected('dao')}) AS p
LEFT JOIN (SELECT * FROM dao_proposal_details FINAL WHERE ${isSelected('dao')}) AS d
  ON d.dao = p.dao AND d.space = p.space AND d.proposal = p.proposal
LEFT JOIN
(
  SELECT dao, space, max(read_at) AS read_at FROM
  (
    SELECT dao, space, read_at FROM governance_readings WHERE ${isSelected('dao')}
    UNION ALL
    SELECT dao, space, read_at FROM governor_readings WHERE ${isSelected('dao')}
  )
  GROUP BY dao, space
) AS r ON r.dao = p.dao AND r.space = toString(p.space)
WHERE NOT d.is_deleted
  AND greatest(created, ifNull(starts, 0), ifNull(ends, 0), ifNull(queued, 0), ifNull(executed, 0), ifNull(canceled, 0), ifNull(executable, 0), ifNull(expired, 0)) >= {since: Int64}`

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

/**
 * End of the title of a proposal that Snapshot marked as spam or a scam. Alerts are about such proposals, too, because
 * lists contain them.
 */
const FLAGGED = ' (flagged by Snapshot as spam or a scam)'

const PROPOSALS_PATH = '/data/daos/governance/proposals'

const PAST_TENSE = {
  created: 'new proposal',
  started: 'vote started',
  ending: 'vote ends soon',
  flipped: 'leading choice changed',
  ended: 'vote ended',
  queued: 'proposal queued',
  executed: 'proposal executed',
  canceled: 'proposal canceled',
  executable: 'proposal executable soon',
  expired: 'proposal expired',
} as const

const toPastTense = ({ on, quorumShort }: RuleOf<'proposal'>['what']) =>
  quorumShort === true ? 'quorum is not reached, and the vote ends soon' : PAST_TENSE[on]

/**
 * The stored votes that the rules need: the addresses that voted, and the changes of the leading choice by the `hours`
 * of a rule.
 */
interface Votes {
  readonly cast: ReadonlySet<string>
  readonly flips: ReadonlyMap<number, ReadonlyMap<string, Flip>>
}

const toProposal = ({ dao, space, proposal }: Pick<ProposalRow, 'dao' | 'space' | 'proposal'>) =>
  `${dao} ${space} ${proposal}`

const findFlip = (row: ProposalRow, { on, hours = 0 }: RuleOf<'proposal'>['what'], { flips }: Votes) =>
  on === 'flipped' ? flips.get(hours)?.get(toProposal(row)) : undefined

/** If the votes of a proposal were read longer ago than this, its quorum is not evaluated. */
const OLDEST_VOTES_MS = 2 * HOUR_MS
/** A shorter vote has its reminder about the quorum after half of its length. */
const SHORT_VOTE_MS = 48 * HOUR_MS

/** A proposal that is canceled in its timelock has had its vote. */
const isStopped = ({ ends, canceled }: ProposalRow) => canceled !== null && (ends === null || canceled < ends)

/** The time of an event of a proposal; null if the event has not happened by now. */
function toEventTime(row: ProposalRow, what: RuleOf<'proposal'>['what'], votes: Votes, now: number): number | null {
  const { on, hours = 0, unlessVotedBy, quorumShort = false } = what
  const past = (at: number | null) => (at !== null && at <= now ? at : null)
  if (on === 'created') return row.created
  if (on === 'started') return row.canceled === null ? past(row.starts) : null
  if (on === 'flipped') return findFlip(row, what, votes)?.at ?? null
  if (on === 'ended') return row.isSettled && !isStopped(row) ? past(row.ends) : null
  if (on === 'executable') {
    const at = row.executable
    return at === null || at <= now ? null : past(at - hours * HOUR_MS)
  }
  if (on !== 'ending') return past(row[on])
  const { starts, ends, canceled } = row
  if (starts === null || ends === null || canceled !== null || starts > now || ends <= now) return null
  if (unlessVotedBy !== undefined && votes.cast.has(toVote({ ...row, voter: unlessVotedBy }))) return null
  if (!quorumShort) return past(ends - hours * HOUR_MS)
  if (row.isReached !== false || now - row.read > OLDEST_VOTES_MS) return null
  const length = ends - starts
  return past(ends - Math.min(hours * HOUR_MS, length < SHORT_VOTE_MS ? length / 2 : Number.POSITIVE_INFINITY))
}

/** The votes that count towards the quorum, if the rule is about it. */
const toQuorumFacts = ({ quorum, counted }: ProposalRow, { quorumShort }: RuleOf<'proposal'>['what']) =>
  quorumShort === true ? { value: counted, threshold: quorum, unit: 'voting power' } : {}

function toQuorumText({ quorum, counted, isLive }: ProposalRow): string {
  if (quorum === null || counted === null) return ''
  const share = NUMBER.format((counted / quorum) * 100)
  const change = isLive ? ' The quorum may change until the end.' : ''
  return ` ${NUMBER.format(counted)} of the ${NUMBER.format(quorum)} votes of the quorum are cast (${share} %), ${NUMBER.format(quorum - counted)} are missing.${change}`
}

const toEndText = ({ ends, executable }: ProposalRow, now: number) => {
  const vote = ends === null ? '' : ` The vote ${ends > now ? 'ends' : 'ended'} at ${formatTime(ends)}.`
  return executable === null ? vote : `${vote} It can be executed from ${formatTime(executable)} on.`
}

export const evaluateProposals: Evaluate<'proposal'> = async (rules, { db, registry, now }) => {
  const entities = new Map(rules.map((rule) => [rule.name, findEntities(rule, registry) ?? []]))
  const daos = [...new Set([...entities.values()].flatMap((own) => own.map(({ key }) => key)))]
  const params = { ...toSelection(daos), since: now - EVENTS_MS, now }
  const hours = [...new Set(rules.flatMap(({ what }) => (what.on === 'flipped' ? [what.hours ?? 0] : [])))]
  const [proposals, cast, ...flips] = await Promise.all([
    db.rows({ name: 'alert-proposals', sql: PROPOSALS, params, schema: proposalRow }),
    readVotes(rules, daos, db),
    ...hours.map(async (one) => {
      const found = await findFlips(db, daos, one, now)
      return [one, new Map(found.map((flip) => [toProposal(flip), flip]))] as const
    }),
  ])
  const votes: Votes = { cast, flips: new Map(flips) }
  const byDao = groupBy(proposals, ({ dao }) => dao)
  return new Map(
    rules.map((rule): [string, Result] => {
      const events = (entities.get(rule.name) ?? []).flatMap((entity) =>
        (byDao.get(entity.key) ?? []).flatMap((row) => {
          const happenedAt = toEventTime(row, rule.what, votes, now)
          if (happenedAt === null) return []
          const flip = findFlip(row, rule.what, votes)
          const isReminder = rule.what.on === 'ending' || rule.what.on === 'executable'
          return {
            ...NOTHING,
            ...{ entity, page: `/daos/${entity.id}/proposals/${row.id}` },
            // Without `source` the answer has only votes on Snapshot.
            request: toRequest(PROPOSALS_PATH, { id: entity.id, source: 'all', filter: `_id=${row.id}` }),
            // If the vote ends after the rule began, the reminder is sent, even if its time was before the rule began.
            ...toQuorumFacts(row, rule.what),
            // Each new leading choice fires once.
            ...{
              subject: flip === undefined ? row.id : `${row.id} ${flip.after}`,
              at: isReminder ? now : happenedAt,
              observedAt: happenedAt,
            },
            describe: () => ({
              title: `${entity.name}: ${toPastTense(rule.what)}${row.isFlagged ? FLAGGED : ''}`,
              text: `${row.title || 'A proposal without a title'}.${toEndText(row, now)}${rule.what.quorumShort === true ? toQuorumText(row) : ''}${flip === undefined ? '' : ` ${flip.after} leads now, ${flip.before} did ${rule.what.hours} hours ago.`}`,
            }),
          }
        }),
      )
      return [rule.name, { type: 'events', events }]
    }),
  )
}
