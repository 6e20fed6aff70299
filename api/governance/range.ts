import { createHash } from 'node:crypto'
import { z } from 'zod'
import { governance } from '../../shared/datasets/governance.ts'
import { READINGS, type Scope, SOURCES, toScope } from '../../shared/datasets/governance-scope.ts'
import { governors } from '../../shared/datasets/governors.ts'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import type { CacheReader, Sized } from '../cache/cache.ts'
import { oneOf, time } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'
import { toNoData, toSources } from './counted.ts'
import { findDelegationsRead } from './delegates.ts'
import {
  type ListedProposal,
  MOST_PROPOSALS,
  readProposals,
  type Start,
  toProposalParams,
  toStarts,
} from './participation.ts'

const DEFAULT_DAYS = 90

/** The parameters of a range of proposals. */
export const rangeParameters = {
  start: time(
    `Only proposals whose vote ended at or after this time; default: ${DEFAULT_DAYS} days before \`end\`.`,
    '2024-01-01',
  ).optional(),
  end: time(
    'Only proposals whose vote ended before this time; default: the start of this hour.',
    '2024-04-01',
  ).optional(),
  source: oneOf(
    [...SOURCES, 'all'],
    'Only proposals on `snapshot`, or on a `governor`, which is a contract on a chain; default: `all`.',
    'snapshot',
  ).optional(),
}

interface RangeQuery {
  readonly start?: number | undefined
  readonly end?: number | undefined
  readonly source?: 'snapshot' | 'governor' | 'all' | undefined
}

interface RangeCall extends CacheReader {
  readonly db: Database
  readonly found: Dao
  readonly query: RangeQuery
  readonly now: () => number
}

/** A range of a DAO's proposals, and how far they were read. Times are Unix milliseconds. */
export interface ProposalRange {
  readonly from: number
  readonly to: number
  /** Whether the range ended in the past, so that powers are those of its end. */
  readonly isPast: boolean
  readonly expiresAt: number | undefined
  /** When the last of the sources was read. */
  readonly readAt: number
  /** The votes that the range may lack, by source, with the reason. */
  readonly incomplete: readonly { readonly source: (typeof SOURCES)[number]; readonly reason: string }[]
  readonly proposals: readonly ListedProposal[]
  /** The starts of the votes on-chain. */
  readonly starts: readonly Start[]
  /** Whether the powers of delegates are known. */
  readonly hasPowers: boolean
  /** The parameters of the statements in `participation.ts`. */
  readonly params: Readonly<Record<string, unknown>>
  /** Equal for ranges with equal proposals: part of the key of what is cached about them. */
  readonly digest: string
}

const reading = z.object({ space: z.string(), read_at: z.int() })

/** When each of the spaces and governors was last read completely, by space. */
async function readReadings(db: Database, scope: Scope): Promise<ReadonlyMap<string, number>> {
  const rows = await db.rows({
    name: 'governance-readings',
    sql: `SELECT space, toUnixTimestamp64Milli(max(read_at)) AS read_at FROM ${READINGS}
WHERE has({own_spaces: Array(String)}, space) GROUP BY space`,
    params: { ...scope },
    settings: { max_threads: 1 },
    schema: reading,
  })
  return new Map(rows.map(({ space, read_at }) => [space, read_at]))
}

interface CachedProposals extends Sized {
  readonly readings: ReadonlyMap<string, number>
  readonly proposals: readonly ListedProposal[]
}

type RangeParams = Scope & { readonly from: number; readonly to: number; readonly now: number }

/** The readings and the proposals of a range. A range that is over is cached. */
async function loadProposals(call: RangeCall, params: RangeParams): Promise<CachedProposals> {
  const load = async (db: Database): Promise<CachedProposals> => {
    const [readings, proposals] = await Promise.all([readReadings(db, params), readProposals(db, { ...params })])
    return { size: JSON.stringify(proposals).length, readings, proposals }
  }
  const { from, to, now, own_spaces: spaces } = params
  if (to > now) return load(call.db)
  const key = `governance-range ${spaces.join(' ')} ${from} ${to}`
  return call.cache.get(key, { datasets: [governance.name, governors.name] }, load, call)
}

/**
 * A proposal that ends after the last reading may be missing from the range. Votes last days, so it is known if the reading is
 * not older than this.
 */
const LONGEST_LAG_MS = DAY_MS

/**
 * Resolves the range of a request.
 * @throws Problem `invalid_parameter` if it ends before it starts or has too many proposals, `no_data` if no source was ever read.
 */
export async function toProposalRange(call: RangeCall): Promise<ProposalRange> {
  const { found: dao, query, now } = call
  const hour = Math.floor(now() / HOUR_MS) * HOUR_MS
  const { end: to = hour, start: from = Math.max(0, to - DEFAULT_DAYS * DAY_MS) } = query
  if (to < from) throw new Problem('invalid_parameter', 'end must not be before start.', { param: 'end' })
  const sources = toSources(query.source ?? 'all')
  const scope = toScope([dao], sources)
  const params = {
    ...scope,
    dao: dao.key,
    space: dao.votingToken?.space ?? '',
    from,
    to,
    now: now(),
    at: Math.min(to, now()),
  }
  const [{ readings, proposals }, delegationsReadAt] = await Promise.all([
    loadProposals(call, params),
    findDelegationsRead(call, dao),
  ])
  if (readings.size === 0) throw toNoData(dao, sources)
  if (proposals.length > MOST_PROPOSALS) {
    const detail = `The range has more than ${MOST_PROPOSALS} proposals: choose a later start or an earlier end.`
    throw new Problem('invalid_parameter', detail, { param: 'start' })
  }
  const incomplete = sources.flatMap((source) => {
    const spaces = toScope([dao], [source]).own_spaces
    const times = spaces.flatMap((space) => readings.get(space) ?? [])
    const oldest = Math.min(...times)
    const unread = spaces.length - times.length
    const undated = proposals.filter((one) => one.source === source && one.ends === null).length
    return [
      ...(unread > 0 ? [{ source, reason: `${unread} of ${spaces.length} were not read to their end yet` }] : []),
      ...(times.length > 0 && oldest + LONGEST_LAG_MS < Math.min(to, now())
        ? [{ source, reason: `last read at ${new Date(oldest).toISOString()}` }]
        : []),
      ...(undated > 0 ? [{ source, reason: `the end of ${undated} proposals is unknown` }] : []),
    ]
  })
  const hasPowers = delegationsReadAt !== undefined
  const known = { ...toProposalParams(proposals), has_powers: hasPowers }
  return {
    ...{ from, to, incomplete },
    isPast: to < hour,
    expiresAt: to < hour ? undefined : hour + HOUR_MS,
    readAt: Math.max(...readings.values()),
    ...{ proposals, starts: toStarts(proposals), hasPowers },
    params: { ...params, ...known },
    digest: createHash('sha256').update(JSON.stringify(known)).digest('base64url').slice(0, 16),
  }
}
