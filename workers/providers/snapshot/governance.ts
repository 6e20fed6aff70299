import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import type { Provider } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'
import type { Allowance, Cursor, Cursors, GovernanceSource, Reading, VotingDao } from '../contracts/governance.ts'
import type { HttpClient } from '../http/client.ts'
import type { ErrorReading } from '../http/request.ts'
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

const GRAPHQL = '/graphql'
/** A run has ten minutes, its retries included. */
const MINUTES_PER_RUN = 4
/** 200,000 votes: what a run holds in memory at most. */
const MOST_PAGES = 200
const CONCURRENCY = 4

/** The Snapshot hub (providers document, section 9). It needs no key; one raises its limit. */
export const snapshot: Provider<GovernanceSource, VotingDao> = {
  name: 'snapshot',
  covers: () => true,
  connect({ config, http }) {
    const { apiKey, ...settings } = config.providers.snapshot
    const headers = apiKey === undefined ? {} : { 'x-api-key': apiKey }
    const client = http.open({ provider: 'snapshot', ...settings, headers, readError })
    return {
      pagesPerRun: Math.min(MOST_PAGES, MINUTES_PER_RUN * settings.requestsPerMinute),
      concurrency: CONCURRENCY,
      fetchGovernance: (dao, cursors, allowance, signal) => fetchGovernance(client, dao, cursors, allowance, signal),
    }
  },
}

async function fetchGovernance(
  client: HttpClient,
  dao: VotingDao,
  cursors: Cursors,
  allowance: Allowance,
  signal: AbortSignal,
): Promise<Reading | undefined> {
  const space = dao.snapshotSpace
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
    rows: [...toProposalRows(proposals.items, dao), ...toVoteRows(votes.items, dao)],
    cursors: { proposals: proposals.cursor, votes: votes.cursor },
    isComplete: proposals.isComplete && votes.isComplete,
  }
}

const isFirst = ({ proposals }: Cursors) => proposals.from === 0 && proposals.skip === 0

const answerOf = <T>(data: z.ZodType<T>) => z.object({ data })
const failedAnswer = z.object({ errors: z.array(z.object({ message: z.string() })).min(1) })

/**
 * Asks one question.
 * @throws DataError `provider_unavailable` for errors in a successful answer: the hub's limits are kept to here, so
 * what is left is trouble with its database, which passes.
 */
async function ask<T>(
  client: HttpClient,
  body: { query: string; variables: object },
  data: z.ZodType<T>,
  signal: AbortSignal,
): Promise<T> {
  const answer = await client.json({ path: GRAPHQL, method: 'POST', body, signal })
  const failed = failedAnswer.safeParse(answer)
  if (failed.success) {
    const says = failed.data.errors.map(({ message }) => message).join('; ')
    throw new DataError('provider_unavailable', `snapshot ${GRAPHQL}: ${says}`)
  }
  return checkAnswer(answerOf(data), answer, { provider: 'snapshot', path: GRAPHQL }).data
}

/** Adds the setting to look at; which statuses are worth another try is as everywhere. */
function readError(status: number, body: string): ErrorReading | undefined {
  if (status !== 401 && status !== 403) return undefined
  return { code: 'provider_rejected', says: `${body} (check SNAPSHOT_API_KEY)` }
}
