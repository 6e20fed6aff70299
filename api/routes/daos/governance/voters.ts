import { z } from 'zod'
import { governance, isGovernor } from '../../../../shared/datasets/governance.ts'
import { governors } from '../../../../shared/datasets/governors.ts'
import { defineKeyset, numberOrNull, timeValue, toObject, uint64 } from '../../../formats/formats.ts'
import { COUNTED, COUNTS, requireRead, sourceParameter, toScope, toSources } from '../../../governance/counted.ts'
import { exactParameter, exactPower, toDecimalText } from '../../../governance/exact.ts'
import { answerLongList } from '../../../governance/list.ts'
import { LIST_HEADERS } from '../../../http/headers.ts'
import { page } from '../../../parameters/kinds.ts'
import { toQuestions } from '../../../parameters/questions.ts'
import { VALUES_PER_LIST } from '../../../route/cost.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { daoKind } from '../../../route/entities.ts'

const voter = z
  .strictObject({
    voter: z.string().describe('Address of the voter, in lower case.'),
    votes: uint64.describe('Proposals that it voted on.'),
    firstVoteAt: timeValue.describe('When it cast the first of these votes.'),
    lastVoteAt: timeValue.describe('When it cast the last of them.'),
    lastVotingPower: numberOrNull.describe(
      'Voting power of the last vote, or of its last part on a governor; null if the source does not report it.',
    ),
  })
  .meta({ id: 'GovernanceVoter', description: 'An address that voted in a DAO.' })

const voterInDetail = voter
  .extend({
    lastVotingPowerExact: exactPower
      .nullable()
      .describe(
        'Voting power of the last vote with all digits, as a decimal text; null if it is on Snapshot. With `exact=true`.',
      ),
  })
  .meta({ id: 'GovernanceVoterDetails', description: 'An address that voted in a DAO, with all members.' })

/**
 * A time and a hash that distinguishes votes of one second, as one number: the maximum of numbers is far cheaper than
 * that of tuples, one for each of a million votes.
 */
const LAST = 'bitOr(bitShiftLeft(toUInt64(toUnixTimestamp(created_at)), 32), bitAnd(cityHash64(proposal), 0xFFFFFFFF))'

const RECORD = toObject(
  voterInDetail,
  `voter, votes, toDateTime64(first_at, 3, 'UTC'), toDateTime64(last_at, 3, 'UTC'), if(isNaN(power), NULL, power), nullIf(power_exact, '')`,
)

/** The votes that count, one per voter and proposal. */
const VOTES =
  "SELECT voter, proposal, created_at, created_at AS first_at, voting_power, '' AS exact FROM dao_votes FINAL"

/**
 * Like `VOTES`, if some votes are on governors. `dao_votes` contains only the last part of a vote that was cast in
 * parts; the time of the first part is in `dao_cast_votes`.
 */
const VOTES_IN_PARTS = `
  ${VOTES}
  WHERE ${COUNTS} AND NOT ${isGovernor('space')}
  UNION ALL
  SELECT voter, proposal, max(cast_at) AS created_at, min(cast_at) AS first_at, argMax(cast_power, cast_at) AS voting_power,
    argMax(cast_exact, cast_at) AS exact
  FROM
  (
    SELECT space, voter, proposal, created_at AS cast_at, ifNull(voting_power, nan) AS cast_power,
      ifNull(${toDecimalText('power_exact', 'decimals')}, '') AS cast_exact
    FROM dao_cast_votes FINAL
    WHERE ${COUNTS} AND ${isGovernor('space')} AND NOT is_replaced
  )
  GROUP BY space, voter, proposal`

// An unknown voting power is NaN in between, because the maximum of nullable values would ignore it.
const toSql = (votes: string) => `
SELECT 0 AS key, voter AS name, NULL AS market_cap, fromUnixTimestamp64Milli({read_at: Int64}, 'UTC') AS as_of,
  toInt64(votes) AS cast_votes, ${RECORD} AS record
FROM
(
  WITH ${COUNTED}
  SELECT voter, count() AS votes, min(first_at) AS first_at, max(created_at) AS last_at,
    argMax(ifNull(voting_power, nan), ${LAST}) AS power, argMax(exact, ${LAST}) AS power_exact
  FROM (${votes})
  GROUP BY voter
)`

const MOST_VOTES_FIRST = defineKeyset(['cast_votes', 'Int64', 'descending'], ['name', 'String'])

const questions = toQuestions(voter)

export const governanceVotersRoute = defineRoute({
  operation: 'listDaoVoters',
  path: '/data/daos/governance/voters',
  tag: 'DAOs',
  summary: 'Voters of one DAO',
  description:
    'The addresses with votes in one DAO on Snapshot, those with the most votes first; their number is `uniqueAddressesCount` of `/data/daos/governance`. With `source`, voters on its governors, which are contracts on a chain. A changed vote counts once, and so does a vote that was cast in parts on a governor. A DAO without a space, or with a space that is not completely read yet, has no voters: `no_data`.',
  one: daoKind,
  query: {
    source: sourceParameter,
    exact: exactParameter,
    ...questions.parameters,
    ...page('voters', { default: 100, max: 10_000 }),
  },
  record: voter,
  recordWith: { record: voterInDetail, members: { lastVotingPowerExact: 'exact=true' }, shapes: [voterInDetail] },
  estimateValues: () => VALUES_PER_LIST,
  datasets: [governance, governors],
  headers: LIST_HEADERS,
  mayHaveNoData: true,
  handle: async (call) => {
    const { db, found: dao, query } = call
    const sources = toSources(query.source)
    const asOf = await requireRead(db, dao, sources)
    const params = { ...toScope([dao], sources), read_at: asOf }
    const sql = toSql(sources.includes('governor') ? VOTES_IN_PARTS : `${VOTES} WHERE ${COUNTS}`)
    const source = { name: 'governance-voters', sql, params, keyset: MOST_VOTES_FIRST }
    return { ...(await answerLongList(call, questions, source)), asOf }
  },
})
