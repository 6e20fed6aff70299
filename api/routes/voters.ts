import { z } from 'zod'
import { delegations } from '../../shared/datasets/delegations.ts'
import { governance } from '../../shared/datasets/governance.ts'
import { governors } from '../../shared/datasets/governors.ts'
import { toWholeTokens } from '../../shared/whole-tokens.ts'
import { answerRecords, countOrNull, idValue, numberOrNull, timeValue, toObject, uint64 } from '../formats/formats.ts'
import { COUNTED, COUNTS, findRead, SOURCES, toScope } from '../governance/counted.ts'
import { findDelegating } from '../governance/delegates.ts'
import { account } from '../parameters/kinds.ts'
import { VALUES_PER_LIST } from '../route/cost.ts'
import { defineRoute } from '../route/define-route.ts'

const membership = z
  .strictObject({
    dao: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    votes: uint64.describe('Proposals of the DAO that the address voted on, on Snapshot and on governors.'),
    firstVoteAt: timeValue.nullable().describe('Time of the first of these votes; null if there is none.'),
    lastVoteAt: timeValue.nullable().describe('Time of the last of these votes; null if there is none.'),
    votingPower: numberOrNull.describe(
      'Power that is delegated to it now on the token that the governors count; without such a token, the voting power of its last vote. Null if neither is known.',
    ),
    delegators: countOrNull.describe(
      'Accounts that delegate to it; null if delegations are not collected, or were not read to their end yet.',
    ),
  })
  .meta({ id: 'VoterInDao', description: 'Votes and delegated power of an address in one DAO.' })

const RECORD = toObject(
  membership,
  `transform(dao, {dao_keys: Array(UInt64)}, {dao_ids: Array(String)}, ''), transform(dao, {dao_keys: Array(UInt64)}, {dao_names: Array(String)}, ''),
  votes, toDateTime64(first_at, 3, 'UTC'), toDateTime64(last_at, 3, 'UTC'), if(isNaN(power), NULL, power), delegators`,
)

const SQL = `
SELECT fromUnixTimestamp64Milli({read_at: Int64}, 'UTC') AS as_of, ${RECORD} AS record FROM
(
  WITH ${COUNTED}
  SELECT dao, countIf(kind = 1) AS votes, minOrNullIf(cast_at, kind = 1) AS first_at, maxOrNullIf(cast_at, kind = 1) AS last_at,
    if(countIf(kind = 2) > 0, maxIf(power, kind = 2), argMaxIf(power, cast_at, kind = 1)) AS power,
    if(has({delegating: Array(UInt64)}, dao), toUInt64(sum(delegators)), NULL) AS delegators
  FROM
  (
    SELECT dao, 1 AS kind, created_at AS cast_at, ifNull(voting_power, nan) AS power, 0 AS delegators
    FROM dao_votes FINAL WHERE voter = {address: String} AND ${COUNTS}
    UNION ALL
    SELECT dao, 2 AS kind, toDateTime(0, 'UTC') AS cast_at, ${toWholeTokens('units', 'unit_decimals')} AS power, 0 AS delegators FROM
    (
      SELECT dao, argMaxMerge(last_power) AS units, max(decimals) AS unit_decimals FROM delegate_powers_latest
      WHERE dao IN {delegating: Array(UInt64)} AND delegate = {address: String} GROUP BY dao
    )
    UNION ALL
    SELECT dao, 3 AS kind, toDateTime(0, 'UTC') AS cast_at, nan AS power, toUInt8(1) AS delegators FROM
    (
      SELECT dao, delegator, argMax(to_delegate, (block_number, log_index)) AS delegate FROM delegation_events
      WHERE dao IN {delegating: Array(UInt64)} AND (dao, delegator) IN
      (
        SELECT dao, delegator FROM delegation_events
        WHERE dao IN {delegating: Array(UInt64)} AND to_delegate = {address: String}
      )
      GROUP BY dao, delegator
    )
    WHERE delegate = {address: String}
  )
  GROUP BY dao
)
ORDER BY votes DESC, dao`

export const votersRoute = defineRoute({
  operation: 'listVoterDaos',
  path: '/data/voters',
  tag: 'DAOs',
  summary: 'Votes and delegated power of one address in all DAOs',
  description:
    'The DAOs in which an address voted, on Snapshot and on governors, or in which it has delegated power, those with the most votes first. Votes count as in `/data/daos/governance/voters` with `source=all`. An address that never voted and has no power has none.',
  query: { address: account('The voter or delegate.') },
  record: membership,
  estimateValues: () => VALUES_PER_LIST,
  datasets: [governance, governors, delegations],
  handle: async (call) => {
    const { db, registry, query } = call
    const scope = toScope(registry.daos, SOURCES)
    const [readAt, delegating] = await Promise.all([findRead(db, scope), findDelegating(db, registry.daos)])
    const keys = [...new Set([...scope.daos, ...delegating])]
    const daoByKey = new Map(registry.daos.map((dao) => [dao.key, dao]))
    const daos = keys.map((key) => daoByKey.get(key))
    const names = { dao_ids: daos.map((dao) => dao?.id ?? ''), dao_names: daos.map((dao) => dao?.name ?? '') }
    const params = { ...scope, ...names, dao_keys: keys, delegating, address: query.address, read_at: readAt ?? 0 }
    return { ...(await answerRecords(call, { name: 'voter-daos', sql: SQL, params })), asOf: readAt ?? null }
  },
})
