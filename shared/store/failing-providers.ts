import { z } from 'zod'
import { parseStored } from '../json.ts'
import type { Database } from './clickhouse.ts'

/** The state name under which a dataset's job stores its failing providers. */
export const FAILING_PROVIDERS = 'failing providers'

const remembered = z.record(z.string(), z.object({ since: z.iso.datetime(), reason: z.string() }))

/**
 * The providers that failed in a dataset's newest slot: the slot of the first failure of each, and the newest reason.
 */
export type FailingProviders = z.infer<typeof remembered>

/** Parses the text of `toFailingText`. Returns undefined for unreadable text; the job's next slot replaces it. */
export const readFailingText = (text: string): FailingProviders | undefined => parseStored(remembered, text)

/** Matches only names of `toFailingName`, because another version may store another format under a longer name. */
const NAMES = `^${FAILING_PROVIDERS}( [1-9][0-9]*)?$`

const stateRow = z.object({ job: z.string(), value: z.string() })
const text = z.object({ name: z.string(), value: z.string() })

/** Each chunk of a slot has its own state; chunk 0 uses the name of an unsplit slot. */
export const toFailingName = (piece = 0): string => (piece === 0 ? FAILING_PROVIDERS : `${FAILING_PROVIDERS} ${piece}`)

/** Reads the stored texts of a dataset's job by chunk index. */
export async function readFailingTexts(db: Database, job: string): Promise<ReadonlyMap<number, string>> {
  const rows = await db.rows({
    name: 'failing-texts',
    sql: 'SELECT name, value FROM job_state FINAL WHERE job = {job: String} AND match(name, {names: String})',
    params: { job, names: NAMES },
    schema: text,
  })
  return new Map(rows.map(({ name, value }) => [Number(name.slice(FAILING_PROVIDERS.length)), value]))
}

/**
 * Returns the failing providers of every dataset with stored state, by name, merged over all chunks. Unreadable text
 * counts as no failing provider.
 */
export async function readFailing(db: Database): Promise<ReadonlyMap<string, FailingProviders>> {
  const rows = await db.rows({
    name: 'failing-providers',
    sql: 'SELECT job, value FROM job_state FINAL WHERE match(name, {names: String}) ORDER BY job, name',
    params: { names: NAMES },
    schema: stateRow,
  })
  const found = new Map<string, FailingProviders>()
  for (const { job, value } of rows) found.set(job, toEarliest(found.get(job) ?? {}, readFailingText(value) ?? {}))
  return found
}

/** If a provider fails in several chunks, the earliest start wins. */
function toEarliest(one: FailingProviders, other: FailingProviders): FailingProviders {
  const added = Object.entries(other).filter(([provider, { since }]) => {
    const before = one[provider]
    return before === undefined || since < before.since
  })
  return { ...one, ...Object.fromEntries(added) }
}

export const toFailingText = (failing: FailingProviders): string => JSON.stringify(failing)
