import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Entity, Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { toNameSlug } from '../../workers/providers/defillama/client.ts'
import { PartialFailureError, runJob } from '../../workers/run/runner.ts'
import { hasFees } from '../upstream/providers/defillama.ts'
import type { Pipeline } from './pipeline.ts'

/** The payload of a run: a slot, or a range with its step. */
export type Payload =
  | { readonly kind: 'slot'; readonly slot: number }
  | {
      readonly kind: 'range'
      readonly from: number
      readonly to: number
      readonly interval: string
      readonly again?: true
    }

export const NOW = Date.parse('2024-05-06T07:05:09Z')
export const HOUR = Math.floor(NOW / HOUR_MS) * HOUR_MS
export const TODAY = Math.floor(NOW / DAY_MS) * DAY_MS

export const slotAt = (slot: number): Payload => ({ kind: 'slot', slot })
export const rangeOf = (from: number, to: number, interval: string): Payload => ({ kind: 'range', from, to, interval })

export const days = rangeOf(TODAY - 3 * DAY_MS, TODAY - DAY_MS, '1d')

/** The result of a run as the queue sees it: the stored rows, or the entities to retry and the reason. */
export interface Outcome {
  readonly rows: number
  readonly uncovered: number
  readonly code: string | undefined
  /** Registry ids for the next attempt. */
  readonly again: readonly string[]
}

/** Runs a job for some entities with the named providers only; by default with all of its providers. */
export async function runFor(
  pipeline: Pick<Pipeline, 'context'>,
  job: Job,
  payload: Payload,
  { ids, providers }: { ids: readonly string[]; providers?: readonly string[] | undefined },
): Promise<Outcome> {
  const { context } = pipeline
  const collectors = job.connect(context).filter(({ provider }) => providers?.includes(provider) ?? true)
  try {
    const { rows, uncovered } = await runJob(job, collectors, context, { ...payload, entities: ids })
    return { rows, uncovered, code: undefined, again: [] }
  } catch (error) {
    if (!(error instanceof DataError)) throw error
    const retryEntities = error instanceof PartialFailureError ? error.entities : []
    return { rows: 0, uncovered: retryEntities.length, code: error.code, again: retryEntities }
  }
}

const ledgerRow = z.object({
  entity: z.number(),
  state: z.string(),
  provider: z.string(),
  seconds: z.number(),
  reason: z.string(),
  buckets: z.number(),
})

export type LedgerRow = z.infer<typeof ledgerRow>

/** Reads the ledger's rows of entities: buckets by state, provider and step, and the notes that are still valid. */
export function readLedger({ database }: Pipeline, job: Job, entities: readonly Entity[]): Promise<LedgerRow[]> {
  return database.db.rows({
    name: 'ledger',
    sql: `SELECT entity, toString(state) AS state, toString(provider) AS provider, interval_seconds AS seconds, '' AS reason,
  bitmapCardinality(groupBitmapMergeState(buckets)) AS buckets
FROM coverage WHERE dataset = {dataset: String} AND entity IN {keys: Array(UInt64)}
GROUP BY entity, state, provider, seconds
UNION ALL
SELECT entity, toString(state), toString(provider), 0, reason, 0 FROM coverage_notes FINAL
WHERE dataset = {dataset: String} AND entity IN {keys: Array(UInt64)}`,
    params: { dataset: job.dataset.name, keys: entities.map(({ key }) => key) },
    schema: ledgerRow,
  })
}

/** Clears coverage, notes and job state between cases. */
export async function emptyLedger({ database }: Pipeline): Promise<void> {
  for (const table of ['coverage', 'coverage_notes', 'job_state'])
    await database.db.command({ name: 'forget', sql: `TRUNCATE TABLE ${table}` })
}

export function jobOf(dataset: string): Job {
  const job = jobs.find(({ name }) => name === dataset)
  if (job === undefined) throw new Error(`there is no job ${dataset}`)
  return job
}

/** The contracts of a DAO that a dataset reads from nodes. */
const CONTRACTS: Readonly<Record<string, (dao: Dao) => readonly ({ readonly chain: string } | null)[]>> = {
  governors: ({ governors }) => governors,
  delegations: ({ votingToken }) => [votingToken],
}

/** Returns entities that the provider covers and has data for. */
export function toSample(
  pipeline: Pipeline,
  { dataset, provider }: { readonly dataset: string; readonly provider: string },
  count = 2,
): readonly Entity[] {
  const job = jobOf(dataset)
  const collector = job.connect(pipeline.context).find((one) => one.provider === provider)
  // DefiLlama provides only logos among the missing links.
  const lacks = (entity: Entity) =>
    provider !== 'defillama' || (Reflect.get(entity, 'missing') ?? ['image']).includes('image')
  // The stand-in of a node takes half a minute for the hundreds of millions of Arbitrum blocks.
  const isQuick = (entity: Entity) =>
    (CONTRACTS[dataset]?.(entity as Dao) ?? []).every((one) => one?.chain === 'ethereum')
  const isListed = (entity: Entity) => dataset !== 'fees' || hasFees(toNameSlug(entity as Dao) ?? '')
  return job
    .entities(pipeline.registry)
    .filter((entity) => collector?.covers(entity) && lacks(entity) && isQuick(entity) && isListed(entity))
    .slice(0, count)
}

export const statesOf = (fields: readonly LedgerRow[]) => [...new Set(fields.map(({ state }) => state))]
