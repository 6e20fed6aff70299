import { z } from 'zod'
import {
  EARLIEST_SECONDS,
  type GovernanceRow,
  LATEST_SECONDS,
  SCORES_STATES,
} from '../../../shared/datasets/governance.ts'
import type { Candidate } from '../../job/define-job.ts'
import { asSent, toIso, toNumber } from '../answer.ts'
import type { Space } from '../contracts/governance.ts'
import { toLowerCase } from '../holder-values.ts'

/** Limits of the hub: elements per page, and skipped elements (docs/providers.md, section 9). */
export const PAGE_SIZE = 1000
export const MOST_SKIPPED = 5000
/** Texts have up to 40,000 characters, and most are much shorter: 50 are at most 8 MB. The hub's limit is 100 ids. */
export const TEXTS_PER_REQUEST = 50

/** An optional member with an invalid value counts as absent. */
const seconds = z.number().int().min(EARLIEST_SECONDS).max(LATEST_SECONDS)
const time = seconds.nullish().catch(null)
const words = z.string().nullish().catch(null)

const listed = z.object({ id: z.string().min(1), created: seconds })
const proposal = listed.extend({
  author: asSent,
  title: words,
  type: words,
  choices: z.array(z.string().nullable()).nullish().catch(null),
  scores: z.array(z.number().nullable()).nullish().catch(null),
  scores_total: asSent,
  /** `pending` until all votes are counted and secret choices are revealed, then `final` or `invalid`. */
  scores_state: words,
  votes: asSent,
  quorum: asSent,
  start: time,
  end: time,
  /** Time of the last edit. */
  updated: time,
  link: words,
  flagged: z.boolean().nullish().catch(null),
})
/** The text is null if the hub does not have it. */
const proposalText = listed.extend({ updated: time, body: z.string().nullish() })
const vote = listed.extend({
  voter: asSent,
  choice: asSent,
  vp: asSent,
  proposal: z.object({ id: z.string().min(1) }).nullish(),
})

export type Proposal = z.infer<typeof proposal>
export type ProposalText = z.infer<typeof proposalText>
export type Vote = z.infer<typeof vote>

export const SPACE = 'query Space($space: String!) { space(id: $space) { id } }'
export const spaceData = z.object({ space: z.object({ id: z.string() }).nullable() })

const PAGE = `first: ${PAGE_SIZE}, skip: $skip, where: {space: $space, created_gte: $from}, orderBy: "created", orderDirection: asc`

const PROPOSALS = `query Proposals($space: String!, $from: Int!, $skip: Int!) { proposals(${PAGE}) { id author created title type choices scores scores_total scores_state votes quorum start end updated link flagged } }`
const VOTES = `query Votes($space: String!, $from: Int!, $skip: Int!) { votes(${PAGE}) { id voter created choice vp proposal { id } } }`
const TEXTS = `query Texts($space: String!, $ids: [String]!) { proposals(first: ${TEXTS_PER_REQUEST}, where: {space: $space, id_in: $ids}) { id created updated body } }`

/** The lists of a space; an element created after LATEST_SECONDS is unreadable. */
export const LISTS = {
  proposals: { query: PROPOSALS, field: 'proposals', element: proposal },
  votes: { query: VOTES, field: 'votes', element: vote },
  texts: { query: TEXTS, field: 'proposals', element: proposalText },
} as const

/** The hub's times are whole Unix seconds. */
const toTime = (at: number) => toIso(at * 1000)
const toTimeOrNull = (at: number | null | undefined) => (at === null || at === undefined ? null : toTime(at))

/** Returns the list, or an empty list if an element is missing, because choices and scores correspond by position. */
const withoutNulls = <T>(list: readonly (T | null)[] | null | undefined): T[] => {
  const present = (list ?? []).filter((one) => one !== null)
  return present.length === list?.length ? present : []
}

const toNumberOrNull = (value: unknown) => {
  const number = toNumber(value)
  return typeof number === 'number' ? number : null
}

export function toProposalRows(proposals: readonly Proposal[], place: Space): Candidate<GovernanceRow>[] {
  return proposals.map((one) => ({
    ...place,
    kind: 'proposal',
    proposal: one.id,
    address: toLowerCase(one.author),
    at: toTime(one.created),
    title: one.title ?? '',
    voting_type: one.type ?? '',
    choices: withoutNulls(one.choices),
    scores: withoutNulls(one.scores),
    scores_total: toNumberOrNull(one.scores_total),
    scores_state: SCORES_STATES.find((state) => state === one.scores_state) ?? '',
    votes: toNumberOrNull(one.votes),
    quorum: toNumberOrNull(one.quorum),
    starts_at: toTimeOrNull(one.start),
    ends_at: toTimeOrNull(one.end),
    url: one.link ?? null,
    is_flagged: one.flagged ?? false,
  }))
}

/** When the author last changed the text, in Unix seconds. */
export const toEdited = ({ created, updated }: Pick<Proposal, 'created' | 'updated'>): number => updated ?? created

/** Rows of the texts that the hub has. */
export function toTextRows(texts: readonly ProposalText[], place: Space): Candidate<GovernanceRow>[] {
  return texts.flatMap((one) => {
    if (typeof one.body !== 'string') return []
    const about = { kind: 'text', proposal: one.id, address: '', at: toTime(toEdited(one)) }
    return [{ ...place, ...about, body: one.body }]
  })
}

/** Votes on a deleted proposal are dropped. */
export function toVoteRows(votes: readonly Vote[], place: Space): Candidate<GovernanceRow>[] {
  return votes.flatMap(({ voter, proposal, created, choice, vp }) => {
    if (!proposal) return []
    const about = { kind: 'vote', proposal: proposal.id, address: toLowerCase(voter), at: toTime(created) }
    // The hub also stores the power as a double, so no digits are lost.
    return [{ ...place, ...about, choice: JSON.stringify(choice ?? null), voting_power: toNumberOrNull(vp) }]
  })
}
