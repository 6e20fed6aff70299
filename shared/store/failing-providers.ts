import { z } from 'zod'
import type { Database } from './clickhouse.ts'

/** The name under which a dataset's job remembers which of its providers fail. */
export const FAILING_PROVIDERS = 'failing providers'

const remembered = z.record(z.string(), z.object({ since: z.iso.datetime(), reason: z.string() }))

/** The providers that did not answer in a dataset's newest slot: the slot from which on each failed, and why at last. */
export type FailingProviders = z.infer<typeof remembered>

/** What is remembered, as `toFailingText` wrote it; empty before anything was. */
export function readFailingText(text: string | undefined): FailingProviders {
  return text === undefined ? {} : remembered.parse(JSON.parse(text))
}

const told = z.object({ job: z.string(), value: z.string() })

/** The failing providers of every dataset of which that was ever remembered, by its name. */
export async function readFailing(db: Database): Promise<ReadonlyMap<string, FailingProviders>> {
  const rows = await db.rows({
    name: 'failing-providers',
    sql: 'SELECT job, value FROM job_state FINAL WHERE name = {name: String}',
    params: { name: FAILING_PROVIDERS },
    schema: told,
  })
  return new Map(rows.map(({ job, value }) => [job, readFailingText(value)]))
}

export const toFailingText = (failing: FailingProviders): string => JSON.stringify(failing)
