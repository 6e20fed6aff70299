/** A vote as returned by `/data/daos/governance/votes`; times are ISO 8601. */
export interface Vote {
  _id: string
  proposal: string
  voter: string
  choice: unknown
  votingPower: number
  createdAt: string
}

/** A voter as returned by `/data/daos/governance/voters`. */
export interface Voter {
  voter: string
  votes: number
  firstVoteAt: string
  lastVoteAt: string
  lastVotingPower: number
}
