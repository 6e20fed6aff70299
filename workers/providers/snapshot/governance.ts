import type { VotingDao } from '../../../shared/datasets/governance.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Allowance } from '../../job/allowance.ts'
import type { Provider } from '../../job/define-job.ts'
import type { Cursor, Cursors, GovernanceSource, Reading, Space } from '../contracts/governance.ts'
import { ask, openSnapshot } from './client.ts'
import { readByCreation } from './pages-by-creation.ts'
import {
  MOST_SKIPPED,
  PAGE_SIZE,
  PROPOSALS,
  proposalsData,
  SPACE,
  spaceData,
  toProposalRows,
  toVoteRows,
  VOTES,
  votesData,
} from './queries.ts'

/** A small part of a job's time: what a job reads when its time is over is lost. */
const MINUTES_PER_RUN = 2
/** 200,000 votes: what a run holds in memory at most. */
const MOST_PAGES = 200
const CONCURRENCY = 4
/** For a page of each list, whatever the limit: a space whose second list is never reached would not get on. */
const FEWEST_PAGES = 2 * CONCURRENCY

/** Votes and proposals from the Snapshot hub (providers document, section 9). */
export const snapshot: Provider<GovernanceSource, VotingDao> = {
  name: 'snapshot',
  covers: () => true,
  connect(context) {
    const { requestsPerMinute } = context.config.providers.snapshot
    const client = openSnapshot(context)
    return {
      pagesPerRun: Math.max(FEWEST_PAGES, Math.min(MOST_PAGES, MINUTES_PER_RUN * requestsPerMinute)),
      concurrency: CONCURRENCY,
      fetchGovernance: (space, cursors, allowance, signal) =>
        fetchGovernance(client, space, cursors, allowance, signal),
    }
  },
}

async function fetchGovernance(
  client: HttpClient,
  place: Space,
  cursors: Cursors,
  allowance: Pick<Allowance, 'take'>,
  signal: AbortSignal,
): Promise<Reading | undefined> {
  const { space } = place
  const paging = { pageSize: PAGE_SIZE, mostSkipped: MOST_SKIPPED, allowance }
  const proposals = await readByCreation({
    ...paging,
    start: cursors.proposals,
    fetchPage: async (cursor: Cursor) => {
      const variables = { space, ...cursor }
      return (await ask(client, { query: PROPOSALS, variables }, proposalsData, signal)).proposals
    },
  })
  // Lists of a space that does not exist are empty, too.
  if (isFirst(cursors) && proposals.isComplete && proposals.items.length === 0) {
    const found = await ask(client, { query: SPACE, variables: { space } }, spaceData, signal)
    if (found.space === null) return undefined
  }
  const votes = await readByCreation({
    ...paging,
    start: cursors.votes,
    fetchPage: async (cursor: Cursor) => {
      const variables = { space, ...cursor }
      return (await ask(client, { query: VOTES, variables }, votesData, signal)).votes
    },
  })
  return {
    rows: [...toProposalRows(proposals.items, place), ...toVoteRows(votes.items, place)],
    cursors: { proposals: proposals.cursor, votes: votes.cursor },
    isComplete: proposals.isComplete && votes.isComplete,
  }
}

const isFirst = ({ proposals }: Cursors) => proposals.from === 0 && proposals.skip === 0
