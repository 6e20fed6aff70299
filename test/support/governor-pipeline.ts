import { expect } from 'vitest'
import { z } from 'zod'
import { governanceProposalsRoute } from '../../api/routes/daos/governance/proposals.ts'
import { governanceVotesRoute } from '../../api/routes/daos/governance/votes.ts'
import type { JobReport } from '../../shared/queue/queues.ts'
import governors from '../../workers/jobs/governors.ts'
import type { Chain } from '../upstream/chain.ts'
import { encodeProposal } from '../upstream/governor-logs.ts'
import { FIRST_BLOCK, nowAt } from '../upstream/small-chain.ts'
import { getDao } from './entities.ts'
import type { Vote } from './governance-records.ts'
import { governorOf, toYoungRegistry } from './governor-chain.ts'
import { toNext } from './next-page.ts'
import { createServedPipeline, type ServedPipeline } from './served-pipeline.ts'

/** A proposal on a governor, as returned with its source. */
interface Proposal {
  _id: string
  title: string
  state: string | null
  scores: number[]
  scoresTotal: number
  votes: number
  startsAt: string | null
  endsAt: string | null
  outcome: string | null
  timesEstimated: boolean
}

export const registry = toYoungRegistry()
export const ALPHA = governorOf(registry, 'compound', 'alpha')
export const BRAVO = governorOf(registry, 'compound', 'bravo')
export const ENS = governorOf(registry, 'ens', 'openzeppelin')
/** Counts in fractions. */
export const GITCOIN = governorOf(registry, 'gitcoin', 'openzeppelin')
export const HOP = governorOf(registry, 'hop', 'openzeppelin')
export const TRUEFI = governorOf(registry, 'truefi', 'openzeppelin')

export const idOf = (slug: string) => getDao(registry, slug).id
export const toQuery = (slug: string, source = 'governor') => `?id=${idOf(slug)}&source=${source}&limit=1000`

export const AUTHOR = `0x${'b'.repeat(40)}`
export const voterOf = (n: number) => `0x${n.toString(16).padStart(40, 'a')}`
export const blockOf = (n: number) => BigInt(FIRST_BLOCK + n)

/** The log of a new proposal with a voting period in blocks, both counted from the first block. */
export const proposal = (
  id: bigint,
  [start, end]: readonly [number, number],
  description = `# Proposal ${id}\n\nWhy.`,
) => encodeProposal({ id, proposer: AUTHOR, start: blockOf(start), end: blockOf(end), description })

/** A pipeline that collects governor events, and the API over its data. */
export interface GovernorPipeline extends ServedPipeline {
  collectGovernors(): Promise<JobReport>
  /** The response of a path below `/data/daos/governance`. */
  get<T>(path: string, status?: number): Promise<T>
  proposalsOf(slug: string): Promise<Proposal[]>
  votesOf(slug: string): Promise<Vote[]>
  /** All votes, page by page. */
  allVotesOf(slug: string): Promise<Vote[]>
  /** The reasons of failed reads of governors. */
  notes(): Promise<{ entity: number; reason: string }[]>
  /** All rows without their times of collection. */
  dump(): Promise<unknown>
}

/** Starts on this chain, at the time of its n-th block after the first. */
export const startGovernors = (n: number, ethereum: Chain) =>
  createGovernorPipeline({ now: nowAt(n), registry, chains: { ethereum } })

export async function createGovernorPipeline(
  options: Parameters<typeof createServedPipeline>[0],
): Promise<GovernorPipeline> {
  const pipeline = await createServedPipeline(options)
  return { ...pipeline, ...createReader(pipeline), collectGovernors: () => pipeline.collect(governors) }
}

function createReader({ url, database }: ServedPipeline) {
  const fetchPath = (path: string) => fetch(`${url}/data/daos/governance${path}`)
  const get = async <T>(path: string, status = 200): Promise<T> => {
    const response = await fetchPath(path)
    expect(response.status, path).toBe(status)
    return (await response.json()) as T
  }
  return {
    get,
    proposalsOf: async (slug: string) => {
      const found = await get<Proposal[]>(`/proposals${toQuery(slug)}`)
      governanceProposalsRoute.response.parse(found)
      return found
    },
    votesOf: async (slug: string) => {
      const found = await get<Vote[]>(`/votes${toQuery(slug)}`)
      governanceVotesRoute.response.parse(found)
      return found
    },
    allVotesOf: async (slug: string) => {
      const votes: Vote[] = []
      for (let next: string | undefined = toQuery(slug); next !== undefined; ) {
        const response = await fetchPath(`/votes${next}`)
        votes.push(...((await response.json()) as Vote[]))
        next = toNext(response.headers.get('link'))
      }
      return votes
    },
    notes: () =>
      database.db.rows({
        name: 'notes',
        sql: "SELECT entity, reason FROM coverage_notes FINAL WHERE dataset = 'governors'",
        schema: z.object({ entity: z.number(), reason: z.string() }),
      }),
    dump: () => Promise.all(TABLES.map((table) => dumpTable(database.db, table))),
  }
}

const TABLES = ['dao_votes', 'dao_cast_votes', 'dao_proposals', 'dao_proposal_details', 'governor_events']

function dumpTable(db: ServedPipeline['database']['db'], table: string) {
  const without = table === 'dao_votes' || table === 'dao_proposals' ? '' : 'EXCEPT (collected_at)'
  const sql = `SELECT * ${without} FROM ${table} FINAL ORDER BY ALL`
  return db.rows({ name: 'dump', sql, schema: z.record(z.string(), z.unknown()) })
}
