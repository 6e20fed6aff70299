import { z } from 'zod'
import { governance } from '../../../shared/datasets/governance.ts'
import type { Database } from '../../../shared/store/clickhouse.ts'
import { type Answer, MOST_KEPT, toStream } from '../../answers/answer.ts'
import { JSON_SETTINGS, writeArray } from '../../answers/written-json.ts'
import { Problem } from '../../problem/problem.ts'
import { idValue } from '../../records/values.ts'
import { defineRoute } from '../../route/define-route.ts'
import { daoKind } from '../../route/entities.ts'

const governanceRecord = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    votes: z
      .strictObject({
        count: z.int().describe('Votes that were cast, one for each address and proposal.'),
        uniqueVotingAddresses: z
          .array(z.string())
          .describe('Every address that ever voted, in lower case and in order.'),
        uniqueAddressesCount: z.int().describe('How many addresses these are.'),
      })
      .describe('All votes so far.'),
    proposals: z.int().describe('Proposals that were made.'),
  })
  .meta({ id: 'DaoGovernance', description: 'Votes and proposals of a DAO.' })

/** The statements of what is counted: voters with their votes, proposals, and when it was read. */
interface Counted {
  readonly voters: string
  readonly proposals: string
  readonly reading: string
}

const toVoters = (votes: string) => `
SELECT voter, count() AS votes
FROM dao_votes FINAL
WHERE dao = {dao: UInt64} AND ${votes}
GROUP BY voter`

const ONE_SPACE: Counted = {
  voters: toVoters('space = {space: String}'),
  proposals:
    'SELECT count() AS proposals FROM dao_proposals FINAL WHERE dao = {dao: UInt64} AND space = {space: String}',
  reading: 'SELECT * FROM governance_readings FINAL WHERE dao = {dao: UInt64} AND space = {space: String}',
}

// A DAO that moved to another space took its proposals and votes along, or left some behind: both spaces hold the same
// proposal under one id. It counts once, in the newest space that has it. A space that was not read to its end counts
// nothing, so that until then the one before stands for the DAO.
const OWN_SPACES = 'dao = {dao: UInt64} AND has({spaces: Array(String)}, space)'
const OWN_PROPOSALS = `FROM dao_proposals FINAL
WHERE ${OWN_SPACES} AND space IN (SELECT space FROM governance_readings FINAL WHERE ${OWN_SPACES})`

const SEVERAL_SPACES: Counted = {
  voters: toVoters(
    `(space, proposal) IN (SELECT argMin(space, indexOf({spaces: Array(String)}, space)), proposal ${OWN_PROPOSALS} GROUP BY proposal)`,
  ),
  proposals: `SELECT uniqExact(proposal) AS proposals ${OWN_PROPOSALS}`,
  reading: `SELECT max(read_at) AS read_at FROM governance_readings FINAL WHERE ${OWN_SPACES} HAVING count() > 0`,
}

type Params = { readonly dao: number; readonly space: string; readonly spaces: readonly string[] }

const summary = z.object({
  read_at: z.int(),
  votes: z.int(),
  voters: z.int(),
  proposals: z.int(),
  digest: z.string(),
})

/** The counts, and what tells one list of voters from another; nothing before the space was once read to its end. */
async function summarize(db: Database, params: Params, { voters, proposals, reading }: Counted) {
  const [row] = await db.rows({
    name: 'governance-summary',
    sql: `
SELECT toUnixTimestamp64Milli(r.read_at) AS read_at, v.votes AS votes, v.voters AS voters, v.digest AS digest, p.proposals AS proposals
FROM (${reading}) AS r
CROSS JOIN (SELECT sum(votes) AS votes, count() AS voters, toString(groupBitXor(sipHash64(voter))) AS digest FROM (${voters})) AS v
CROSS JOIN (${proposals}) AS p`,
    params,
    settings: { max_threads: 1 },
    schema: summary,
  })
  return row
}

export const governanceRoute = defineRoute({
  operation: 'getDaoGovernance',
  path: '/data/daos/governance',
  tag: 'DAOs',
  summary: 'Votes and proposals of one DAO',
  description:
    'All votes and proposals of the Snapshot space that the DAO votes in, and of those that it voted in before, each counted once. `uniqueVotingAddresses` are the addresses that ever voted, in lower case and in order, each once. A DAO without a space, or whose space was not read to its end yet, has no governance data: `no_data`.',
  one: daoKind,
  query: {},
  response: governanceRecord,
  datasets: [governance],
  mayHaveNoData: true,
  handle: async ({ found: dao, db }): Promise<Answer> => {
    const { snapshotSpace: space, formerSnapshotSpaces: former } = dao
    const params = { dao: dao.key, space: space ?? '', spaces: space === null ? [] : [space, ...former] }
    const counted = former.length === 0 ? ONE_SPACE : SEVERAL_SPACES
    const known = space === null ? undefined : await summarize(db, params, counted)
    if (known === undefined) {
      const why =
        space === null ? 'No Snapshot space of it is known.' : 'Its Snapshot space was not read to its end yet.'
      throw new Problem('no_data', `There is no governance data of this DAO. ${why}`)
    }
    const { read_at: asOf, votes, voters, proposals, digest } = known
    const before = `{"_id":"${dao.id}","votes":{"count":${votes},"uniqueVotingAddresses":`
    const toAfter = (count: number) => `,"uniqueAddressesCount":${count}},"proposals":${proposals}}`
    if (voters <= MOST_KEPT.voters) {
      const sql = `SELECT voter AS record, now64(3) AS as_of FROM (${counted.voters} ORDER BY voter)`
      const { body, records } = await writeArray(db, { name: 'governance', sql, params })
      return { body: Buffer.concat([Buffer.from(before), body, Buffer.from(toAfter(records))]), asOf }
    }
    return {
      asOf,
      digest: `${dao.id} ${votes} ${voters} ${proposals} ${digest}`,
      before,
      after: toAfter(voters),
      ...toStream(db, {
        statement: {
          name: 'governance-stream',
          sql: `SELECT concat(if(rowNumberInAllBlocks() = 0, '[', ','), toJSONString(voter), if(rowNumberInAllBlocks() + 1 = {voters: UInt64}, ']', ''))
FROM (SELECT voter FROM (${counted.voters}) ORDER BY voter LIMIT {voters: UInt64})`,
          params: { ...params, voters },
          format: 'RawBLOB',
          settings: JSON_SETTINGS,
        },
        digest,
        readDigest: async (bound) => (await summarize(bound, params, counted))?.digest,
      }),
    }
  },
})
