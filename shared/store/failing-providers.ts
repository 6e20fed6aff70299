import { z } from 'zod'
import { parseStored } from '../json.ts'
import type { Database } from './clickhouse.ts'

/** The name under which a dataset's job remembers which of its providers fail. */
export const FAILING_PROVIDERS = 'failing providers'

const remembered = z.record(z.string(), z.object({ since: z.iso.datetime(), reason: z.string() }))

/** The providers that did not answer in a dataset's newest slot: the slot from which on each failed, and why at last. */
export type FailingProviders = z.infer<typeof remembered>

/** Parses what `toFailingText` wrote. Returns undefined for an unreadable text, which the job's next slot replaces. */
export const readFailingText = (text: string): FailingProviders | undefined => parseStored(remembered, text)

/** Matches the names that `toFailingName` makes and no others: another version may keep another form under a longer name. */
const NAMES = `^${FAILING_PROVIDERS}( [1-9][0-9]*)?$`

const told = z.object({ job: z.string(), value: z.string() })
const text = z.object({ name: z.string(), value: z.string() })

/** Each piece of a slot remembers for itself; the first under the name that an uncut slot has. */
export const toFailingName = (piece = 0): string => (piece === 0 ? FAILING_PROVIDERS : `${FAILING_PROVIDERS} ${piece}`)

/** What a dataset's job remembers, by the index of the piece. */
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
 * Returns the failing providers of every dataset of which that was ever remembered, by its name: those of any piece. An
 * unreadable text counts as none failing.
 */
export async function readFailing(db: Database): Promise<ReadonlyMap<string, FailingProviders>> {
  const rows = await db.rows({
    name: 'failing-providers',
    sql: 'SELECT job, value FROM job_state FINAL WHERE match(name, {names: String}) ORDER BY job, name',
    params: { names: NAMES },
    schema: told,
  })
  const found = new Map<string, FailingProviders>()
  for (const { job, value } of rows) found.set(job, toEarliest(found.get(job) ?? {}, readFailingText(value) ?? {}))
  return found
}

/** Of a provider that fails in several pieces, the one in which it began to. */
function toEarliest(one: FailingProviders, other: FailingProviders): FailingProviders {
  const added = Object.entries(other).filter(([provider, { since }]) => {
    const before = one[provider]
    return before === undefined || since < before.since
  })
  return { ...one, ...Object.fromEntries(added) }
}

export const toFailingText = (failing: FailingProviders): string => JSON.stringify(failing)
