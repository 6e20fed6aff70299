import { z } from 'zod'
import { governance } from '../../../../shared/datasets/governance.ts'
import { detailedVote, VOTE_VALUES, vote, voteOfSource } from '../../../../shared/datasets/governance-records.ts'
import { toScope } from '../../../../shared/datasets/governance-scope.ts'
import { governors } from '../../../../shared/datasets/governors.ts'
import { toId } from '../../../../shared/ids.ts'
import type { Dao } from '../../../../shared/registry/entities.ts'
import { answerRecords, toObject } from '../../../formats/formats.ts'
import { COPIES, NEWEST_VOTES_FIRST, toCastVotes, toVotesCount, toVotesPage } from '../../../governance/cast-votes.ts'
import { toChoice, toChoiceText } from '../../../governance/choice.ts'
import {
  findProposal,
  rejectSourceFilters,
  requireRead,
  sourceParameter,
  toSources,
} from '../../../governance/counted.ts'
import { exactParameter } from '../../../governance/exact.ts'
import { answerLongList } from '../../../governance/list.ts'
import { toAsOfParameter } from '../../../governance/past.ts'
import { LIST_HEADERS } from '../../../http/headers.ts'
import { checkPast, toListHead } from '../../../lists/lists.ts'
import { include, oneId, page } from '../../../parameters/kinds.ts'
import { toQuestions } from '../../../parameters/questions.ts'
import { VALUES_PER_LIST } from '../../../route/cost.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { daoKind } from '../../../route/entities.ts'

/** The parameter for each additional member. */
const BROUGHT = { source: 'source', votingPowerExact: 'exact=true', choiceText: 'include=choiceText' }

const voteWithParameters = detailedVote
  .partial({ source: true, votingPowerExact: true, choiceText: true })
  .meta({ id: 'GovernanceVoteWithParameters', description: 'A vote, with the members that parameters add.' })

const AS_OF = "fromUnixTimestamp64Milli({read_at: Int64}, 'UTC') AS as_of"

/** The proposals' choices are read only if choices are requested as text. */
const toRecordOf = (hasText: boolean) =>
  toObject(detailedVote, {
    ...VOTE_VALUES,
    choice: toChoice('v.choice'),
    choiceText: hasText ? toChoiceText('v.choice', CHOICES) : 'NULL',
  })
const CHOICES = `choices_of[concat(v.space, ' ', v.proposal)]`
const withChoices = (hasText: boolean) =>
  hasText
    ? `WITH (
  SELECT mapFromArrays(groupArray(concat(space, ' ', proposal)), groupArray(choices)) FROM dao_proposal_details FINAL
  WHERE dao IN {daos: Array(UInt64)} AND ({proposal: String} = '' OR proposal = {proposal: String})
) AS choices_of `
    : ''

const toAll = (
  hasText: boolean,
  isPast: boolean,
) => `${withChoices(hasText)}SELECT 0 AS key, concat(proposal, ' ', voter, ' ', toString(toUnixTimestamp(created_at))) AS name, NULL AS market_cap, ${AS_OF}, created_at, proposal, voter, space,
  ${toRecordOf(hasText)} AS record
FROM (${toCastVotes(isPast)}) AS v`

const counted = z.object({ total: z.int() })

const questions = toQuestions(voteOfSource)

/** Later than any vote, in Unix seconds: the column's times end in 2106. */
const END = Date.parse('2100-01-01') / 1000

interface Selection {
  readonly dao: Dao | undefined
  readonly proposal: string
}

export const governanceVotesRoute = defineRoute({
  operation: 'listDaoVotes',
  path: '/data/daos/governance/votes',
  tag: 'DAOs',
  summary: 'Votes of one DAO or on one proposal',
  description:
    "The votes in one DAO on Snapshot, or on one of its proposals, newest first. With `source`, also votes on its governors, which are contracts on a chain; each vote then has its source, and filters on it need `source` or `proposal`. A voter has one vote on a proposal: a change replaces it and has the time of the change. A governor that counts in fractions accepts votes in parts, and each part is a record. The number of votes of a DAO is `votes.count` of `/data/daos/governance`. Votes are read every hour, and once more two hours after the end of the proposal, when secret choices are known. A DAO without a space, or with a space that is not completely read yet, has no votes: `no_data`. The list of an unknown proposal is empty; votes on a governor's proposal need no `source`.",
  one: daoKind,
  oneUnless: 'proposal',
  query: {
    proposal: oneId('proposal', toId('proposal', 0, 'example')).optional(),
    source: sourceParameter,
    exact: exactParameter,
    include: include(['choiceText'], 'With `choiceText`, the choice also in the words of the proposal.'),
    ...toAsOfParameter(
      'The votes as of this time: those cast by then, and of each voter who changed a vote on Snapshot the one that counted then. An earlier vote that was changed before it was read is not stored. Powers and choices are those of the last reading: a choice that was secret then is shown if it was revealed since.',
    ),
    ...questions.parameters,
    ...page('votes', { default: 100, max: 10_000 }),
  },
  record: vote,
  recordWith: { record: detailedVote, members: BROUGHT, shapes: [voteOfSource, voteWithParameters] },
  estimateValues: () => VALUES_PER_LIST,
  datasets: [governance, governors],
  headers: LIST_HEADERS,
  mayHaveNoData: true,
  handle: async (call) => {
    const { db, registry, query, entities, representation, now } = call
    checkPast(query.asOf, now())
    if (query.source === undefined && query.proposal === undefined)
      rejectSourceFilters(questions.toFilters(query.filter), vote)
    const one = query.proposal === undefined ? undefined : await findProposal(db, registry, query.proposal)
    const selected: Selection =
      query.proposal === undefined
        ? { dao: entities[0], proposal: '' }
        : { dao: one?.dao, proposal: one?.proposal ?? '' }
    const isElsewhere = entities[0] !== undefined && entities[0] !== selected.dao
    const dao = isElsewhere ? undefined : selected.dao
    // A proposal has one source, so no source needs to be given.
    const sources = toSources(query.source ?? (one === undefined ? undefined : 'all'))
    const isPast = query.asOf !== undefined
    const readAt = dao === undefined ? null : await requireRead(db, dao, sources)
    const asOf = readAt === null ? null : Math.min(readAt, query.asOf ?? readAt)
    const until = Math.floor((query.asOf ?? END * 1000) / 1000)
    const params = {
      ...toScope(dao === undefined ? [] : [dao], sources),
      proposal: selected.proposal,
      read_at: asOf ?? 0,
      ...(isPast ? { until } : {}),
    }
    const hasText = representation.fields.includes('choiceText')
    if (query.sort !== undefined || query.filter !== undefined) {
      const source = { name: 'governance-votes', sql: toAll(hasText, isPast), params, keyset: NEWEST_VOTES_FIRST }
      return { ...(await answerLongList(call, questions, source)), asOf }
    }
    const { after } = representation
    const before = after === '' ? until : -Number(NEWEST_VOTES_FIRST.read(after)[0])
    const [answer, counts] = await Promise.all([
      answerRecords(call, {
        name: 'governance-votes',
        sql: `${withChoices(hasText)}SELECT ${AS_OF}, page_key, ${toRecordOf(hasText)} AS record FROM (${toVotesPage(after, isPast)}) AS v`,
        params: { ...params, before, rows: COPIES * (query.limit + 1) },
        page: query.limit,
      }),
      db.rows({ name: 'governance-votes-count', sql: toVotesCount(isPast), params, schema: counted }),
    ])
    return { ...answer, ...toListHead({ total: counts[0]?.total ?? 0, next: answer.next }, representation), asOf }
  },
})
