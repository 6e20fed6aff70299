import { z } from 'zod'
import { governance } from '../../../../shared/datasets/governance.ts'
import { governors } from '../../../../shared/datasets/governors.ts'
import { countOrNull, defineKeyset, idValue, numberOrNull, timeValue, toObject } from '../../../formats/formats.ts'
import {
  COUNTED,
  COUNTS,
  findRead,
  rejectSourceFilters,
  requireRead,
  SOURCES,
  sourceParameter,
  toScope,
  toSource,
  toSources,
} from '../../../governance/counted.ts'
import { exactParameter, exactPower, toDecimalText } from '../../../governance/exact.ts'
import { answerLongList } from '../../../governance/list.ts'
import { findStates, STATE, STATES } from '../../../governance/states.ts'
import { LIST_HEADERS } from '../../../http/headers.ts'
import { include, oneOf, page, time } from '../../../parameters/kinds.ts'
import { toQuestions } from '../../../parameters/questions.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { daoKind } from '../../../route/entities.ts'

const OUTCOMES = ['canceled', 'queued', 'executed'] as const

const proposal = z
  .strictObject({
    _id: idValue.describe('Id of the proposal.'),
    dao: idValue.describe('Id of the DAO.'),
    title: z.string().describe('Its title, empty where it was not collected.'),
    author: z.string().describe('Address of its author, in lower case.'),
    state: z
      .enum(STATES)
      .nullable()
      .describe(
        '`pending` before the vote starts, `active` until it ends, then `closed`, by the clock; `unsettled` after the end while Snapshot has not counted all votes or revealed secret choices, so that `scores` are not final; null where its times were not collected.',
      ),
    choices: z.array(z.string()).describe('Choices; a vote contains their numbers, starting at 1.'),
    scores: z.array(z.number()).describe('Voting power of each choice; empty if the source does not report it.'),
    scoresTotal: numberOrNull.describe('Voting power of all votes; null if the source does not report it.'),
    votes: countOrNull.describe(
      'Votes that the source counted when the proposal was last read; null where it was not collected.',
    ),
    quorum: numberOrNull.describe('Required voting power; null if the source does not report it.'),
    createdAt: timeValue.describe('When it was made.'),
    startsAt: timeValue.nullable().describe('When the vote starts; null where it was not collected.'),
    endsAt: timeValue.nullable().describe('When the vote ends; null where it was not collected.'),
    url: z.url().nullable().describe('URL of its web page; null if the source does not report it.'),
  })
  .meta({ id: 'GovernanceProposal', description: 'A proposal that a DAO votes on, or voted on.' })

const OF_SOURCE = {
  source: z
    .enum(SOURCES)
    .describe('Where votes on it are cast: on `snapshot`, or on a `governor`, which is a contract.'),
  outcome: z
    .enum(OUTCOMES)
    .nullable()
    .describe(
      'Outcome on its chain, which closes the proposal; null if it has none, and for all proposals on Snapshot.',
    ),
  timesEstimated: z
    .boolean()
    .describe(
      'Whether `startsAt` or `endsAt` is an estimate: the contract counts blocks, and the chain has not reached that one.',
    ),
  flagged: z.boolean().describe('Whether Snapshot flagged it as spam or a scam; false on governors.'),
  queuedAt: timeValue.nullable().describe('When it was queued on its chain; null if it was not, and on Snapshot.'),
  executableAt: timeValue
    .nullable()
    .describe(
      'From when it can be executed, as its timelock states; null if it was not queued or its contract does not state it, and on Snapshot.',
    ),
  executedAt: timeValue.nullable().describe('When it was executed; null if it was not, and on Snapshot.'),
  canceledAt: timeValue.nullable().describe('When it was canceled or vetoed; null if it was not, and on Snapshot.'),
}

const proposalOfSource = proposal
  .extend(OF_SOURCE)
  .meta({ id: 'GovernanceProposalOfSource', description: 'A proposal, and where votes on it are cast. With `source`.' })

const detailedProposal = proposalOfSource
  .extend({
    scoresExact: z
      .array(exactPower)
      .describe(
        'Voting power for each choice with all digits, as decimal texts; empty on Snapshot, which counts in floating-point numbers. With `exact=true`.',
      ),
    scoresTotalExact: exactPower
      .nullable()
      .describe('Voting power of all votes with all digits; null on Snapshot. With `exact=true`.'),
    body: z
      .string()
      .nullable()
      .describe(
        'Its text in Markdown, as written in the proposal: show it as untrusted. Empty if the author wrote none; null if it was not collected. With `include=body`.',
      ),
  })
  .meta({ id: 'GovernanceProposalDetails', description: 'A proposal, with all members.' })

/** The parameter for each additional member. */
const BROUGHT = {
  ...Object.fromEntries(Object.keys(OF_SOURCE).map((name) => [name, 'source'])),
  ...{ scoresExact: 'exact=true', scoresTotalExact: 'exact=true', body: 'include=body' },
}

const proposalWithParameters = detailedProposal
  .partial({
    ...{ source: true, outcome: true, timesEstimated: true, flagged: true, queuedAt: true, executableAt: true },
    ...{ executedAt: true, canceledAt: true, scoresExact: true, scoresTotalExact: true, body: true },
  })
  .meta({ id: 'GovernanceProposalWithParameters', description: 'A proposal, with the members that parameters add.' })

/** Details that were never collected have no row, and their time reads as 0: all of them are then unknown. */
const toRecord = (body: string) =>
  toObject(
    detailedProposal,
    `p.id, transform(p.dao, {daos: Array(UInt64)}, {dao_ids: Array(String)}, ''), d.title, p.author, state, d.choices, d.scores, d.scores_total, d.votes, d.quorum,
  toDateTime64(p.created_at, 3, 'UTC'), d.starts_at, d.ends_at, if(match(d.url, '^https?://'), d.url, NULL), ${toSource('p.space')}, nullIf(toString(d.outcome), ''), d.is_estimated, d.is_flagged,
  d.queued_at, d.executable_at, d.executed_at, d.canceled_at,
  arrayMap(power -> ${toDecimalText('power', 'd.decimals')}, d.scores_exact), ${toDecimalText('d.total_exact', 'd.decimals')}, ${body}`,
  )

/** The texts on Snapshot. A text without a row is unknown. */
const TEXTS = `
LEFT JOIN
(
  SELECT dao, space, proposal, toNullable(body) AS body FROM dao_proposal_texts FINAL WHERE dao IN {daos: Array(UInt64)}
) AS t ON t.dao = p.dao AND t.space = p.space AND t.proposal = p.proposal`

/** The texts are read only if they are requested. */
const toSql = (hasBody: boolean) => `
WITH ${COUNTED}
SELECT 0 AS key, p.proposal AS name, NULL AS market_cap, fromUnixTimestamp64Milli({read_at: Int64}, 'UTC') AS as_of,
  toInt64(toUnixTimestamp(p.created_at)) AS created, ${STATE} AS state, ${toRecord(hasBody ? 'ifNull(d.body, t.body)' : 'NULL')} AS record
FROM (SELECT dao, space, proposal, id, author, created_at FROM dao_proposals FINAL WHERE ${COUNTS}) AS p
LEFT JOIN (SELECT * FROM dao_proposal_details FINAL WHERE dao IN {daos: Array(UInt64)}) AS d
  ON d.dao = p.dao AND d.space = p.space AND d.proposal = p.proposal${hasBody ? TEXTS : ''}
WHERE ({any_state: Bool} OR ifNull(state = {state: String}, false))
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
    include: include(['body'], 'With `body`, the text of each proposal.'),
    state: oneOf(STATES, 'Only proposals in this state.', 'closed').optional(),
    endsBefore: time(
      'Only proposals whose vote ends before this time, of all DAOs unless `id` or `name` selects one. With `state=active` and `sort=endsAt`, the next deadlines.',
      '2026-12-01T00:00:00Z',
    ).optional(),
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
    if (query.source === undefined) rejectSourceFilters(questions.toFilters(query.filter), proposal)
    const sources = toSources(query.source)
    const [dao] = entities
    const daos = dao === undefined ? registry.daos.filter(({ live }) => live) : [dao]
    const [scope, at] = [toScope(daos, sources), now()]
    const asOf = dao === undefined ? ((await findRead(db, scope)) ?? null) : await requireRead(db, dao, sources)
    const idByKey = new Map(daos.map(({ key, id }) => [key, id]))
    const ids = scope.daos.map((key) => idByKey.get(key) ?? '')
    const params = { ...scope, dao_ids: ids, now: at, read_at: asOf ?? 0 }
    const state = { any_state: query.state === undefined, state: query.state ?? '' }
    const end = { any_end: query.endsBefore === undefined, ends_before: query.endsBefore ?? 0 }
    const [answer, { until }] = await Promise.all([
      answerLongList(call, questions, {
        name: 'governance-proposals',
        sql: toSql(representation.fields.includes('body')),
        params: { ...params, ...state, ...end },
        keyset: NEWEST_FIRST,
      }),
      findStates(db, scope, at),
    ])
    return { ...answer, asOf, ...(until === undefined ? {} : { expiresAt: until }) }
  },
})
