import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { idValue } from '../../shared/record-values.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { toStaleAt } from '../../shared/store/store.ts'
import { findReason } from '../coverage/ranges.ts'
import type { Answer } from '../formats/formats.ts'
import { parseParameters, readQuery } from '../parameters/parse.ts'
import { Problem } from '../problem/problem.ts'
import { type AppContext, type Described, defineRoute, type RequestCall, type Route } from '../route/define-route.ts'
import type { EntityKind, Named } from '../route/entities.ts'

/** A section of a profile: the record that another route returns for the same entity, or for a related one. */
export interface Section<E extends Named> {
  /** The member of the profile. */
  readonly name: string
  /** The route of the record: the record of a list, or the first of a series. */
  readonly route: Route
  /**
   * The id of the record's entity. Default: the profile's entity. Undefined if there is no such entity; `nobody` is
   * then the reason.
   */
  readonly of?: (entity: E, registry: Registry) => string | undefined
  readonly nobody?: string
  /** The route's parameters. Default: only `id`. */
  readonly query?: (id: string) => Readonly<Record<string, string>>
  /** The coverage of these datasets explains a missing record. If the list is empty, `otherwise` explains it. */
  readonly datasets: readonly DatasetFacts[]
  readonly otherwise?: string | ((id: string, call: AppContext) => Promise<string>)
}

interface Profile<E extends Named> extends Omit<Described, 'description'> {
  readonly kind: EntityKind<E>
  /** Schema name in the API documentation. */
  readonly schema: string
  readonly sections: readonly Section<E>[]
}

/** Result of a section: the JSON of its record, or why there is none. */
interface SectionResult {
  readonly json: string
  readonly reason: string | undefined
  readonly asOf: number | null
  readonly staleAt: number | null
  readonly expiresAt: number
}

/** The coverage may change without a change event, so a reason is read again after this time. */
const REASON_HOLDS_MS = 60_000

const NONE = { json: 'null', asOf: null, staleAt: null, expiresAt: Number.POSITIVE_INFINITY } as const

type Call = RequestCall

/** The answer of a section's route; undefined if it has no data. */
async function callRoute(
  call: Call,
  route: Route,
  query: Readonly<Record<string, string>>,
): Promise<Answer | undefined> {
  const parsedQuery = parseParameters(route.query, readQuery(`?${new URLSearchParams(query)}`))
  try {
    return await route.resolve(parsedQuery, 'json', call).answer(call, call.now())
  } catch (error) {
    if (error instanceof Problem && error.code === 'no_data') return undefined
    throw error
  }
}

/** Why a section has no record. */
async function toReason<E extends Named>(call: Call, section: Section<E>, id: string): Promise<string> {
  const { datasets, otherwise = 'it has no record' } = section
  const reasons = await Promise.all(
    datasets.map(async (dataset) => {
      const reason = await findReason(call, { dataset, id }, call.now())
      return datasets.length > 1 ? `${dataset.name}: ${reason}` : reason
    }),
  )
  if (reasons.length > 0) return reasons.join('; ')
  return typeof otherwise === 'string' ? otherwise : otherwise(id, call)
}

async function readSection<E extends Named>(call: Call, section: Section<E>, entity: E): Promise<SectionResult> {
  const {
    route,
    of = ({ id }) => id,
    nobody = 'no entity of this kind is related to it',
    query = (id) => ({ id }),
  } = section
  const id = of(entity, call.registry)
  if (id === undefined) return { ...NONE, reason: nobody }
  const answer = await callRoute(call, route, query(id))
  if (answer !== undefined && 'open' in answer) throw new Error(`${route.path} is too long for a section`)
  const body = answer && ('body' in answer ? answer.body : answer.assembled.toText())
  // The record's bytes as the other route writes them: parsing and serializing would change its digits.
  const json = body?.toString().replace(/^\[|\]$/g, '') ?? ''
  if (answer === undefined || json === '') {
    return { ...NONE, reason: await toReason(call, section, id), expiresAt: call.now() + REASON_HOLDS_MS }
  }
  const [main] = route.datasets
  const byCadence = answer.asOf === null || main === undefined ? null : toStaleAt(answer.asOf, main)
  const { asOf, staleAt = byCadence, expiresAt = Number.POSITIVE_INFINITY } = answer
  return { json, reason: undefined, asOf, staleAt, expiresAt }
}

const withoutNulls = (times: readonly (number | null)[]) => times.filter((time) => time !== null)

/** Assembles a profile from the results of its sections. */
function toAnswer<E extends Named>(
  { sections }: Profile<E>,
  { id, name }: E,
  results: readonly SectionResult[],
): Answer {
  const members = sections.map((section, index) => `${JSON.stringify(section.name)}:${results[index]?.json}`)
  const unavailable = sections.flatMap((section, index) => {
    const reason = results[index]?.reason
    return reason === undefined ? [] : [{ section: section.name, reason }]
  })
  const head = `"_id":${JSON.stringify(id)},"name":${JSON.stringify(name)}`
  const ends = withoutNulls(results.map(({ staleAt }) => staleAt))
  // Manually maintained records do not count for the age of collected data.
  const collected = withoutNulls(results.map(({ asOf, staleAt }) => (staleAt === null ? null : asOf)))
  const times = collected.length > 0 ? collected : withoutNulls(results.map(({ asOf }) => asOf))
  return {
    body: Buffer.from(`{${[head, ...members].join()},"unavailable":${JSON.stringify(unavailable)}}`),
    asOf: times.length === 0 ? null : Math.max(...times),
    staleAt: ends.length === 0 ? null : Math.min(...ends),
    expiresAt: Math.min(...results.map(({ expiresAt }) => expiresAt)),
  }
}

/** The schema of a section's records, as the documentation of the route names it. */
function toSchema({ route }: Pick<Section<Named>, 'route'>): z.ZodType {
  const { response } = route
  const record = response instanceof z.ZodArray ? (response.element as z.ZodType) : route.record
  if (record === undefined) throw new Error(`${route.path} has no records`)
  return record.nullable().describe(`The record of ${route.path}; null if \`unavailable\` has the reason.`)
}

function toResponse<E extends Named>({ kind, schema, sections }: Profile<E>) {
  const { noun } = kind
  const names = sections.map(({ name }) => name) as [string, ...string[]]
  const unavailable = z
    .strictObject({
      section: z.enum(names).describe('The member that is null.'),
      reason: z.string().describe('Reason, from the state of data collection.'),
    })
    .meta({ id: `${schema}Unavailable`, description: 'A section of a profile without a record.' })
  return z
    .strictObject({
      _id: idValue.describe(`Id of the ${noun}.`),
      name: z.string().describe(`Name of the ${noun}.`),
      ...Object.fromEntries(sections.map((section) => [section.name, toSchema(section)])),
      unavailable: z.array(unavailable).describe('The sections without a record, with the reason.'),
    })
    .meta({ id: schema, description: `All records of one ${noun}.` })
}

/**
 * Defines a route with all data of one entity: its sections are the records of other routes, byte for byte
 * (docs/contract.md, section 9).
 */
export function defineProfile<E extends Named>(profile: Profile<E>): Route {
  const { kind, sections } = profile
  const datasets = [...new Set(sections.flatMap(({ route }) => route.datasets))]
  return defineRoute({
    operation: profile.operation,
    path: profile.path,
    tag: profile.tag,
    summary: profile.summary,
    description: `Each section is the ${kind.noun}'s record of another path: ${sections.map(({ name, route }) => `\`${name}\` of ${route.path}`).join(', ')}. A section without a record is null, and \`unavailable\` has the reason. \`X-Data-As-Of\` is the time of the newest collected datum. \`X-Data-Stale\` is set if a section is stale.`,
    one: kind as never,
    query: {},
    response: toResponse(profile),
    datasets,
    handle: async (call): Promise<Answer> => {
      const entity = call.found as unknown as E
      const results = await Promise.all(sections.map((section) => readSection(call, section, entity)))
      return toAnswer(profile, entity, results)
    },
  })
}
