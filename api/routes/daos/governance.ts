import { z } from 'zod'
import { governance } from '../../../shared/datasets/governance.ts'
import type { Database } from '../../../shared/store/store.ts'
import { type Answer, idValue, JSON_SETTINGS, MOST_CACHED, toStream, writeArray } from '../../formats/formats.ts'
import { COUNTED, COUNTS, type Scope, toNoData, toScope } from '../../governance/counted.ts'
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

const VOTERS = `SELECT voter, count() AS votes FROM dao_votes FINAL WHERE ${COUNTS} GROUP BY voter`

const summary = z.object({
  read_at: z.int(),
  votes: z.int(),
  voters: z.int(),
  proposals: z.int(),
  digest: z.string(),
})

/** The counts, and a digest of the list of voters; undefined until a space was read completely. */
async function summarize(db: Database, scope: Scope) {
  const [row] = await db.rows({
    name: 'governance-summary',
    sql: `
WITH ${COUNTED}
SELECT toUnixTimestamp64Milli(r.read_at) AS read_at, v.votes AS votes, v.voters AS voters, v.digest AS digest, p.proposals AS proposals
FROM
(
  SELECT max(read_at) AS read_at FROM governance_readings FINAL
  WHERE dao IN {daos: Array(UInt64)} AND has({own_spaces: Array(String)}, space) HAVING count() > 0
) AS r
CROSS JOIN (SELECT sum(votes) AS votes, count() AS voters, toString(groupBitXor(sipHash64(voter))) AS digest FROM (${VOTERS})) AS v
CROSS JOIN (SELECT count() AS proposals FROM dao_proposals FINAL WHERE ${COUNTS}) AS p`,
    params: { ...scope },
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
    "All votes and proposals of the DAO's current and former Snapshot spaces, each counted once. Votes on governor contracts are not counted; other governance routes return them with `source=governor`. `uniqueVotingAddresses` are the distinct addresses with votes, in lower case and sorted. A DAO without a space, or with a space that is not completely read yet, has no governance data: `no_data`.",
  one: daoKind,
  query: {},
  response: governanceRecord,
  datasets: [governance],
  mayHaveNoData: true,
  handle: async ({ found: dao, db }): Promise<Answer> => {
    const scope = toScope([dao])
    const params = { ...scope }
    const totals = dao.snapshotSpace === null ? undefined : await summarize(db, scope)
    if (totals === undefined) throw toNoData(dao)
    const { read_at: asOf, votes, voters, proposals, digest } = totals
    const before = `{"_id":"${dao.id}","votes":{"count":${votes},"uniqueVotingAddresses":`
    const toAfter = (count: number) => `,"uniqueAddressesCount":${count}},"proposals":${proposals}}`
    if (voters <= MOST_CACHED.voters) {
      const sql = `WITH ${COUNTED} SELECT voter AS record, now64(3) AS as_of FROM (${VOTERS} ORDER BY voter)`
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
          sql: `WITH ${COUNTED}
SELECT concat(if(rowNumberInAllBlocks() = 0, '[', ','), toJSONString(voter), if(rowNumberInAllBlocks() + 1 = {voters: UInt64}, ']', ''))
FROM (SELECT voter FROM (${VOTERS}) ORDER BY voter LIMIT {voters: UInt64})`,
          params: { ...params, voters },
          format: 'RawBLOB',
          settings: JSON_SETTINGS,
        },
        digest,
        readDigest: async (bound) => (await summarize(bound, scope))?.digest,
      }),
    }
  },
})
