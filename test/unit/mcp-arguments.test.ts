import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readResources } from '../../api/mcp/resources.ts'
import { describeTool } from '../../api/mcp/tools/describe.ts'
import { profileTool } from '../../api/mcp/tools/profile.ts'
import { queryTool } from '../../api/mcp/tools/query.ts'
import { searchTool } from '../../api/mcp/tools/search.ts'
import { seriesTool } from '../../api/mcp/tools/series.ts'
import { tools } from '../../api/mcp/tools.ts'
import { createSource, toInput } from '../support/mcp-tools.ts'

describe('toInput', () => {
  it.each([
    ['a list as JSON text', { of: '["Uniswap","Aave"]' }, { of: ['Uniswap', 'Aave'] }],
    ['a list as one text', { of: 'Uniswap' }, { of: ['Uniswap'] }],
    ['a list as a text of digits', { of: '0123' }, { of: ['0123'] }],
    ['a list as the JSON of one text', { of: '"Uniswap"' }, { of: ['Uniswap'] }],
    ['blanks in a list', { of: ['Uniswap', '', null] }, { of: ['Uniswap'] }],
    ['an object as JSON text', { where: '{"category":"lending","chain":null}' }, { where: { category: 'lending' } }],
    ['a list for one text', { where: { category: ['lending', 'dex'] } }, { where: { category: 'lending,dex' } }],
    ['a number for a text', { where: { days: 7 } }, { where: { days: '7' } }],
    ['a number as text', { limit: '3' }, { limit: 3 }],
    ['a number as text with spaces', { limit: ' 3 ' }, { limit: 3 }],
    [
      'nulls, empty texts and empty lists of optional members',
      { of: null, fields: [], sort: null, filter: '', where: '', limit: null, cursor: ' ' },
      {},
    ],
    ['empty values as JSON texts', { of: '[]', fields: 'null', where: '{}' }, { where: {} }],
  ])('accepts %s', (_what, inputValue, suggestion) => {
    expect(toInput(queryTool, { topic: 'tokens', ...inputValue })).toEqual({
      topic: 'tokens',
      limit: 20,
      ...suggestion,
    })
  })

  it('drops an empty word of a list of words', () => {
    const input = { topic: 'index/historic', interval: '', points: '50', start: 1_700_000_000, end: null }
    expect(toInput(seriesTool, input)).toEqual({ topic: 'index/historic', points: 50, start: '1700000000' })
  })

  it.each([
    ['a required text', searchTool, { q: '' }, /q: /],
    ['a required text that is null', profileTool, { kind: 'dao', of: null }, /of: /],
    ['truncated JSON', queryTool, { topic: 'tokens', of: '["Uniswap"' }, /of: /],
    ['JSON of another type', queryTool, { topic: 'tokens', of: '{"a":1}' }, /of: /],
    ['a text for a number', queryTool, { topic: 'tokens', limit: 'many' }, /limit: /],
    ['lists inside lists', queryTool, { topic: 'tokens', of: [[['Uniswap']]] }, /of/],
    ['a list of objects for a text', queryTool, { topic: 'tokens', sort: [{ a: 1 }] }, /sort: /],
    [
      'an unknown argument',
      queryTool,
      { topic: 'tokens', field: 'x' },
      /no argument "field"\. Did you mean "fields"\?/,
    ],
    ['a text instead of an object', describeTool, 'tokens', /expected object/],
  ])('rejects %s', (_what, tool, inputValue, message) => {
    expect(() => toInput(tool, inputValue)).toThrow(message)
  })
})

/**
 * The subset of JSON Schema that OpenAI's strict mode accepts, without keywords that other clients reject (`$ref`,
 * `anyOf`, bounds): closed objects whose members all have a type.
 */
const strictSchema: z.ZodType = z.lazy(() =>
  z.discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('object'),
      description: z.string().optional(),
      properties: z.record(z.string().regex(/^[\w-]{1,64}$/), strictSchema),
      required: z.array(z.string()).optional(),
      additionalProperties: z.literal(false),
    }),
    z.strictObject({ type: z.literal('array'), description: z.string().optional(), items: strictSchema }),
    z.strictObject({
      type: z.enum(['string', 'number', 'integer', 'boolean']),
      description: z.string().optional(),
      enum: z.array(z.string()).min(1).max(250).optional(),
    }),
  ]),
)

const FORBIDDEN =
  /"(\$ref|\$defs|\$schema|propertyNames|patternProperties|anyOf|oneOf|allOf|not|if|default|minLength|maxLength)"/

/** Returns the members that a schema requires but does not declare. */
function findUndeclared({ properties = {}, required = [], items }: Listed): string[] {
  const inside = [...Object.values(properties), ...(items ? [items] : [])].flatMap(findUndeclared)
  return [...required.filter((name) => !(name in properties)), ...inside]
}

interface Listed {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Listed>>
  readonly required?: readonly string[]
  readonly items?: Listed
}

describe.each(tools.map((tool) => [tool.name, tool] as const))('%s', (_name, { name, title, input, output }) => {
  const requested = input['~standard'].jsonSchema.input() as Listed
  const observed = output['~standard'].jsonSchema.output() as Listed

  it('has a schema of arguments that clients in strict mode accept', () => {
    expect(strictSchema.safeParse(requested).error).toBeUndefined()
    expect(requested.type).toBe('object')
    expect(findUndeclared(requested)).toEqual([])
    expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
  })

  it('has a title, and a schema of its result without keywords that clients reject', () => {
    expect(title).toMatch(/\w/)
    expect(observed.type).toBe('object')
    expect(Object.keys(observed.properties ?? {})).not.toEqual([])
    expect(findUndeclared(observed)).toEqual([])
    expect(JSON.stringify([requested, observed])).not.toMatch(FORBIDDEN)
  })
})

it.each([
  ['query', queryTool, 'id name fields sort filter limit cursor format bom'],
  ['series', seriesTool, 'id name start end interval points order fill limit cursor fields format bom period days'],
])('%s lists in `where` exactly the parameters of its topics without an own argument', async (name, tool, own) => {
  const { properties = {} } = tool.input['~standard'].jsonSchema.input() as Listed
  const resources = await readResources(createSource(() => []).source)
  const accepted = resources
    .filter(({ intervals }) => name === 'query' || intervals.length > 0)
    .flatMap(({ operation }) => operation.parameters.map((parameter) => parameter.name))
    .filter((parameter) => !own.split(' ').includes(parameter))
  expect(Object.keys(properties.where?.properties ?? {}).toSorted()).toEqual([...new Set(accepted)].toSorted())
})
