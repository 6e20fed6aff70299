import { z } from 'zod'
import type { GovernanceRow } from '../../../shared/datasets/governance.ts'
import type { Candidate } from '../../job/define-job.ts'
import { asSent, toIso } from '../answer.ts'
import type { Space } from '../contracts/governance.ts'
import { toLowerCase } from '../holder-values.ts'

/** The hub answers at most so many elements a page and skips at most so many (providers document, section 9). */
export const PAGE_SIZE = 1000
export const MOST_SKIPPED = 5000

const created = z.number().int().nonnegative()
const listed = z.object({ id: z.string(), created })
const proposal = listed.extend({ author: asSent })
const vote = listed.extend({ voter: asSent, proposal: z.object({ id: z.string() }).nullish() })

export type Proposal = z.infer<typeof proposal>
export type Vote = z.infer<typeof vote>

export const SPACE = 'query Space($space: String!) { space(id: $space) { id } }'
export const spaceData = z.object({ space: z.object({ id: z.string() }).nullable() })

const PAGE = `first: ${PAGE_SIZE}, skip: $skip, where: {space: $space, created_gte: $from}, orderBy: "created", orderDirection: asc`

export const PROPOSALS = `query Proposals($space: String!, $from: Int!, $skip: Int!) { proposals(${PAGE}) { id author created } }`
export const proposalsData = z.object({ proposals: z.array(proposal) })

export const VOTES = `query Votes($space: String!, $from: Int!, $skip: Int!) { votes(${PAGE}) { id voter created proposal { id } } }`
export const votesData = z.object({ votes: z.array(vote) })

/** The hub's times are whole Unix seconds. */
const toTime = (seconds: number) => toIso(seconds * 1000)

export function toProposalRows(proposals: readonly Proposal[], place: Space): Candidate<GovernanceRow>[] {
  return proposals.map(({ id, author, created }) => ({
    ...place,
    kind: 'proposal',
    proposal: id,
    address: toLowerCase(author),
    at: toTime(created),
  }))
}

/** A vote whose proposal was taken back is no vote on anything. */
export function toVoteRows(votes: readonly Vote[], place: Space): Candidate<GovernanceRow>[] {
  return votes.flatMap(({ voter, proposal, created }) => {
    if (!proposal) return []
    const at = toTime(created)
    const address = toLowerCase(voter)
    return [{ ...place, kind: 'vote', proposal: proposal.id, address, at }]
  })
}
