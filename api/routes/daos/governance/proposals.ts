import { governance } from '../../../../shared/datasets/governance.ts'
import {
  detailedProposal,
  FROM_PROPOSALS,
  PROPOSAL_OF_SOURCE,
  proposal,
  proposalOfSource,
  STATES,
  toProposalValues,
} from '../../../../shared/datasets/governance-records.ts'
import { COUNTED, toScope } from '../../../../shared/datasets/governance-scope.ts'
import { governors } from '../../../../shared/datasets/governors.ts'
import { defineKeyset, toObject } from '../../../formats/formats.ts'
import { findRead, rejectSourceFilters, requireRead, sourceParameter, toSources } from '../../../governance/counted.ts'
import { exactParameter } from '../../../governance/exact.ts'
import { answerLongList } from '../../../governance/list.ts'
import { OPEN, PAST_DETAILS, PAST_STATE, toAsOfParameter } from '../../../governance/past.ts'
import { findStates, NOW, STATE } from '../../../governance/states.ts'
import { LIST_HEADERS } from '../../../http/headers.ts'
import { checkPast } from '../../../lists/lists.ts'
import { include, oneOf, page, searchText, time } from '../../../parameters/kinds.ts'
import { toQuestions } from '../../../parameters/questions.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { daoKind } from '../../../route/entities.ts'

/** The parameter for each additional member. */
const BROUGHT = {
  ...Object.fromEntries(Object.keys(PROPOSAL_OF_SOURCE).map((name) => [name, 'source'])),
  ...{ scoresExact: 'exact=true', scoresTotalExact: 'exact=true', body: 'include=body', quorumState: 'include=quorum' },
}

const proposalWithParameters = detailedProposal
  .partial({
    ...{ source: true, outcome: true, timesEstimated: true, flagged: true, queuedAt: true, executableAt: true },
    ...{ executedAt: true, canceledAt: true, scoresExact: true, scoresTotalExact: true, body: true, quorumState: true },
  })
  .meta({ id: 'GovernanceProposalWithParameters', description: 'A proposal, with the members that parameters add.' })

/** The state depends on the clock, and texts are read only if they are requested. */
const toRecord = (hasBody: boolean, isPast: boolean) => {
  const values = toProposalValues(NOW)
  return toObject(detailedProposal, {
    ...values,
    ...(isPast ? { outcome: `if(d.outcome = 'unknown', NULL, ${values.outcome})` } : {}),
    dao: "transform(p.dao, {daos: Array(UInt64)}, {dao_ids: Array(String)}, '')",
    state: 'state',
    body: hasBody ? 'ifNull(d.body, t.body)' : 'NULL',
  })
}

/** The texts on Snapshot. A text without a row is unknown. */
const TEXTS = `
LEFT JOIN
(
  SELECT dao, space, proposal, toNullable(body) AS body FROM dao_proposal_texts FINAL WHERE dao IN {daos: Array(UInt64)}
) AS t ON t.dao = p.dao AND t.space = p.space AND t.proposal = p.proposal`

const toSql = (hasBody: boolean, isPast: boolean) => `
WITH ${COUNTED}${isPast ? `,${OPEN}` : ''}
SELECT 0 AS key, p.proposal AS name, NULL AS market_cap, fromUnixTimestamp64Milli({read_at: Int64}, 'UTC') AS as_of,
  toInt64(toUnixTimestamp(p.created_at)) AS created, ${isPast ? PAST_STATE : STATE} AS state, ${toRecord(hasBody, isPast)} AS record
${isPast ? FROM_PROPOSALS(`created_at <= ${NOW}`, PAST_DETAILS) : FROM_PROPOSALS()}${hasBody ? TEXTS : ''}
WHERE ({any_state: Bool} OR ifNull(state = {state: String}, false))
  AND ({title: String} = '' OR ifNull(positionCaseInsensitiveUTF8(d.title, {title: String}) > 0, false))
  AND ({any_end: Bool} OR ifNull(d.ends_at < fromUnixTimestamp64Milli({ends_before: Int64}, 'UTC'), false))`

const NEWEST_FIRST = defineKeyset(['created', 'Int64', 'descending'], ['name', 'String'])

const questions = toQuestions(proposalOfSource)

export const governanceProposalsRoute = defineRoute({
  operation: 'listDaoProposals',
  path: '/data/daos/governance/proposals',
  tag: 'DAOs',
  summary: 'Proposals of one DAO, or of all by their end',
  description:
    'The proposals of one DAO on Snapshot, newest first; their number is `proposals` of `/data/daos/governance`. With `source`, also those on its governors, which are contracts on a chain; each then has its source and whether Snapshot flagged it, and filters on these members need `source`. Snapshot proposals are read every hour until two hours after their end, or until Snapshot has settled them, then once a day. Final blocks of contracts are read every hour. `state` follows the clock: `unsettled` after the end while the result on Snapshot is not final, and `closed` for proposals that were canceled, queued or executed on a chain. Deleted proposals are not listed. A DAO without a space, or with a space that is not completely read yet, has no proposals: `no_data`.',
  one: daoKind,
  oneUnless: 'endsBefore',
  query: {
    source: sourceParameter,
    exact: exactParameter,
    include: include(
      ['body', 'quorum'],
      'With `body`, the text of each proposal; with `quorum`, how near it is to its quorum.',
    ),
    state: oneOf(STATES, 'Only proposals in this state.', 'closed').optional(),
    endsBefore: time(
      'Only proposals whose vote ends before this time, of all DAOs unless `id` or `name` selects one. With `state=active` and `sort=endsAt`, the next deadlines.',
      '2026-12-01T00:00:00Z',
    ).optional(),
    title: searchText
      .meta({
        description: 'Only proposals with this text in their title, in upper or lower case.',
        examples: ['budget'],
      })
      .optional(),
    ...toAsOfParameter(
      'The proposals as of this time, without those made later: state, outcome and their times are those of that time, and a vote that was open then has the tallies of the votes cast until then, without those that were replaced by then. Unknown is null: `scores` are empty for votes by rank or quadratic votes and while choices are secret, a quorum that changes is null until the end, and a proposal whose cancellation has no known time has no state before its end. Texts, choices, start, end and flags are those of the last reading; earlier ones are not stored. When Snapshot settled a result is not stored: a settled proposal is `closed` from its end on. Proposals that were deleted since are not listed.',
    ),
    ...questions.parameters,
    ...page('proposals', { default: 100, max: 1000 }),
  },
  record: proposal,
  recordWith: { record: detailedProposal, members: BROUGHT, shapes: [proposalOfSource, proposalWithParameters] },
  datasets: [governance, governors],
  headers: LIST_HEADERS,
  mayHaveNoData: true,
  handle: async (call) => {
    const { db, registry, entities, query, now, representation } = call
    checkPast(query.asOf, now())
    if (query.source === undefined) rejectSourceFilters(questions.toFilters(query.filter), proposal)
    const sources = toSources(query.source)
    const [dao] = entities
    const daos = dao === undefined ? registry.daos.filter(({ live }) => live) : [dao]
    const [scope, at] = [toScope(daos, sources), query.asOf ?? now()]
    const readAt = dao === undefined ? ((await findRead(db, scope)) ?? null) : await requireRead(db, dao, sources)
    const idByKey = new Map(daos.map(({ key, id }) => [key, id]))
    const ids = scope.daos.map((key) => idByKey.get(key) ?? '')
    const asOf = readAt === null ? null : Math.min(readAt, at)
    const params = { ...scope, dao_ids: ids, now: at, read_at: asOf ?? 0 }
    const state = { any_state: query.state === undefined, state: query.state ?? '' }
    const end = { any_end: query.endsBefore === undefined, ends_before: query.endsBefore ?? 0 }
    const [answer, until] = await Promise.all([
      answerLongList(call, questions, {
        name: 'governance-proposals',
        sql: toSql(representation.fields.includes('body'), query.asOf !== undefined),
        params: { ...params, ...state, ...end, title: query.title ?? '' },
        keyset: NEWEST_FIRST,
      }),
      query.asOf === undefined ? findStates(db, scope, at).then((states) => states.until) : undefined,
    ])
    return { ...answer, asOf, ...(until === undefined ? {} : { expiresAt: until }) }
  },
})
