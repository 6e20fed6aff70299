import { z } from 'zod'
import { governance } from '../../shared/datasets/governance.ts'
import { governors } from '../../shared/datasets/governors.ts'
import { COUNTED, COUNTS, findRead, SOURCES, toScope } from '../governance/counted.ts'
import { account } from '../parameters/kinds.ts'
import { answerRecords, toObject } from '../records/answer.ts'
import { countOrNull, idValue, numberOrNull, timeValue, uint64 } from '../records/table.ts'
import { defineRoute } from '../route/define-route.ts'

const membership = z
  .strictObject({
    dao: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    votes: uint64.describe('Proposals of the DAO that the address voted on, on Snapshot and on governors.'),
    firstVoteAt: timeValue.nullable().describe('When it cast the first of these votes; null if there is none.'),
    lastVoteAt: timeValue.nullable().describe('When it cast the last of them; null if there is none.'),
    votingPower: numberOrNull.describe(
      'Voting power of the last vote; null where the source tells none, and if there is no vote.',
    ),
    delegators: countOrNull.describe('Accounts that delegate to it; null where delegations are not collected.'),
  })
  .meta({ id: 'VoterInDao', description: 'What an address did in one DAO.' })

const RECORD = toObject(
  membership,
  `transform(dao, {daos: Array(UInt64)}, {dao_ids: Array(String)}, ''), transform(dao, {daos: Array(UInt64)}, {dao_names: Array(String)}, ''),
  votes, toDateTime64(first_at, 3, 'UTC'), toDateTime64(last_at, 3, 'UTC'), if(isNaN(power), NULL, power), NULL`,
)

const SQL = `
SELECT fromUnixTimestamp64Milli({read_at: Int64}, 'UTC') AS as_of, ${RECORD} AS record FROM
(
  WITH ${COUNTED}
  SELECT dao, count() AS votes, min(created_at) AS first_at, max(created_at) AS last_at,
    argMax(ifNull(voting_power, nan), created_at) AS power
  FROM (SELECT dao, space, proposal, created_at, voting_power FROM dao_votes FINAL WHERE voter = {address: String} AND ${COUNTS})
  GROUP BY dao
)
ORDER BY votes DESC, dao`

export const votersRoute = defineRoute({
  operation: 'listVoterDaos',
  path: '/data/voters',
  tag: 'DAOs',
  summary: 'What one address did in all DAOs',
  description:
    'The DAOs in which an address voted, on Snapshot and on governors, those with the most votes first. Votes count as in `/data/daos/governance/voters` with `source=all`. An address that never voted has none.',
  query: { address: account('The voter or delegate.') },
  record: membership,
  datasets: [governance, governors],
  handle: async (call) => {
    const { db, registry, query } = call
    const scope = toScope(registry.daos, SOURCES)
    const readAt = await findRead(db, scope)
    const daoByKey = new Map(registry.daos.map((dao) => [dao.key, dao]))
    const daos = scope.daos.map((key) => daoByKey.get(key))
    const names = { dao_ids: daos.map((dao) => dao?.id ?? ''), dao_names: daos.map((dao) => dao?.name ?? '') }
    const params = { ...scope, ...names, address: query.address, read_at: readAt ?? 0 }
    return { ...(await answerRecords(call, { name: 'voter-daos', sql: SQL, params })), asOf: readAt ?? null }
  },
})
