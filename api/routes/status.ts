import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { governance } from '../../shared/datasets/governance.ts'
import { indexPoints } from '../../shared/datasets/index-points.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { CADENCES, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { type Completeness, completenessOf, openLedgers } from '../../shared/ledger/ledger.ts'
import { timeValue } from '../../shared/record-values.ts'
import {
  type FailingProviders,
  FRESHNESS_STATES,
  readFailing,
  readQuietSpaces,
  readUnpricedMembers,
  toFreshnessState,
  toLagSeconds,
  toQuietNote,
  toUnpricedNote,
} from '../../shared/store/store.ts'
import type { Count } from '../coverage/counts.ts'
import { defineRoute } from '../route/define-route.ts'

const failing = z
  .strictObject({
    provider: z.string().describe('Name of the provider.'),
    since: timeValue.meta({ description: 'The slot from which on it has failed.' }),
    reason: z.string().describe('The error response, or the reason why there was none.'),
  })
  .meta({ id: 'FailingProvider', description: 'A provider that gave no answer in the newest slot.' })

const freshness = z
  .strictObject({
    dataset: z.string().describe('Name of the dataset.'),
    cadence: z.enum(CADENCES).describe('How often it is collected.'),
    lastUpdated: timeValue.nullable().describe('Time of its newest value; null if there is none.'),
    expectedEvery: z.int().describe('The cadence in seconds.'),
    lagSeconds: z
      .number()
      .nullable()
      .meta({ description: 'Age of the newest value in seconds; null if there is none.' }),
    state: z.enum(FRESHNESS_STATES).meta({
      description:
        '`fresh`, or `late` when the newest datum, or that of any entity that some provider serves, is over 1.5 cadences old, or `stale` when the newest datum is over 2 cadences old.',
    }),
    complete: z.number().min(0).max(1).meta({
      description:
        'Stored share of the expected data up to now, over all entities, from 0 to 1. Data that no provider has is not expected.',
    }),
    failing: z.array(failing).meta({ description: 'The providers that gave no answer in the newest slot.' }),
    rows: z.int().describe('Stored rows.'),
    entities: z.int().describe('Tokens or DAOs that have rows; 1 where rows are about all together.'),
    earliest: timeValue.nullable().describe('Time of its oldest value; null if there is none.'),
    note: z.string().optional().meta({
      description:
        'Notes: the origin of the newest rows, if they have one; failing providers since when; Snapshot spaces without new proposals for 60 days; index members without a price that block the value of the index; whether collection is switched off. Absent if there are no notes.',
    }),
  })
  .meta({ id: 'DatasetStatus', description: 'How fresh and how complete a dataset is.' })

type Freshness = z.infer<typeof freshness>

const status = z
  .strictObject({
    mode: z
      .enum(['demo', 'live'])
      .describe('Whether the data is simulated (`demo`) or of the real providers (`live`).'),
    upstream: z.string().meta({ description: 'Where the data comes from.' }),
    datasets: z.array(freshness).describe('Every dataset.'),
  })
  .meta({ id: 'Status', description: 'The state of the data.' })

const UPSTREAM = {
  demo: 'Demo mode: the data is simulated and comes from the local stand-in for the providers. Do not use it for decisions.',
  live: 'The data providers themselves.',
} as const

/** Completeness is expensive to compute, so an answer is reused for this time. */
const HOLDS_MS = 5000

const NOT_COLLECTED = 'not collected: it is turned off'

const toNote = (failing: FailingProviders) =>
  Object.entries(failing)
    .map(([provider, { since }]) => `${provider}: failing since ${since}`)
    .join('; ')

interface Read {
  /** Undefined if no rows are stored. */
  readonly counted: Count | undefined
  readonly completeness: Completeness
  readonly failing: FailingProviders | undefined
  /** Additional notes for people. */
  readonly note: string
}

const toTimeOrNull = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())

function toFreshness(
  { name, cadence }: DatasetFacts,
  { counted, completeness, failing = {}, note: ownNote }: Read,
  now: number,
) {
  const note = [counted?.note ?? '', toNote(failing), ownNote].filter((text) => text !== '').join('; ')
  const lagSeconds = toLagSeconds(counted?.newest ?? null, now)
  return {
    dataset: name,
    cadence,
    lastUpdated: toTimeOrNull(counted?.newest),
    expectedEvery: INTERVAL_SECONDS[cadence],
    lagSeconds,
    state: toFreshnessState(lagSeconds, cadence, completeness.overdue.length),
    complete: completeness.complete,
    failing: Object.entries(failing).map(([provider, { since, reason }]) => ({ provider, since, reason })),
    rows: counted?.rows ?? 0,
    entities: counted?.entities ?? 0,
    earliest: toTimeOrNull(counted?.earliest),
    ...(note === '' ? {} : { note }),
  } satisfies Freshness
}

export const statusRoute = defineRoute({
  operation: 'getStatus',
  path: '/data/status',
  tag: 'Service',
  summary: 'How fresh and how complete each dataset is',
  description:
    'For each dataset: its cadence, the age of its newest value, the stored share of the expected data, and failing providers. Computed at most every five seconds; only months with new change events are counted again.',
  query: {},
  response: status,
  // No change event drops the answer: during a back-fill every event would require a new one.
  datasets: [],
  isUrgent: true,
  handle: async ({ db, config, registry, counts: stored, readiness, now }) => {
    // Corrects a clock that is ahead of the database's, which would make all data look stale.
    await readiness()
    const at = now()
    const [counts, completeness, failing, quiet, unpriced] = await Promise.all([
      stored.read(),
      openLedgers(db, datasets).completeness(registry, at),
      readFailing(db),
      readQuietSpaces(db, registry.daos, at),
      readUnpricedMembers(db, registry.index, at),
    ])
    const notes: Readonly<Record<string, string>> = {
      [governance.name]: toQuietNote(quiet),
      [indexPoints.name]: toUnpricedNote(unpriced),
    }
    const list = datasets.map((dataset) => {
      const { name } = dataset
      const read = {
        counted: counts.get(name),
        completeness: completenessOf(completeness, dataset),
        failing: failing.get(name),
        note: config.datasetsOff.includes(name) ? NOT_COLLECTED : (notes[name] ?? ''),
      }
      return toFreshness(dataset, read, at)
    })
    const newest = list.flatMap(({ lastUpdated }) => (lastUpdated === null ? [] : [Date.parse(lastUpdated)]))
    const body = { mode: config.mode, upstream: UPSTREAM[config.mode], datasets: list }
    return {
      body: Buffer.from(JSON.stringify(body)),
      asOf: newest.length === 0 ? null : Math.max(...newest),
      expiresAt: at + HOLDS_MS,
    }
  },
})
