import { z } from 'zod'
import type { DatasetFacts } from '../../../shared/datasets/define-dataset.ts'
import { datasets } from '../../../shared/datasets/list.ts'
import { DAY_MS, END_OF_TIME, INTERVAL_SECONDS, toBucketStart } from '../../../shared/intervals.ts'
import { idValue, timeValue } from '../../../shared/record-values.ts'
import { COVERAGE_STATES, type CoverageQuery, MOST_RANGES, readRanges } from '../../coverage/ranges.ts'
import { include, oneId, time } from '../../parameters/kinds.ts'
import { Problem } from '../../problem/problem.ts'
import { countDays } from '../../route/cost.ts'
import { defineRoute } from '../../route/define-route.ts'
import { tokenKind } from '../../route/entities.ts'
import { checkRange } from '../../series/series.ts'

const NAMES = datasets.map(({ name }) => name) as [string, ...string[]]

const EARLIEST = '1970-01-01'
const DEFAULT_DAYS = 30

/** Coverage may change without a change event of the dataset: a note may be stored without a row. */
const HOLDS_MS = 5000

const range = z
  .strictObject({
    entity: idValue.meta({ description: 'The token, DAO or index; one special id means all of them.' }),
    from: timeValue.describe('Start of the range, inclusive.'),
    to: timeValue.meta({ description: 'End of the range, exclusive: the start of the next one.' }),
    state: z.enum(COVERAGE_STATES).meta({
      description:
        '`covered`: stored, or known to be empty. `coarser`: stored at a coarser step than the cadence. `pending`: will be collected. `failed`: the collection failed and is retried. `unserved`: no provider has it.',
    }),
    provider: z
      .string()
      .nullable()
      .meta({ description: 'The provider of the data, or the last provider that failed; null if none was used.' }),
    interval: z
      .string()
      .nullable()
      .meta({ description: 'Step of the stored data, such as 5m, 12h or 1d; null if nothing is stored.' }),
    reason: z.string().nullable().meta({ description: 'Reason for the state; null if data is stored without a note.' }),
    name: z.string().optional().describe('Name of the entity, also of an ended one. With `include=name`.'),
    live: z.boolean().optional().describe('Whether the entity is in the lists of live ones. With `include=name`.'),
  })
  .meta({ id: 'CoverageRange', description: 'A range of time in which the data of an entity has one state.' })

export const coverageRoute = defineRoute({
  operation: 'getCoverage',
  path: '/data/status/coverage',
  tag: 'Service',
  summary: 'Stored ranges of each entity, and the reasons for missing ones',
  description: `For each entity ranges without gaps or overlaps from \`start\` to \`end\`, entity after entity; without an \`id\` all entities of the dataset. At most ${MOST_RANGES} ranges.`,
  query: {
    dataset: z
      .enum(NAMES, `must be one of ${NAMES.join(', ')}`)
      .meta({ description: 'The dataset, by its name in `/data/status`.', examples: ['prices'] }),
    id: oneId('token, DAO or index that the dataset is about', tokenKind.example.id).optional(),
    start: time(`First moment, inclusive; ${DEFAULT_DAYS} days before the end when it is not given.`, '2024-01-01', {
      earliest: EARLIEST,
    }).optional(),
    end: time(
      "Last moment, exclusive; default: the end of the current bucket of the dataset's cadence.",
      '2024-01-08T00:00:00Z',
    ).optional(),
    include: include(['name'], 'With `name`, the name of each entity, and whether it is live.'),
  },
  response: z.array(range),
  datasets: [],
  // Each day of each entity is looked up.
  estimateValues: ({ registry, query, now }) => {
    const { dataset, id, from, to } = toCoverageQuery(query, now())
    return countDays({ start: from, end: to }, now()) * (id === undefined ? dataset.entities(registry).length : 1)
  },
  handle: async ({ db, registry, query, now }) => {
    const ranges = await readRanges(db, registry, toCoverageQuery(query, now()), now())
    const body = Buffer.from(JSON.stringify(ranges satisfies z.infer<typeof range>[]))
    return { body, asOf: null, expiresAt: now() + HOLDS_MS }
  },
})

/** @throws Problem `invalid_parameter` for an invalid range. */
function toCoverageQuery(
  query: {
    dataset: string
    id?: string | undefined
    start?: number | undefined
    end?: number | undefined
    include?: string[] | undefined
  },
  now: number,
): CoverageQuery {
  // The parameter accepts only these names.
  const dataset = datasets.find(({ name }) => name === query.dataset) as DatasetFacts
  // Requests within a bucket have the same range, so that an unchanged answer keeps its entity tag.
  const bucketEnd = toBucketStart(now, dataset.cadence) + INTERVAL_SECONDS[dataset.cadence] * 1000
  const { id, end: to = bucketEnd, start: from = Math.max(0, to - DEFAULT_DAYS * DAY_MS) } = query
  checkRange({ start: from, end: to })
  if (to > END_OF_TIME)
    throw new Problem(
      'invalid_parameter',
      `end must not be after ${new Date(END_OF_TIME).toISOString().slice(0, 10)}.`,
      { param: 'end' },
    )
  return { dataset, id, from, to, isNamed: query.include?.includes('name') === true }
}
