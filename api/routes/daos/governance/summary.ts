import { z } from 'zod'
import { governance } from '../../../../shared/datasets/governance.ts'
import { tokenPrices } from '../../../../shared/datasets/token-prices.ts'
import { countOrNull, idValue, timeValue, uint64 } from '../../../formats/formats.ts'
import { COUNTED, COUNTS, toScope } from '../../../governance/counted.ts'
import { findStates, STATE } from '../../../governance/states.ts'
import { defineList, listedDaos } from '../../../lists/lists.ts'

const summary = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    votes: z
      .strictObject({
        count: uint64.describe('Votes that were cast, one for each address and proposal.'),
        uniqueAddressesCount: uint64.describe('Addresses that ever voted.'),
      })
      .describe('All votes so far.'),
    proposals: uint64.describe('Proposals that were made.'),
    activeProposals: countOrNull.describe(
      'Those of them that are voted on now; null while the times of some are not known.',
    ),
    lastProposalAt: timeValue.nullable().describe('Time of the last proposal; null if there is none.'),
    votes30d: uint64.describe('Votes that were cast in the 30 days before the DAO was last read.'),
  })
  .meta({ id: 'GovernanceSummary', description: 'How much a DAO votes.' })

/** When each DAO was last read. */
const LAST_READ = `(
        SELECT mapFromArrays(groupArray(dao), groupArray(at)) FROM
        (SELECT dao, max(read_at) AS at FROM governance_readings WHERE dao IN {daos: Array(UInt64)} GROUP BY dao)
      )`

/**
 * Votes are read in the order of their DAOs, so that only the voters of one DAO are in memory at the same time. The 30
 * days end when that DAO was last read, because later votes are unknown.
 */
const VOTES = `
  SELECT dao, sum(votes) AS votes, count() AS voters, sum(recent) AS recent FROM
  (
    SELECT dao, voter, count() AS votes,
      countIf(created_at > ${LAST_READ}[dao] - INTERVAL 30 DAY) AS recent
    FROM dao_votes FINAL
    WHERE ${COUNTS}
    GROUP BY dao, voter
    SETTINGS optimize_aggregation_in_order = 1
  )
  GROUP BY dao`

const PROPOSALS = `
  SELECT p.dao AS dao, count() AS proposals, if(countIf(isNull(${STATE})) > 0, NULL, countIf(${STATE} = 'active')) AS active, max(p.created_at) AS last_at
  FROM (SELECT dao, space, proposal, created_at FROM dao_proposals FINAL WHERE ${COUNTS}) AS p
  LEFT JOIN (SELECT dao, space, proposal, starts_at, ends_at, outcome, scores_state FROM dao_proposal_details FINAL WHERE dao IN {daos: Array(UInt64)}) AS d
    ON d.dao = p.dao AND d.space = p.space AND d.proposal = p.proposal
  GROUP BY dao`

/** DAOs with spaces that were read; those without votes or proposals have zeros. */
const JOINS = `INNER JOIN
(
  WITH ${COUNTED}
  SELECT r.dao AS dao, r.read_at AS read_at, v.votes AS votes, v.voters AS voters, v.recent AS recent,
    p.proposals AS proposals,
    if(p.proposals = 0, 0, p.active) AS active, if(p.proposals = 0, NULL, p.last_at) AS last_at
  FROM
  (
    SELECT dao, max(at) AS read_at FROM
    (
      SELECT dao, toString(space) AS space, read_at AS at FROM governance_readings FINAL WHERE dao IN {daos: Array(UInt64)}
    )
    WHERE (dao, space) IN (SELECT pair.1, pair.2 FROM (SELECT arrayJoin(read_spaces) AS pair))
    GROUP BY dao
  ) AS r
  LEFT JOIN (${VOTES}) AS v ON v.dao = r.dao
  LEFT JOIN (${PROPOSALS}) AS p ON p.dao = r.dao
) AS g ON g.dao = d.key`

export const governanceSummaryRoute = defineList({
  operation: 'listDaoGovernance',
  path: '/data/daos/governance/summary',
  summary: 'How much DAOs vote',
  description:
    "For all live DAOs whose Snapshot space was read, or those that `id` and `name` select: the number of votes, voters and proposals on Snapshot, counted as in `/data/daos/governance`, and the number of active proposals. A DAO that is not listed has no space, or its space is not completely read yet. Exact name matches come first, then by the token's market cap, largest first, then by name.",
  of: listedDaos,
  record: summary,
  datasets: [governance, tokenPrices],
  name: 'dao-governance',
  asOf: 'g.read_at',
  values: `d.id, d.name, tuple(g.votes, g.voters), g.proposals, g.active, toDateTime64(g.last_at, 3, 'UTC'), g.recent`,
  joins: JOINS,
  toTimeScope: async ({ db, registry, now }) => {
    const scope = toScope(registry.daos)
    const at = now()
    return { params: { ...scope, now: at }, ...(await findStates(db, scope, at)) }
  },
})
