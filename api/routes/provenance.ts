import { z } from 'zod'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { DAY_MS, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { idValue, timeValue } from '../../shared/record-values.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { readRanges } from '../coverage/ranges.ts'
import { oneId, oneName, time } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'
import { readInputs } from '../provenance/inputs.ts'
import { findNextTime, readCorrections, readValue, traceAnswers } from '../provenance/trace.ts'
import { type AppContext, defineRoute } from '../route/define-route.ts'
import { daoKind, findOne, type Named, tokenKind } from '../route/entities.ts'

const NAMES = datasets.map(({ name }) => name) as [string, ...string[]]

/** A job may correct a value at any time, so an answer is reused for this time. */
const HOLDS_MS = 5000

const entity = z
  .strictObject({
    type: z.enum(['token', 'dao', 'index']).describe('Kind of the entity.'),
    id: idValue.describe('Id of the entity.'),
    name: z.string().describe('Name of the entity.'),
  })
  .nullable()
  .describe('The token, DAO or index of the value; null for a value of all together.')

const scalar = z.union([z.number(), z.string(), z.boolean(), z.null()])
const parts = z.array(z.union([scalar, z.record(z.string(), scalar)]))
const columnValue = z.union([scalar, parts])
const values: z.ZodType<Readonly<Record<string, unknown>>> = z.record(z.string(), columnValue)

const answer = z
  .strictObject({
    provider: z.string().describe('Name of the provider.'),
    request: z.string().describe('Method, host, path and query, without keys, tokens and account names.'),
    status: z.int().nullable().describe('Status of the response; null without a response.'),
    receivedAt: timeValue.describe('When the answer was received.'),
    sha256: z.string().nullable().describe('Hash of the stored body; null without a response.'),
    bytes: z.int().describe('Size of the body.'),
    decoder: z.string().describe('Version of the code that decoded the answer.'),
    used: z
      .boolean()
      .describe('Whether the value is decoded from this answer; false if the answer was read and not taken.'),
    reason: z.string().nullable().describe('Why the answer was not taken; null if it was.'),
  })
  .meta({ id: 'ProvenanceAnswer', description: 'An answer of a provider that the run of a value received.' })

const input = z
  .strictObject({
    dataset: z.string().describe('Name of the dataset of the input.'),
    entity,
    observedAt: timeValue.describe('Time of the input.'),
    values: values.describe('The value that counts.'),
    request: z.string().describe('Path of the provenance of the input.'),
  })
  .meta({ id: 'ProvenanceInput', description: 'A stored value that a computed value follows from.' })

const correction = z
  .strictObject({
    storedAt: timeValue.describe('When it was stored.'),
    before: values.nullable().describe('The values before; null if they are unknown or there were none.'),
    after: values.nullable().describe('The values after; null if they are unknown or there are none.'),
    job: z.string().describe('The job that stored it.'),
    reason: z.string().nullable().describe('Why it was stored; null if unknown.'),
  })
  .meta({ id: 'ProvenanceCorrection', description: 'A correction of a stored value.' })

const record = z
  .strictObject({
    dataset: z.string().describe('Name of the dataset.'),
    entity,
    observedAt: timeValue.describe('Time of the value.'),
    values: values.describe('The stored values, by column.'),
    storedAt: timeValue.nullable().describe('Start of the run that stored the value; null if it is not recorded.'),
    provider: z.string().nullable().describe('The provider of the value; null if it is computed or not recorded.'),
    answers: z.array(answer).describe('The answers of the run; none for values from before answers were stored.'),
    computedFrom: z.array(input).describe('The inputs of a computed value, largest first, at most 200.'),
    more: z.int().describe('Number of further inputs.'),
    corrections: z.array(correction).describe('Corrections of the value, oldest first.'),
    request: z.string().describe('Path of this answer with the time of the value.'),
  })
  .meta({ id: 'Provenance', description: 'Where a stored value comes from.' })

type Query = { dataset: string; id?: string | undefined; name?: string | undefined; at?: number | undefined }

/** @throws Problem as `findOne`, or `invalid_parameter` if the dataset is about all entities together. */
function findEntity({ series, name }: Dataset, registry: Registry, query: Query) {
  if (series.entity === 'token') return { type: 'token' as const, named: findOne(tokenKind, registry, query) as Named }
  if (series.entity === 'dao') return { type: 'dao' as const, named: findOne(daoKind, registry, query) as Named }
  const { index } = registry
  const isIndex = query.id === index.id && query.name === undefined
  if ((query.id !== undefined || query.name !== undefined) && !(series.entity !== undefined && isIndex))
    throw new Problem('invalid_parameter', `${name} has one series: leave id and name out.`, { param: 'id' })
  return series.entity === undefined ? undefined : { type: 'index' as const, named: index as Named }
}

/** @throws Problem `not_found` with the reason of the gap, and the time of the first value if it is later. */
async function throwMissing(
  { db, registry, now }: Pick<AppContext, 'db' | 'registry' | 'now'>,
  dataset: Dataset,
  { named, at, after }: { readonly named: Named | undefined; readonly at: number; readonly after: number | undefined },
): Promise<never> {
  const from = toBucketStart(after ?? at, dataset.cadence)
  const to = Math.min(now(), from + INTERVAL_SECONDS[dataset.cadence] * 1000)
  const [ranges, next] = await Promise.all([
    readRanges(db, registry, { dataset, id: named?.id, from, to }, now()),
    findNextTime(db, dataset, { entity: named?.key, at }),
  ])
  const reason = ranges.findLast((range) => range.reason !== null)?.reason ?? 'nothing was collected by then'
  const later =
    next === undefined
      ? ''
      : ` Its ${after === undefined ? 'first' : 'next'} value is of ${new Date(next).toISOString()}.`
  const since = after === undefined ? 'at' : `from ${new Date(after).toISOString()} to`
  const detail = `No value of ${dataset.name} is stored ${since} ${new Date(at).toISOString()}: ${reason}.${later}`
  throw new Problem('not_found', detail, { param: after === undefined ? 'at' : 'after' })
}

export const provenanceRoute = defineRoute({
  operation: 'getProvenance',
  path: '/data/provenance',
  tag: 'Service',
  summary: 'Where a stored value comes from',
  description:
    'The value of one entity at a time, or the newest one before it, or the first one after a time: its provider, the answers from which it was decoded, with the hash of each body, the inputs of computed values, and corrections since. Values from before answers were stored have no `answers`. A 404 has the reason of the gap.',
  query: {
    dataset: z
      .enum(NAMES, `must be one of ${NAMES.join(', ')}`)
      .meta({ description: 'The dataset, by its name in `/data/status`.', examples: ['holders'] }),
    id: oneId('token, DAO or index', tokenKind.example.id).optional(),
    name: oneName('token or DAO', tokenKind.example.name).optional(),
    at: time('The time of the value; default: the newest one.', '2024-01-01').optional(),
    after: time(
      'The first value from this time on, up to `at`: the value that a bucket of a series shows.',
      '2023-12-31',
    ).optional(),
  },
  response: record,
  datasets: [],
  handle: async ({ db, registry, query, now }) => {
    // The parameter accepts only these names.
    const dataset = datasets.find(({ name }) => name === query.dataset) as Dataset
    const found = findEntity(dataset, registry, query)
    const key = found?.named.key
    const at = query.at ?? now() + DAY_MS
    const { after } = query
    if (after !== undefined && after > at)
      throw new Problem('invalid_parameter', 'after must not be later than at.', { param: 'after' })
    const value = await readValue(db, dataset, { entity: key, at, after })
    if (value === undefined) return throwMissing({ db, registry, now }, dataset, { named: found?.named, at, after })
    const isComputed = dataset.computedFrom !== undefined
    const [traced, inputs, corrections] = await Promise.all([
      isComputed ? { provider: null, answers: [] } : traceAnswers(db, dataset, value, key),
      readInputs({ db, registry }, { dataset: dataset.name, value }),
      readCorrections(db, dataset.name, { entity: key ?? 0, at: value.at }),
    ])
    const observedAt = new Date(value.at).toISOString()
    const ofEntity = found === undefined ? '' : `&id=${found.named.id}`
    const body: z.infer<typeof record> = {
      dataset: dataset.name,
      entity: found === undefined ? null : { type: found.type, id: found.named.id, name: found.named.name },
      observedAt,
      values: value.values,
      storedAt: value.storedAt === null ? null : new Date(value.storedAt).toISOString(),
      provider: traced.provider,
      answers: [...traced.answers],
      ...inputs,
      corrections,
      request: `/data/provenance?dataset=${dataset.name}${ofEntity}&at=${observedAt}`,
    }
    return { body: Buffer.from(JSON.stringify(body)), asOf: value.at, staleAt: null, expiresAt: now() + HOLDS_MS }
  },
})
