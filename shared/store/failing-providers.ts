import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { type DataError, isAboutProvider, toReason } from '../errors.ts'
import { parseStored } from '../json.ts'
import type { SlotBatch } from '../queue/queues.ts'
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

/** Each batch of a slot has its own state; batch 0 uses the name of an unsplit slot. */
const toFailingName = (batch = 0): string => (batch === 0 ? FAILING_PROVIDERS : `${FAILING_PROVIDERS} ${batch}`)

/** Reads the stored texts of a dataset's job by batch index. */
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
 * Returns the failing providers of every dataset with stored state, by name, merged over all batches. Unreadable text
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

/** If a provider fails in several batches, the earliest start wins. */
function toEarliest(a: FailingProviders, b: FailingProviders): FailingProviders {
  const added = Object.entries(b).filter(([provider, { since }]) => {
    const before = a[provider]
    return before === undefined || since < before.since
  })
  return { ...a, ...Object.fromEntries(added) }
}

const toFailingText = (failing: FailingProviders): string => JSON.stringify(failing)

/** A failure that affects all entities of a provider. */
export interface ProviderFailure {
  readonly provider: string
  readonly reason: DataError
}

/** Provider results of one slot, or of one batch of a slot. */
export interface ProviderResults {
  readonly slot: number
  readonly batch: SlotBatch | undefined
  /** Whether all entities were requested, not only those left by an earlier attempt or batch. */
  readonly isComplete: boolean
  readonly failures: readonly ProviderFailure[]
  /** The providers that returned data. */
  readonly answered: readonly string[]
}

/**
 * Tracks, for `/data/status`, the providers of a job that failed in a slot, with the start and the reason of the
 * failure. The data does not show such failures while another provider answers.
 * A run for the remaining entities has limited evidence. A provider that lacks those entities does not count as failed,
 * and a provider that was not queried keeps its state. A provider that answers has recovered, and one that refuses all
 * of them has failed. State of batches that no longer exist is cleared.
 * @param texts the stored state, by the index of the batch.
 * @returns the changed values, by their name in the job's state.
 */
export function toFailingTexts(
  texts: ReadonlyMap<number, string>,
  results: ProviderResults,
): ReadonlyMap<string, string> {
  const { index, of } = results.batch ?? { index: 0, of: 1 }
  const text = texts.get(index)
  const stored = text === undefined ? {} : readFailingText(text)
  const before = stored ?? {}
  const failing = results.isComplete ? toFailing(before, results) : toFailingOfRemaining(before, results)
  const changed = new Map<string, string>()
  // An unreadable stored text also differs, and is replaced.
  if (!isDeepStrictEqual(failing, stored)) changed.set(toFailingName(index), toFailingText(failing))
  for (const [batchIndex, text] of texts) {
    if (batchIndex >= of && text !== NONE) changed.set(toFailingName(batchIndex), NONE)
  }
  return changed
}

const NONE = toFailingText({})

function toFailing(before: FailingProviders, { failures, slot }: ProviderResults): FailingProviders {
  const at = new Date(slot).toISOString()
  return Object.fromEntries(
    failures.map(({ provider, reason }) => [
      provider,
      { since: before[provider]?.since ?? at, reason: toReason(reason) },
    ]),
  )
}

function toFailingOfRemaining(before: FailingProviders, results: ProviderResults): FailingProviders {
  const failures = results.failures.filter(({ reason }) => isAboutProvider(reason))
  const still = Object.entries(before).filter(([provider]) => !results.answered.includes(provider))
  return { ...Object.fromEntries(still), ...toFailing(before, { ...results, failures }) }
}
