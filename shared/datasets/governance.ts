import { z } from 'zod'
import { toMs } from '../intervals.ts'
import type { Dao } from '../registry/entities.ts'
import { defineDataset } from './define-dataset.ts'

/** Nothing that is voted on is older than the first block of Ethereum, and the columns of times end soon after. */
export const EARLIEST_SECONDS = Date.parse('2015-07-30T00:00:00Z') / 1000
export const LATEST_SECONDS = Date.parse('2100-01-01T00:00:00Z') / 1000
/** Some spaces count in the smallest unit of their token: 10^15 tokens of 18 decimals. */
const MOST_POWER = 1e33
/** A vote is one account's, and there are fewer accounts. */
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

/** What Snapshot says of a proposal's scores; empty where it says nothing. */
export const SCORES_STATES = ['pending', 'final', 'invalid', ''] as const

const made = z.strictObject({ dao, space: text, proposal: text, address: account, at })
const vote = made.extend({
  kind: z.literal('vote'),
  /** JSON as the source gave it, by the proposal's type of voting. */
  choice: text,
  voting_power: power.nullable(),
})
const proposal = made.extend({
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
  /** A page for people: no other scheme may run or reach anything in a browser. */
  url: z.url({ protocol: /^https?$/ }).nullable(),
  is_flagged: z.boolean(),
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
 * What was read of a DAO's space: a vote (`address` voted on `proposal`), a proposal (`address` made it), both `at` the
 * time of their creation; that the space was read to its end as of `at`; or that a reading which began `at` saw every
 * proposal that there is.
 */
export const governanceRow = z.discriminatedUnion('kind', [vote, proposal, reading])

export type GovernanceRow = z.infer<typeof governanceRow>

/** A DAO that votes somewhere. */
export type VotingDao = Dao & { readonly snapshotSpace: string }

/**
 * Marks the proposals that the last sweep of their space did not see any more: their authors took them back. One that is
 * seen again later is there again, because what was collected later stays.
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

/** Whether a space is a governor's account on a chain, by CAIP-10, and none of Snapshot. */
export const isGovernor = (space: string): string => `startsWith(${space}, 'eip155:')`

/** Of the proposals on Snapshot on which votes came since the slot began: all others stay as they are. */
const TOUCHED = `(dao, space, proposal) IN
  (
    SELECT dao, space, proposal FROM dao_cast_votes
    WHERE dao IN {entities: Array(UInt64)} AND collected_at >= {slot: DateTime64(3, 'UTC')}
      AND NOT ${isGovernor('space')}
  )`

/**
 * Marks the votes that their voters replaced by a later one, on the proposals of which votes came since the slot began. On a
 * governor nobody replaces a vote: who casts several casts their power in parts.
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

/** Votes and proposals of DAOs on Snapshot: rows go through `governance_in`, whose views tell the kinds apart. */
export const governance = defineDataset({
  name: 'governance',
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
    { name: 'replaced-votes', sql: REPLACED_VOTES, isWhole: false },
    { name: 'deleted-proposals', sql: DELETED_PROPOSALS, isWhole: false },
  ],
  series: { table: 'governance_readings', entity: 'dao', time: 'read_at' },
})
