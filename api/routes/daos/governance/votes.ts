import { z } from 'zod'
import { governance, isGovernor } from '../../../../shared/datasets/governance.ts'
import { governors } from '../../../../shared/datasets/governors.ts'
import { toId } from '../../../../shared/ids.ts'
import type { Dao } from '../../../../shared/registry/entities.ts'
import { answerRecords, idValue, numberOrNull, timeValue, toIdSql, toObject } from '../../../formats/formats.ts'
import { CAST_VOTES, COPIES, NEWEST_VOTES_FIRST, toVotesPage, VOTES_COUNT } from '../../../governance/cast-votes.ts'
import { choiceValue, toChoice, toChoiceText } from '../../../governance/choice.ts'
import {
  findProposal,
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
import { LIST_HEADERS } from '../../../http/headers.ts'
import { toListHead } from '../../../lists/lists.ts'
import { include, oneId, page } from '../../../parameters/kinds.ts'
import { toQuestions } from '../../../parameters/questions.ts'
import { VALUES_PER_LIST } from '../../../route/cost.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { daoKind } from '../../../route/entities.ts'

const vote = z
  .strictObject({
    _id: idValue.describe(
      'Id of the vote, which does not change when the voter changes the vote. Each part of a vote on a governor has its own id.',
    ),
    proposal: idValue.describe('Id of the proposal.'),
    voter: z.string().describe('Address of the voter, in lower case.'),
    choice: choiceValue
      .nullable()
      .describe(
        "By the proposal's type of voting: the number of one choice, a list of numbers (approval, ranked), or weights by number (weighted, quadratic), from 1 on; a text while the vote is secret; null where it was not collected.",
      ),
    votingPower: numberOrNull.describe(
      'Voting power with the digits of the source; null if the source does not report it.',
    ),
    createdAt: timeValue.describe('When it was cast, or last changed.'),
  })
  .meta({ id: 'GovernanceVote', description: 'A vote on a proposal of a DAO.' })

const voteOfSource = vote
  .extend({
    source: z.enum(SOURCES).describe('Where it was cast: on `snapshot`, or on a `governor`, which is a contract.'),
  })
  .meta({ id: 'GovernanceVoteOfSource', description: 'A vote, and where it was cast. With `source`.' })

const detailedVote = voteOfSource
  .extend({
    votingPowerExact: exactPower
      .nullable()
      .describe(
        'Voting power with all digits, as a decimal text; null on Snapshot, which counts in floating-point numbers. With `exact=true`.',
      ),
  })
  .extend({
    choiceText: z
      .string()
      .nullable()
      .describe(
        'The choice in the words of the proposal: names separated by commas, or each with its weight; null while the choice is secret or unknown. With `include=choiceText`.',
      ),
  })
  .meta({ id: 'GovernanceVoteDetails', description: 'A vote, with all members.' })

/** The parameter for each additional member. */
const BROUGHT = { source: 'source', votingPowerExact: 'exact=true', choiceText: 'include=choiceText' }

const voteWithParameters = detailedVote
  .partial({ source: true, votingPowerExact: true, choiceText: true })
  .meta({ id: 'GovernanceVoteWithParameters', description: 'A vote, with the members that parameters add.' })

const ON_PROPOSAL = ["'vote'", 'dao', 'proposal', 'voter'] as const
/** A voter has one vote on Snapshot, and any number on a governor. */
export const VOTE_ID = `if(${isGovernor('space')}, ${toIdSql(...ON_PROPOSAL, 'toUnixTimestamp(created_at)')}, ${toIdSql(...ON_PROPOSAL)})`
const PROPOSAL_ID = toIdSql("'proposal'", 'dao', 'proposal')

const AS_OF = "fromUnixTimestamp64Milli({read_at: Int64}, 'UTC') AS as_of"

const toRecord = (choiceText: string) =>
  toObject(
    detailedVote,
    `${VOTE_ID}, ${PROPOSAL_ID}, voter, ${toChoice('choice')}, voting_power,
  toDateTime64(created_at, 3, 'UTC'), ${toSource('space')}, ${toDecimalText('power_exact', 'decimals')}, ${choiceText}`,
  )

/** The proposals' choices are read only if choices are requested as text. */
const toRecordOf = (hasText: boolean) => toRecord(hasText ? toChoiceText('choice', CHOICES) : 'NULL')
const CHOICES = `choices_of[concat(space, ' ', proposal)]`
const withChoices = (hasText: boolean) =>
  hasText
    ? `WITH (
  SELECT mapFromArrays(groupArray(concat(space, ' ', proposal)), groupArray(choices)) FROM dao_proposal_details FINAL
  WHERE dao IN {daos: Array(UInt64)} AND ({proposal: String} = '' OR proposal = {proposal: String})
) AS choices_of `
    : ''

const toAll = (
  hasText: boolean,
) => `${withChoices(hasText)}SELECT 0 AS key, concat(proposal, ' ', voter, ' ', toString(toUnixTimestamp(created_at))) AS name, NULL AS market_cap, ${AS_OF}, created_at, proposal, voter, space,
  ${toRecordOf(hasText)} AS record
FROM (${CAST_VOTES})`

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
    const { db, registry, query, entities, representation } = call
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
    const asOf = dao === undefined ? null : await requireRead(db, dao, sources)
    const params = {
      ...toScope(dao === undefined ? [] : [dao], sources),
      proposal: selected.proposal,
      read_at: asOf ?? 0,
    }
    const hasText = representation.fields.includes('choiceText')
    if (query.sort !== undefined || query.filter !== undefined) {
      const source = { name: 'governance-votes', sql: toAll(hasText), params, keyset: NEWEST_VOTES_FIRST }
      return { ...(await answerLongList(call, questions, source)), asOf }
    }
    const { after } = representation
    const before = after === '' ? END : -Number(NEWEST_VOTES_FIRST.read(after)[0])
    const [answer, counts] = await Promise.all([
      answerRecords(call, {
        name: 'governance-votes',
        sql: `${withChoices(hasText)}SELECT ${AS_OF}, page_key, ${toRecordOf(hasText)} AS record FROM (${toVotesPage(after)})`,
        params: { ...params, before, rows: COPIES * (query.limit + 1) },
        page: query.limit,
      }),
      db.rows({ name: 'governance-votes-count', sql: VOTES_COUNT, params, schema: counted }),
    ])
    return { ...answer, ...toListHead({ total: counts[0]?.total ?? 0, next: answer.next }, representation), asOf }
  },
})
