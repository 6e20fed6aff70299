import { z } from 'zod'
import { delegations } from '../../../../shared/datasets/delegations.ts'
import { governors } from '../../../../shared/datasets/governors.ts'
import type { Dao } from '../../../../shared/registry/entities.ts'
import { toWholeTokens } from '../../../../shared/whole-tokens.ts'
import { idValue, numberOrNull, timeValue, toIdSql, toObject, uint64 } from '../../../formats/formats.ts'
import { COUNTED, IS_COUNTED, toScope } from '../../../governance/counted.ts'
import { DELEGATORS, findReading, requireDelegations, toPowers } from '../../../governance/delegates.ts'
import { exactParameter, exactPower, toDecimalText } from '../../../governance/exact.ts'
import { LIST_HEADERS } from '../../../http/headers.ts'
import {
  answerFromSet,
  answerSet,
  asOfParameter,
  checkPast,
  createColumnSet,
  EVERYTHING,
  findRecords,
  isBinary,
  type ListQuery,
  type ListSource,
  loadSet,
  type RecordSet,
  toListHead,
} from '../../../lists/lists.ts'
import { page } from '../../../parameters/kinds.ts'
import { toQuestions } from '../../../parameters/questions.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { delegatingDaoKind } from '../../../route/entities.ts'

const delegate = z
  .strictObject({
    _id: idValue.describe('Id of the delegate in this DAO.'),
    dao: idValue.describe('Id of the DAO.'),
    delegate: z.string().describe('Address of the delegate, in lower case.'),
    votingPower: z.number().describe('Power that is delegated to it, in whole tokens.'),
    share: numberOrNull.describe('Its share of all delegated power as a fraction, 0.1 = 10 %; null if there is none.'),
    delegators: uint64.describe('Accounts that delegate to it; an account may delegate to itself.'),
    votesCast: uint64.describe("Proposals on the DAO's governors that it voted on."),
    proposalsMissed: uint64.describe(
      "Closed proposals on the DAO's governors that it did not vote on, of those whose vote started after it first had power; canceled ones do not count.",
    ),
    lastVoteAt: timeValue.nullable().describe('When it last voted on a governor; null if it never did.'),
  })
  .meta({ id: 'GovernanceDelegate', description: 'An address with delegated voting power in a DAO.' })

const delegateInDetail = delegate
  .extend({ votingPowerExact: exactPower.describe('The power with all digits, as a decimal text. With `exact=true`.') })
  .meta({ id: 'GovernanceDelegateDetails', description: 'An address with delegated voting power, with all members.' })

const RECORD = toObject(
  delegateInDetail,
  `${toIdSql("'delegate'", '{dao: UInt64}', 'p.delegate')}, {id: String}, p.delegate, power, if(total > 0, power / total, NULL), d.delegators, cast_count,
  greatest(0, arrayCount(start -> start >= p.first_at, closed) - arrayCount(start -> start >= p.first_at, v.starts)), toDateTime64(if(cast_count = 0, NULL, v.last_at), 3, 'UTC'),
  ${toDecimalText('p.units', 'p.decimals')}`,
)

const AT = "fromUnixTimestamp64Milli({at: Int64}, 'UTC')"

/**
 * The delegates at the moment `at`, with their votes on the DAO's governors up to it and the starts of the proposals that were
 * closed by then. A delegate's key is a hash, which a JavaScript number represents exactly.
 */
const toSql = (isPast: boolean) => `
WITH
  (
    SELECT groupArray(starts_at) FROM dao_proposal_details FINAL
    WHERE dao = {dao: UInt64} AND has({own_spaces: Array(String)}, space) AND ends_at <= ${AT} AND outcome != 'canceled' AND starts_at IS NOT NULL
  ) AS closed
SELECT bitShiftRight(sipHash64(p.delegate), 11) AS key, '' AS name, power AS market_cap, fromUnixTimestamp64Milli({read_at: Int64}, 'UTC') AS as_of,
  ${toWholeTokens('p.units', 'p.decimals')} AS power, ${toWholeTokens('sum(p.units) OVER ()', 'p.decimals')} AS total, v.votes AS cast_count, ${RECORD} AS record
FROM (${toPowers(isPast)}) AS p
LEFT JOIN (${DELEGATORS}) AS d ON d.delegate = p.delegate
LEFT JOIN
(
  WITH ${COUNTED}
  SELECT c.voter AS voter, count() AS votes, max(c.at) AS last_at, groupArrayIf(e.starts_at, e.is_closed) AS starts FROM
  (
    SELECT voter, space, proposal, max(created_at) AS at FROM dao_cast_votes FINAL
    WHERE dao = {dao: UInt64} AND ${IS_COUNTED} AND NOT is_replaced AND created_at <= ${AT}
    GROUP BY voter, space, proposal
  ) AS c
  LEFT JOIN
  (
    SELECT space, proposal, starts_at, ifNull(ends_at <= ${AT} AND outcome != 'canceled' AND starts_at IS NOT NULL, false) AS is_closed
    FROM dao_proposal_details FINAL WHERE dao = {dao: UInt64}
  ) AS e ON e.space = c.space AND e.proposal = c.proposal
  GROUP BY c.voter
) AS v ON v.voter = p.delegate
QUALIFY {all: Bool} OR has({keys: Array(UInt64)}, key)`

const SQL = { now: toSql(false), past: toSql(true) }
const DATASETS = [delegations, governors]

interface SourceCall {
  readonly found: Dao
  readonly query: { readonly asOf?: number | undefined }
  readonly now: () => number
}

/** The clock alone does not change cached records: a vote that ends is missed from the next reading on. */
const toSource = ({ found: dao, query: { asOf }, now }: SourceCall, readAt: number): ListSource => ({
  name: 'governance-delegates',
  key: `governance-delegates ${dao.id} ${asOf ?? ''}`,
  datasets: DATASETS,
  sql: asOf === undefined ? SQL.now : SQL.past,
  params: {
    ...toScope([dao], ['governor']),
    ...{ dao: dao.key, space: dao.votingToken?.space ?? '', id: dao.id, read_at: readAt, at: asOf ?? now() },
  },
})

const questions = toQuestions(delegate)

export const governanceDelegatesRoute = defineRoute({
  operation: 'listDaoDelegates',
  path: '/data/daos/governance/delegates',
  tag: 'DAOs',
  summary: 'Delegates of one DAO',
  description:
    "The addresses with delegated power of the token that the DAO's governors count, those with the most power first, and how they voted on the governors. Powers, delegations and votes are those of `asOf`, or of the last reading. If the token has no delegations, or is not completely read yet, the code is `no_data`.",
  one: delegatingDaoKind,
  query: {
    ...asOfParameter,
    exact: exactParameter,
    ...questions.parameters,
    ...page('delegates', { default: 100, max: 1000 }),
  },
  record: delegate,
  recordWith: { record: delegateInDetail, members: { votingPowerExact: 'exact=true' }, shapes: [delegateInDetail] },
  datasets: DATASETS,
  headers: LIST_HEADERS,
  mayHaveNoData: true,
  peek: (call) => {
    const { chunks, found: dao, query, representation, now } = call
    const readAt = findReading(chunks, dao)
    if (readAt === undefined || isBinary(representation)) return undefined
    checkPast(query.asOf, now())
    const set = findRecords<undefined, RecordSet>(chunks, toSource(call, readAt), () => undefined)
    if (set === undefined) return undefined
    const answer = answerFromSet(set, toListQuery(query), representation, chunks.buffers.take)
    return { ...answer, ...toListHead(answer, representation), asOf: readAt, isQuick: true }
  },
  handle: async (call) => {
    const { chunks, query, representation, now } = call
    checkPast(query.asOf, now())
    const readAt = await requireDelegations(call, call.found)
    const source = toSource(call, readAt)
    const load = () => loadSet<RecordSet>(call, source, (rows) => createColumnSet(delegateInDetail, rows))
    const set = await findRecords<Promise<RecordSet>, RecordSet>(chunks, source, load)
    const answer = await answerSet(call, { ...source, set }, toListQuery(query))
    return { ...answer, ...toListHead(answer, representation), asOf: readAt }
  },
})

const toListQuery = (query: {
  readonly sort?: string | undefined
  readonly filter?: string[] | undefined
  readonly limit: number
}): ListQuery => ({
  selection: EVERYTHING,
  sort: questions.toSort(query.sort),
  filters: questions.toFilters(query.filter),
  limit: query.limit,
})
