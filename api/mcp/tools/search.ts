import { z } from 'zod'
import { defineTool } from '../define-tool.ts'
import { toPath, toRecords } from '../requests.ts'
import { type Resource, readResources } from '../resources.ts'
import type { Json } from '../table.ts'

const MOST_MEMBERS = 12

/** Members with all the words in their path or description; matches in the path come first. */
function findMembers(resources: readonly Resource[], text: string) {
  const words = text
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word.length > 1)
  if (words.length === 0) return []
  const has = (where: string) => words.every((word) => where.toLowerCase().includes(word))
  const found = resources.flatMap(({ name: topic, members }) =>
    members
      .filter(({ type }) => type !== '' && !type.startsWith('list of'))
      .map(({ path, description }) => ({ topic, member: path, meaning: description, isNamed: has(`${topic}.${path}`) }))
      .filter(({ isNamed, topic: name, member, meaning }) => isNamed || has(`${name} ${member} ${meaning}`)),
  )
  return found.sort((a, b) => Number(b.isNamed) - Number(a.isNamed)).map(({ isNamed: _, ...member }) => member)
}

/** Categories with the text in their name or slug: `where.category` of query takes the slug. */
function findCategories(categories: readonly Json[], text: string) {
  const query = text.trim().toLowerCase()
  return categories
    .filter(({ name, slug }) => [name, slug].some((one) => String(one).toLowerCase().includes(query)))
    .map(({ _id, name, slug }) => ({ id: _id, name, slug }))
}

export const searchTool = defineTool({
  name: 'search',
  title: 'Search',
  description:
    'Tokens and DAOs by name, symbol, slug, contract address or category, and metrics by words such as "holders share": ids, topics and members for other tools. A token and its DAO are two records.',
  input: z.strictObject({
    q: z.string().min(1).max(200),
    limit: z.int().min(1).max(30).default(8).describe('Up to 30, default 8.'),
  }),
  output: {
    entities: z.array(z.unknown()),
    metrics: z.array(z.unknown()),
  },
  call: async ({ source, input: { q, limit }, signal }) => {
    const path = toPath('/data/search', { q, limit: String(limit) })
    const [reply, registry, resources] = await Promise.all([
      source.request(path, signal),
      source.request('/data/categories', signal),
      readResources(source),
    ])
    const entities = toRecords(reply).map(({ type, _id, name, symbol, slug, matched }) => ({
      ...{ type, id: _id, name, symbol, slug, matched },
    }))
    const categories = findCategories(toRecords(registry), q)
    const total = Number(reply.headers.get('x-total-count') ?? entities.length)
    const members = findMembers(resources, q)
    const more = members.length > MOST_MEMBERS ? { moreMetrics: members.length - MOST_MEMBERS } : {}
    return {
      summary: `${entities.length} of ${total} tokens and DAOs, ${categories.length} categories, ${Math.min(members.length, MOST_MEMBERS)} metrics.`,
      data: {
        source: source.base + path,
        total,
        entities,
        categories,
        metrics: members.slice(0, MOST_MEMBERS),
        ...more,
      },
    }
  },
})
