import { z } from 'zod'
import { nearestPath } from '../../parameters/kinds.ts'
import { type Call, defineTool, type ToolAnswer } from '../define-tool.ts'
import { Mistake } from '../mistake.ts'
import { findResource, type Resource, readResources } from '../resources.ts'
import { cutToSize, type Json } from '../table.ts'

const input = z.strictObject({
  topic: z.string().max(80).optional().describe('Such as daos/treasury.'),
  member: z.string().max(120).optional().describe('Part of the paths of members.'),
})

/** Parameters that are arguments of query and series. */
const ARGUMENTS = new Set('id name fields sort filter limit cursor format order fill points interval'.split(' '))

const TAKES = { several: 'any tokens or DAOs', one: 'one token or DAO', none: 'all together' } as const

const toAbout = ({ takes, mayBeAll, oneUnless }: Resource) => {
  if (mayBeAll) return `one by its id, or ${TAKES.none}`
  return oneUnless === undefined ? TAKES[takes] : `${TAKES[takes]}, or where.${oneUnless}`
}

async function toOverview({ source }: Call<unknown>): Promise<ToolAnswer> {
  const resources = await readResources(source)
  const shown = resources.map((resource) => ({
    topic: resource.name,
    what: resource.operation.summary,
    about: toAbout(resource),
    ...(resource.intervals.length > 0 ? { series: resource.intervals.join(' ') } : {}),
  }))
  return { summary: `${resources.length} topics.`, data: { source: `${source.base}/llms.txt`, topics: shown } }
}

/** Whether records can be sorted and filtered by a value: lists and their items cannot. */
const isSortable = (resource: Resource, path: string, type: string) =>
  resource.has('sort') && !path.includes('[') && /^(number|integer|time|string|boolean)/.test(type)

const isValue = (type: string) => type !== 'object' && type !== 'object or null'

async function readFreshness({ source, signal }: Call<unknown>, resource: Resource): Promise<readonly Json[]> {
  const { text } = await source.request('/data/status', signal)
  const { datasets } = JSON.parse(text) as { readonly datasets: readonly Json[] }
  const own = resource.operation['x-datasets']
  return datasets
    .filter(({ dataset }) => own.includes(String(dataset)))
    .map(({ dataset, cadence, lastUpdated, state, complete, earliest }) => ({
      ...{ dataset, collectedEvery: cadence, lastUpdated, state, complete, earliest },
    }))
}

async function toDetails(call: Call<z.output<typeof input>>, name: string): Promise<ToolAnswer> {
  const { source, input: args } = call
  const resource = await findResource(source, name)
  const search = args.member?.toLowerCase() ?? ''
  const members = resource.members
    .filter(({ path, type }) => isValue(type) && path.toLowerCase().includes(search))
    .map(({ path, type, description }) => ({
      member: path,
      type,
      meaning: description,
      ...(isSortable(resource, path, type) ? {} : { sortable: false }),
    }))
  if (members.length === 0) {
    const near = nearestPath(
      search,
      resource.members.map(({ path }) => path),
    )
    const hint = near === undefined ? '' : ` Did you mean "${near}"?`
    throw new Mistake(`"${name}" has no member with "${args.member}".${hint} Describe it without member for all.`)
  }
  const data = await readFreshness(call, resource)
  const where = resource.operation.parameters.map(({ name }) => name).filter((one) => !ARGUMENTS.has(one))
  const { answer, shown } = cutToSize(members.length, (rows) => ({
    source: `${source.base}/reference/${resource.operation.operationId}.md`,
    topic: resource.name,
    what: resource.operation.description,
    about: toAbout(resource),
    ...(resource.intervals.length > 0 ? { intervals: resource.intervals } : {}),
    where,
    madeOf: data,
    members: members.slice(0, rows),
    ...(rows < members.length ? { showing: `${rows} of ${members.length} members; use member=` } : {}),
  }))
  return {
    summary: `${resource.name}: ${shown} of ${members.length} members with their meaning and unit.`,
    data: answer,
  }
}

export const describeTool = defineTool({
  name: 'describe',
  title: 'Describe topics',
  description:
    'All topics, or one: meaning and unit of each member, sorting, intervals, parameters, freshness and completeness.',
  input,
  output: { topics: z.array(z.unknown()).optional(), members: z.array(z.unknown()).optional() },
  call: (call) => (call.input.topic === undefined ? toOverview(call) : toDetails(call, call.input.topic)),
})
