import type { GovernanceRow, VotingDao } from '../../../shared/datasets/governance.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Allowance } from '../../job/allowance.ts'
import type { Candidate, Provider } from '../../job/define-job.ts'
import { toIso } from '../answer.ts'
import type { Cursor, GovernanceSource, Progress, Reading, Space } from '../contracts/governance.ts'
import { ask, openSnapshot } from './client.ts'
import { readByCreation } from './pages-by-creation.ts'
import { readProposals } from './proposals.ts'
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
  cost: 'free',
  covers: () => true,
  connect(context) {
    const { requestsPerMinute } = context.config.providers.snapshot
    const client = openSnapshot(context)
    return {
      pagesPerRun: Math.max(FEWEST_PAGES, Math.min(MOST_PAGES, MINUTES_PER_RUN * requestsPerMinute)),
      concurrency: CONCURRENCY,
      fetchGovernance: (asked, progress, allowance, signal) =>
        fetchGovernance(client, asked, progress, allowance, signal),
    }
  },
}

type Asked = Space & { readonly slot: number }

async function fetchGovernance(
  client: HttpClient,
  { slot, ...place }: Asked,
  before: Progress,
  allowance: Pick<Allowance, 'take'>,
  signal: AbortSignal,
): Promise<Reading | undefined> {
  const { space } = place
  const proposals = await readProposals({
    ...{ progress: before, slot, allowance },
    fetchPage: async (cursor: Cursor) => {
      const variables = { space, ...cursor }
      return (await ask(client, { query: PROPOSALS, variables }, proposalsData, signal)).proposals
    },
  })
  // Lists of a space that does not exist are empty, too.
  let isThere = true
  if (proposals.sweptAt !== undefined && proposals.items.length === 0) {
    const found = await ask(client, { query: SPACE, variables: { space } }, spaceData, signal)
    isThere = found.space !== null
    if (!isThere && before.read === 0) return undefined
  }
  const votes = await readByCreation({
    ...{ pageSize: PAGE_SIZE, mostSkipped: MOST_SKIPPED, allowance, start: proposals.progress.votes },
    fetchPage: async (cursor: Cursor) => {
      const variables = { space, ...cursor }
      return (await ask(client, { query: VOTES, variables }, votesData, signal)).votes
    },
  })
  const sweeps = proposals.sweptAt === undefined || !isThere ? [] : [toSweepRow(place, proposals.sweptAt)]
  return {
    rows: [...toProposalRows(proposals.items, place), ...toVoteRows(votes.items, place), ...sweeps],
    progress: { ...proposals.progress, votes: votes.cursor },
    isComplete: proposals.isComplete && votes.isComplete,
  }
}

const toSweepRow = (place: Space, sweptAt: number): Candidate<GovernanceRow> => ({
  ...place,
  ...{ kind: 'sweep', proposal: '', address: '', at: toIso(sweptAt) },
})
