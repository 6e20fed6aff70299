import { z } from 'zod'
import { toMs } from '../intervals.ts'
import type { Dao } from '../registry/entities.ts'
import { defineDataset } from './define-dataset.ts'

/** No proposal is older than the first block of Ethereum, and the time columns end soon after 2100. */
export const EARLIEST_SECONDS = Date.parse('2015-07-30T00:00:00Z') / 1000
export const LATEST_SECONDS = Date.parse('2100-01-01T00:00:00Z') / 1000
/** Some spaces count in the smallest unit of their token: 10^15 tokens of 18 decimals. */
export const MOST_POWER = 1e33
/** An account has one vote, and there are fewer accounts. */
const MOST_VOTES = 1e10

const dao = z.number().int().nonnegative()
const text = z.string().min(1)
const at = z.iso.datetime().refine((time) => {
  const seconds = toMs(time) / 1000
  return seconds >= EARLIEST_SECONDS && seconds <= LATEST_SECONDS
}, 'outside of 2015 to 2100')
/** An account of an EVM chain or of Starknet; in lower case, because one account has many spellings. */
export const account = z.string().regex(/^0x[0-9a-f]{40,64}$/, 'must be an address in lower case')
const power = z.number().nonnegative().max(MOST_POWER)

/** The state of a proposal's scores on Snapshot; empty if absent. */
export const SCORES_STATES = ['pending', 'final', 'invalid', ''] as const

const cast = z.strictObject({ dao, space: text, proposal: text, address: account, at })
const vote = cast.extend({
  kind: z.literal('vote'),
  /** The source's JSON, in the form of the proposal's voting type. */
  choice: text,
  voting_power: power.nullable(),
})
const proposal = cast.extend({
  kind: z.literal('proposal'),
  title: z.string(),
  voting_type: z.string(),
  choices: z.array(z.string()),
  scores: z.array(power),
  scores_total: power.nullable(),
  scores_state: z.enum(SCORES_STATES),
  votes: z.number().int().nonnegative().max(MOST_VOTES).nullable(),
  quorum: power.nullable(),
  starts_at: at.nullable(),
  ends_at: at.nullable(),
  /** A link for browsers, so other schemes than http and https are rejected. */
  url: z.url({ protocol: /^https?$/ }).nullable(),
  is_flagged: z.boolean(),
})
/** The text of a proposal in Markdown, as its author wrote it; `at` is the time of its last edit, or of its creation. */
const proposalText = z.strictObject({
  dao,
  space: text,
  kind: z.literal('text'),
  proposal: text,
  address: z.literal(''),
  at,
  body: z.string(),
})
const reading = z.strictObject({
  dao,
  space: text,
  kind: z.enum(['reading', 'sweep']),
  proposal: z.literal(''),
  address: z.literal(''),
  at: z.iso.datetime(),
})

/**
 * A reading of a DAO's space, by `kind`: a vote (`address` voted on `proposal`) or a proposal (`address` is its
 * author), with `at` as the time of creation; the text of a proposal; a reading, which means that the space was completely read up to `at`; or
 * a sweep, which started at `at` and saw every existing proposal.
 */
export const governanceRow = z.discriminatedUnion('kind', [vote, proposal, proposalText, reading])

export type GovernanceRow = z.infer<typeof governanceRow>

/** A DAO with a Snapshot space. */
export type VotingDao = Dao & { readonly snapshotSpace: string }

/**
 * Marks proposals as deleted if the last sweep of their space did not find them. A proposal that reappears is restored,
 * because the row collected later wins.
 */
const DELETED_PROPOSALS = `
INSERT INTO dao_proposal_details (dao, space, proposal, is_deleted, collected_at)
SELECT p.dao, p.space, p.proposal, true, s.swept_at
FROM (SELECT dao, space, proposal FROM dao_proposals FINAL WHERE dao IN {entities: Array(UInt64)}) AS p
INNER JOIN (SELECT dao, space, swept_at FROM governance_sweeps FINAL WHERE dao IN {entities: Array(UInt64)}) AS s
  ON s.dao = p.dao AND s.space = p.space
LEFT JOIN
(
  SELECT dao, space, proposal, is_deleted, collected_at FROM dao_proposal_details FINAL WHERE dao IN {entities: Array(UInt64)}
) AS d ON d.dao = p.dao AND d.space = p.space AND d.proposal = p.proposal
WHERE d.collected_at < s.swept_at AND NOT d.is_deleted`

/** Whether a space is a governor's account on a chain, by CAIP-10, and not a Snapshot space. */
export const isGovernor = (space: string): string => `startsWith(${space}, 'eip155:')`

/** Snapshot proposals with votes since the start of the slot; all others are unchanged. */
const TOUCHED = `(dao, space, proposal) IN
  (
    SELECT dao, space, proposal FROM dao_cast_votes
    WHERE dao IN {entities: Array(UInt64)} AND collected_at >= {slot: DateTime64(3, 'UTC')}
      AND NOT ${isGovernor('space')}
  )`

/**
 * Marks votes that their voters replaced by a later one, on proposals with votes since the start of the slot. Votes on
 * a governor are never replaced: several votes of one account are parts of its power.
 */
const REPLACED_VOTES = `
INSERT INTO dao_cast_votes (dao, created_at, proposal, voter, space, choice, voting_power, is_replaced, collected_at)
SELECT v.dao, v.created_at, v.proposal, v.voter, v.space, v.choice, v.voting_power, true,
  greatest(now64(3, 'UTC'), v.collected_at + INTERVAL 1 MILLISECOND)
FROM (SELECT * FROM dao_cast_votes FINAL WHERE dao IN {entities: Array(UInt64)} AND ${TOUCHED}) AS v
INNER JOIN
(
  SELECT dao, space, proposal, voter, max(created_at) AS last_at
  FROM dao_cast_votes
  WHERE dao IN {entities: Array(UInt64)} AND ${TOUCHED}
  GROUP BY dao, space, proposal, voter
  HAVING min(created_at) < last_at
) AS last ON last.dao = v.dao AND last.space = v.space AND last.proposal = v.proposal AND last.voter = v.voter
WHERE v.created_at < last.last_at AND NOT v.is_replaced`

/** Votes and proposals of DAOs on Snapshot. Rows are inserted into `governance_in`; its views separate the kinds. */
export const governance = defineDataset({
  name: 'governance',
  title: 'Snapshot governance',
  cadence: '1d',
  table: 'governance_in',
  row: governanceRow,
  dispensable: ['voting_power', 'scores', 'scores_total', 'votes', 'quorum', 'starts_at', 'ends_at', 'url'],
  entities: (registry) => registry.daos.filter((dao): dao is VotingDao => dao.live && dao.snapshotSpace !== null),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  resumes: true,
  derive: [
    { name: 'replaced-votes', sql: REPLACED_VOTES, isFull: false },
    { name: 'deleted-proposals', sql: DELETED_PROPOSALS, isFull: false },
  ],
  series: { table: 'governance_readings', entity: 'dao', time: 'read_at' },
})
