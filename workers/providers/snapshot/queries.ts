import { z } from 'zod'
import type { GovernanceRow } from '../../../shared/datasets/governance.ts'
import type { Candidate } from '../../job/define-job.ts'
import { asSent, toIso } from '../answer.ts'
import type { Space } from '../contracts/governance.ts'
import { toLowerCase } from '../holder-values.ts'

/** The hub answers at most so many elements a page and skips at most so many (providers document, section 9). */
export const PAGE_SIZE = 1000
export const MOST_SKIPPED = 5000

const seconds = z.number().int().nonnegative()
const listed = z.object({ id: z.string(), created: seconds })
const proposal = listed.extend({
  author: asSent,
  title: z.string().nullish(),
  type: z.string().nullish(),
  choices: z.array(z.string().nullable()).nullish(),
  scores: z.array(z.number().nullable()).nullish(),
  scores_total: asSent,
  votes: asSent,
  quorum: asSent,
  start: seconds.nullish(),
  end: seconds.nullish(),
  link: z.string().nullish(),
})
const vote = listed.extend({
  voter: asSent,
  choice: asSent,
  vp: asSent,
  proposal: z.object({ id: z.string() }).nullish(),
})

export type Proposal = z.infer<typeof proposal>
export type Vote = z.infer<typeof vote>

export const SPACE = 'query Space($space: String!) { space(id: $space) { id } }'
export const spaceData = z.object({ space: z.object({ id: z.string() }).nullable() })

const PAGE = `first: ${PAGE_SIZE}, skip: $skip, where: {space: $space, created_gte: $from}, orderBy: "created", orderDirection: asc`

export const PROPOSALS = `query Proposals($space: String!, $from: Int!, $skip: Int!) { proposals(${PAGE}) { id author created title type choices scores scores_total votes quorum start end link } }`
export const proposalsData = z.object({ proposals: z.array(proposal) })

export const VOTES = `query Votes($space: String!, $from: Int!, $skip: Int!) { votes(${PAGE}) { id voter created choice vp proposal { id } } }`
export const votesData = z.object({ votes: z.array(vote) })

/** The hub's times are whole Unix seconds. */
const toTime = (at: number) => toIso(at * 1000)
const toTimeOrNull = (at: number | null | undefined) => (at === null || at === undefined ? null : toTime(at))

/** All of a list, or nothing of one in which something is missing: the members of choices and scores belong together. */
const toWhole = <T>(list: readonly (T | null)[] | null | undefined): T[] => {
  const known = (list ?? []).filter((one) => one !== null)
  return known.length === list?.length ? known : []
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
    choices: toWhole(one.choices),
    scores: toWhole(one.scores),
    scores_total: one.scores_total ?? null,
    votes: one.votes ?? null,
    quorum: one.quorum ?? null,
    starts_at: toTimeOrNull(one.start),
    ends_at: toTimeOrNull(one.end),
    url: one.link ?? null,
  }))
}

/** A vote whose proposal was taken back is no vote on anything. */
export function toVoteRows(votes: readonly Vote[], place: Space): Candidate<GovernanceRow>[] {
  return votes.flatMap(({ voter, proposal, created, choice, vp }) => {
    if (!proposal) return []
    const about = { kind: 'vote', proposal: proposal.id, address: toLowerCase(voter), at: toTime(created) }
    // A power that is a double here is one at the hub: its digits are the same.
    return [{ ...place, ...about, choice: JSON.stringify(choice ?? null), voting_power: vp ?? null }]
  })
}
