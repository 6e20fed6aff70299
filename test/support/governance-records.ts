/** A vote as `/data/daos/governance/votes` tells it; times are ISO 8601. */
export interface Vote {
  _id: string
  proposal: string
  voter: string
  choice: unknown
  votingPower: number
  createdAt: string
}

/** A voter as `/data/daos/governance/voters` tells it. */
export interface Voter {
  voter: string
  votes: number
  firstVoteAt: string
  lastVoteAt: string
  lastVotingPower: number
}
