import { z } from 'zod'
import { FORMATS } from '../../formats/formats.ts'
import { nearestPath } from '../../parameters/kinds.ts'
import { defineTool, type FileLink, type ToolAnswer } from '../define-tool.ts'
import { Mistake } from '../mistake.ts'
import { type Failed, requestEach } from '../request-each.ts'
import { checkWhere, isId, type Parameters, resolveExact, toOf, toPath, toRecords } from '../requests.ts'
import { findResource, type Resource } from '../resources.ts'
import { Refused, type Reply, type Source } from '../source.ts'
import { MOST_VALUES } from '../table.ts'
import { type Missing, type RecordsReply, toData } from './query-answer.ts'
import { input, type QueryCall } from './query-input.ts'

const MOST_LISTED_MEMBERS = 30
/** Maximum entities with linked files. */
const MOST_LINKED = 3

/** Other arguments of the tool set these parameters, or the tool sets them itself. */
const NOT_IN_WHERE = ['id', 'name', 'fields', 'sort', 'filter', 'limit', 'cursor', 'format', 'bom']

/** @throws Mistake for an argument without a matching parameter of the resource. */
function checkArguments(resource: Resource, { of = [], sort, filter, where = {}, cursor }: QueryCall['input']): void {
  checkWhere(resource, where, NOT_IN_WHERE)
  const refused = Object.entries({ sort, filter, cursor }).filter(
    ([name, value]) => value !== undefined && !resource.has(name),
  )
  if (refused.length > 0)
    throw new Mistake(`"${resource.name}" takes no ${refused.map(([name]) => name).join(' and no ')}.`)
  if (of.length > 0 && resource.takes === 'none')
    throw new Mistake(`"${resource.name}" is about all together: leave out of.`)
  if (of.length > 1 && cursor !== undefined) throw new Mistake('a cursor works with one entity: use one in of.')
  const named = of.find((one) => !isId(one))
  if (resource.mayBeAll && named !== undefined)
    throw new Mistake(`"${resource.name}" goes by ids: find that of ${named} with search, or leave out of for all.`)
  const { oneUnless } = resource
  const isReplaced = oneUnless !== undefined && where[oneUnless] !== undefined
  if (of.length > 0 || resource.takes !== 'one' || isReplaced || resource.mayBeAll) return
  const instead = oneUnless === undefined ? '' : `, or use where.${oneUnless}`
  throw new Mistake(`"${resource.name}" is about one token or DAO: name it in of${instead}.`)
}

/** @throws Mistake for an unknown field, with the most similar member. */
function checkFields({ name, members }: Resource, fields: readonly string[]): void {
  const paths = members.map(({ path }) => path)
  const unknown = fields.filter((path) => !paths.includes(path))
  const [first] = unknown
  if (first === undefined) return
  const near = nearestPath(first, paths)
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`
  const listed = paths.slice(0, MOST_LISTED_MEMBERS).join(', ')
  throw new Mistake(`"${name}" has no ${unknown.join(', ')}.${hint} It has ${listed}: describe it to see its members.`)
}

function toParameters(
  resource: Resource,
  { fields, sort, filter, where, limit, cursor }: QueryCall['input'],
  of: readonly string[],
): Parameters {
  const paths = new Set(resource.members.map(({ path }) => path))
  // With id and name in the answer, entities need not be requested again.
  const identity = resource.takes === 'several' ? ['_id', 'name'].filter((path) => paths.has(path)) : []
  const top = fields && [...new Set([...identity, ...fields.map((path) => path.split(/\[|\./)[0] ?? path)])]
  return {
    ...toOf(of),
    ...where,
    sort,
    filter,
    ...(resource.has('fields') && top !== undefined ? { fields: top.join() } : {}),
    // In resources without pages, `limit` means days.
    ...(resource.has('cursor') ? { limit: String(limit), cursor } : {}),
  }
}

/** The requested path. */
const toRequestPath = (resource: Resource, parameters: Parameters) =>
  toPath(resource.path, { ...parameters, ...(resource.has('format') ? { format: 'ndjson' } : {}) })

/** The same path as JSON, for people to open. */
const toSourcePath = (resource: Resource, parameters: Parameters) =>
  toPath(resource.path, resource.isWrapped ? { ...parameters, fields: undefined } : parameters)

/** The same path as files, with the maximum number of records. */
function toFiles(base: string, resource: Resource, parameters: Parameters): readonly FileLink[] {
  if (!resource.has('format')) return []
  const { schema } = resource.operation.parameters.find(({ name }) => name === 'limit') ?? {}
  // Without a default limit, an answer is complete.
  const limit = resource.has('cursor') && schema?.default !== undefined ? { limit: String(schema.maximum) } : {}
  return (['csv', 'parquet'] as const).map((format) => ({
    uri: base + toPath(resource.path, { ...parameters, ...limit, cursor: undefined, format }),
    name: `${resource.name}.${format}`,
    mimeType: FORMATS[format].mediaType,
  }))
}

const UNRESOLVED: Reply = { text: '', headers: new Headers() }

/**
 * Finds requested entities that have no record in the answer. Their record may be on another page, so each is requested
 * alone.
 */
async function findMissing(
  call: QueryCall,
  resource: Resource,
  received: readonly RecordsReply[],
  idsOf: (text: string) => readonly string[],
): Promise<Missing> {
  const { source, input: args } = call
  const { of = [], filter, where, cursor } = args
  // The first page reported them.
  if (resource.takes !== 'several' || cursor !== undefined) return { failed: [], unresolved: [] }
  const names = received.flatMap(({ records }) => records.flatMap(({ _id, name }) => [_id, name]))
  const seen = new Set(names.map((name) => (typeof name === 'string' ? name.toLowerCase() : undefined)))
  const absent = of.filter((one) => ![one, ...idsOf(one)].some((text) => seen.has(text.toLowerCase())))
  const requestAny: Source['request'] = async (path, signal) => {
    try {
      const reply = await source.request(path, signal)
      if (toRecords(reply).length > 0) return reply
    } catch (error) {
      // A failed request does not mean that there is no record.
      const isUnresolved = error instanceof Refused && error.problem.code !== 'not_found' && !signal.aborted
      if (!isUnresolved) throw error
      return UNRESOLVED
    }
    throw new Refused({ code: 'not_found', detail: 'No record fits.' })
  }
  const toAny = (one: string) => ({ ...toOf(idsOf(one)), ...where, filter, fields: '_id', limit: '1' })
  const paths = absent.map((one) => ({ of: one, path: toRequestPath(resource, toAny(one)) }))
  const { answers, failed } = await requestEach(call, paths, requestAny)
  return { failed, unresolved: answers.flatMap(({ of: one, reply }) => (reply === UNRESOLVED ? [one] : [])) }
}

/** The reasons why there is no answer: one per entity, or a single one if they are equal. */
function toMistake(failed: readonly Failed[]): Mistake {
  const whys = new Set(failed.map(({ why }) => why))
  return new Mistake(whys.size === 1 ? [...whys].join() : failed.map(({ of, why }) => `${of}: ${why}`).join(' '))
}

/** Requests the records of a resource, for each entity in turn if the resource is about one. */
async function read(
  call: QueryCall,
  resource: Resource,
  idsOf: (text: string) => readonly string[],
): Promise<ToolAnswer> {
  const { source, input: args } = call
  const { of = [] } = args
  const isEach = resource.takes === 'one' && of.length > 1
  // If several entities have the name, the API lists them as candidates.
  const toSelected = (one: string) => (resource.takes === 'one' && idsOf(one).length > 1 ? [one] : idsOf(one))
  const requests = (isEach ? of.map((one) => [one]) : [of]).map((group) => {
    const parameters = toParameters(resource, args, [...new Set(group.flatMap(toSelected))])
    const [one, ...rest] = group
    return {
      of: rest.length === 0 ? one : undefined,
      path: toRequestPath(resource, parameters),
      source: toSourcePath(resource, parameters),
      parameters,
    }
  })
  const { answers, failed } = await requestEach(call, requests)
  if (answers.length === 0) throw toMistake(failed)
  const received = answers.map((answer): RecordsReply => ({ ...answer, records: toRecords(answer.reply) }))
  const missing = await findMissing(call, resource, received, idsOf)
  const without = [...failed, ...missing.failed]
  const data = toData(call, isEach, received, { ...missing, failed: without })
  // A page that was cut for its size also gets a next page, which begins at the cut.
  if (data.shown < data.found && resource.has('cursor') && !isEach)
    return read({ ...call, input: { ...args, limit: data.shown } }, resource, idsOf)
  const summary = `${data.shown} of ${data.all ?? 'more'} records of ${resource.name}, as of ${data.answer.asOf ?? 'no time'}.`
  const said = without.length === 0 ? '' : ` Nothing of ${without.length} of the ${of.length} asked for: see failed.`
  const unsaid =
    missing.unresolved.length === 0 ? '' : ' Some records in untold could not be checked: repeat the request.'
  const partial = data.answer.showing === undefined ? [] : received.slice(0, MOST_LINKED)
  const files = partial.flatMap(({ parameters }) => toFiles(source.base, resource, parameters))
  return { summary: summary + said + unsaid, data: data.answer, files }
}

async function run(call: QueryCall): Promise<ToolAnswer> {
  const { input: args } = call
  const { of = [], fields = [] } = args
  const resource = await findResource(call.source, args.topic)
  checkArguments(resource, args)
  checkFields(resource, fields)
  const idsOf = resource.mayBeAll ? (one: string) => [one] : await resolveExact(call, resource.path, of)
  // More rows per entity than fit into the answer are not read.
  const most = resource.takes === 'one' && of.length > 1 ? Math.ceil(MOST_VALUES / of.length) : args.limit
  return read({ ...call, input: { ...args, limit: Math.min(args.limit, most) } }, resource, idsOf)
}

export const queryTool = defineTool({
  name: 'query',
  title: 'Query records',
  description:
    'Records of any topic: newest values, rankings, proposals, votes, trades, holdings, baskets, sums. Numbers have 8 digits; `unknown` counts nulls by column.',
  input,
  output: { columns: z.array(z.unknown()), rows: z.array(z.unknown()), next: z.string().optional() },
  call: run,
})
