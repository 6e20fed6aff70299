import type { z } from 'zod'
import { snapshotDeclaration } from '../../../shared/config/providers/snapshot.ts'
import type { GovernanceRow, VotingDao } from '../../../shared/datasets/governance.ts'
import type { Database } from '../../../shared/store/store.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Candidate, Provider } from '../../job/define-job.ts'
import type { Allowance } from '../../job/state.ts'
import { toIso } from '../answer.ts'
import type { Cursor, Gap, GovernanceSource, Progress, Reading, Space } from '../contracts/governance.ts'
import { openSnapshot, queryList, runQuery } from './client.ts'
import { readByCreation, type Unreadable } from './pages-by-creation.ts'
import { readProposals, withSecret } from './proposals.ts'
import { LISTS, MOST_SKIPPED, PAGE_SIZE, SPACE, spaceData, toProposalRows, toTextRows, toVoteRows } from './queries.ts'
import { openTexts } from './texts.ts'

/** Unreadable votes are read again once a day, for this long. */
const GAP_MS = 7 * 86_400_000

/** A small share of a job's time: data read after the end of that time is lost. */
const MINUTES_PER_RUN = 2
/** 200,000 votes: the limit of a run's memory. */
const MOST_PAGES = 200
const CONCURRENCY = 4
/**
 * At least one page of each list, whatever the limit: a space whose second list is never reached would make no
 * progress.
 */
const FEWEST_PAGES = 2 * CONCURRENCY

/** Votes and proposals from the Snapshot hub (docs/providers.md, section 9). */
export const snapshot: Provider<GovernanceSource, VotingDao> = {
  name: 'snapshot',
  cost: snapshotDeclaration.cost,
  covers: () => true,
  connect(context) {
    const { requestsPerMinute } = context.config.providers.snapshot
    const client = openSnapshot(context)
    return {
      pagesPerRun: Math.max(FEWEST_PAGES, Math.min(MOST_PAGES, MINUTES_PER_RUN * requestsPerMinute)),
      concurrency: CONCURRENCY,
      fetchGovernance: (requested, progress, allowance, signal) =>
        fetchGovernance({ client, db: context.db }, requested, progress, allowance, signal),
    }
  },
}

type SpaceRequest = Space & { readonly slot: number }

async function fetchGovernance(
  { client, db }: { readonly client: HttpClient; readonly db: Database },
  { slot, ...place }: SpaceRequest,
  before: Progress,
  allowance: Pick<Allowance, 'take'>,
  signal: AbortSignal,
): Promise<Reading | undefined> {
  const { space } = place
  const fetchList = <T>(
    { query, ...list }: { query: string; field: string; element: z.ZodType<T> },
    variables: Cursor | { readonly ids: readonly string[] },
  ) => queryList(client, { query, variables: { space, ...variables } }, list, signal)
  const texts = openTexts({ ...{ db, place, allowance }, fetchTexts: (ids) => fetchList(LISTS.texts, { ids }) })
  const proposals = await readProposals({
    ...{ progress: before, slot, allowance },
    fetchPage: async (cursor) => {
      const page = await fetchList(LISTS.proposals, cursor)
      await texts.readFor(page.elements)
      return page
    },
  })
  // A space that does not exist also has empty lists.
  let isThere = true
  if (proposals.sweptAt !== undefined && proposals.isWhole && proposals.items.length === 0) {
    const found = await runQuery(client, { query: SPACE, variables: { space } }, spaceData, signal)
    isThere = found.space !== null
    if (!isThere && before.read === 0) return undefined
  }
  const isSweep = proposals.sweptAt !== undefined
  const gap = isSweep ? before.gap : null
  const start =
    gap !== null && gap.from < proposals.progress.votes.from ? { from: gap.from, skip: 0 } : proposals.progress.votes
  const votes = await readByCreation({
    ...{ pageSize: PAGE_SIZE, mostSkipped: MOST_SKIPPED, allowance, start, latest: slot / 1000 },
    fetchPage: (cursor) => fetchList(LISTS.votes, cursor),
  })
  const secret = new Set(
    votes.items.flatMap(({ choice, proposal }) => (isSecret(choice) && proposal ? proposal.id : [])),
  )
  const progress = withSecret(proposals.progress, proposals.items, secret, slot)
  const isSwept = proposals.sweptAt !== undefined && proposals.isWhole && isThere
  const sweeps = isSwept ? [toSweepRow(place, proposals.sweptAt)] : []
  return {
    rows: [
      ...toProposalRows(proposals.items, place),
      ...toTextRows(texts.items, place),
      ...toVoteRows(votes.items, place),
      ...sweeps,
    ],
    progress: { ...progress, votes: votes.cursor, gap: toGap(before.gap, votes.unreadable, { isSweep, slot }) },
    isComplete: proposals.isComplete && votes.isComplete,
    unreadable: [...proposals.unreadable, ...texts.unreadable, ...votes.unreadable.reasons],
  }
}

/** Choices are numeric in every voting type: a text is an encrypted choice, until the vote is settled. */
const isSecret = (choice: unknown) => typeof choice === 'string'

function toGap(
  before: Gap | null,
  { from }: Unreadable,
  { isSweep, slot }: { readonly isSweep: boolean; readonly slot: number },
): Gap | null {
  const remaining = isSweep ? null : before
  const times = [remaining?.from, from].filter((time) => time !== undefined)
  const since = before?.since ?? slot
  return times.length === 0 || slot - since > GAP_MS ? null : { from: Math.min(...times), since }
}

const toSweepRow = (place: Space, sweptAt: number): Candidate<GovernanceRow> => ({
  ...place,
  ...{ kind: 'sweep', proposal: '', address: '', at: toIso(sweptAt) },
})
