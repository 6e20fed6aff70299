import { z } from 'zod'
import { xDeclaration } from '../../../shared/config/providers/x.ts'
import type { TwitterCountsRow } from '../../../shared/datasets/twitter.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Candidate, Provider } from '../../job/define-job.ts'
import { asSent, checkAnswer, toIso, toNumber } from '../answer.ts'
import { openX, toHandle } from './client.ts'

/** A DAO without counts, and the reason. */
export interface Missing {
  readonly dao: Dao
  readonly reason: string
  /** Whether the provider named the account in its errors; false if the account is just absent. */
  readonly isExplicit: boolean
}

export interface TwitterSource {
  /** Number of accounts per request; each account found is billed. */
  readonly accountsPerRequest: number
  /**
   * Fetches the current counts, stamped with `slot` (Unix milliseconds), because the provider does not report its
   * counting time.
   */
  fetchCounts(daos: readonly Dao[], slot: number, signal: AbortSignal): Promise<Counts>
}

interface Counts {
  readonly rows: Candidate<TwitterCountsRow>[]
  readonly missing: Missing[]
  /** Account ids by DAO key. An id remains the same if the account changes its name. */
  readonly ids: ReadonlyMap<number, string>
}

const PATH = '/2/users/by'
/** The API's limit of names per request. */
const NAMES = 100

/** X's users by name (docs/providers.md, section 13): one request for a hundred DAOs. */
export const xCounts: Provider<TwitterSource, Dao> = {
  name: 'x',
  cost: xDeclaration.cost,
  covers: ({ twitter }) => toHandle(twitter) !== undefined,
  connect(context) {
    const client = openX(context)
    return {
      accountsPerRequest: NAMES,
      async fetchCounts(daos, slot, signal) {
        const usernames = [...new Set(daos.map(({ twitter }) => toHandle(twitter)))].join(',')
        const answer = await client.get(PATH, { usernames, 'user.fields': 'public_metrics' }, signal)
        return toCounts(answer, daos, slot)
      },
    }
  },
}

const user = z.object({
  id: z.string().optional(),
  username: z.string(),
  public_metrics: z.record(z.string(), asSent).optional(),
})
const problem = z.object({ value: z.string().optional(), title: z.string().optional() })

/** A partial success has both lists. If no user is found, there is no `data`. An unreadable element is null. */
const usersAnswer = z
  .object({
    data: z.array(user.nullable().catch(null)).optional(),
    errors: z.array(problem.nullable().catch(null)).optional(),
  })
  .refine(({ data, errors }) => data !== undefined || errors !== undefined, 'neither data nor errors')

/** Returns a row for each user in the response. Names are compared without case. */
export function toCounts(answer: unknown, daos: readonly Dao[], slot: number): Counts {
  const { data = [], errors = [] } = checkAnswer(usersAnswer, answer, { provider: 'x', path: PATH })
  // An unreadable element affects only its account, which counts as absent.
  const users = new Map(data.filter((one) => one !== null).map((one) => [one.username.toLowerCase(), one]))
  const reasons = new Map(
    errors.filter((one) => one !== null).map(({ value = '', title }) => [value.toLowerCase(), title]),
  )
  const rows: Candidate<TwitterCountsRow>[] = []
  const missing: Missing[] = []
  const ids = new Map<number, string>()
  for (const dao of daos) {
    const { key, twitter } = dao
    const handle = toHandle(twitter)?.toLowerCase() ?? ''
    const found = users.get(handle)
    const metrics = found === undefined ? undefined : (found.public_metrics ?? {})
    if (found?.id !== undefined) ids.set(key, found.id)
    const counts = {
      followers: toNumber(metrics?.followers_count),
      following: toNumber(metrics?.following_count),
      // The guides use one name, the API's own description the other.
      tweets: toNumber(metrics?.tweet_count ?? metrics?.post_count),
    }
    if (Object.values(counts).some((count) => count !== null)) {
      rows.push({ dao: key, observed_at: toIso(slot), ...counts })
    } else {
      const reason = metrics === undefined ? (reasons.get(handle) ?? 'not in the answer') : 'no counts in the answer'
      missing.push({ dao, reason, isExplicit: reasons.has(handle) })
    }
  }
  return { rows, missing, ids }
}
