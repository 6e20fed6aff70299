import { describe, expect, it } from 'vitest'
import { GraphqlMistake, parseQuery } from '../upstream/graphql.ts'

describe('parseQuery', () => {
  it('parses arguments, variables and nested fields', () => {
    const query =
      'query Q($s: String!, $n: Int!) { votes(first: $n, where: {space: $s, ids: ["a", "b"]}) { id proposal { id } } }'
    expect(parseQuery(query, { s: 'x.eth', n: 3 })).toEqual([
      {
        name: 'votes',
        args: { first: 3, where: { space: 'x.eth', ids: ['a', 'b'] } },
        fields: [
          { name: 'id', args: {}, fields: [] },
          { name: 'proposal', args: {}, fields: [{ name: 'id', args: {}, fields: [] }] },
        ],
      },
    ])
    expect(parseQuery('{ space(id: "a.eth") { id } }', {})).toHaveLength(1)
  })

  it.each([
    '',
    '{ space',
    '{ space(id: $s) { id } }',
    'query($s: String!) { space(id: $s) { id } }',
    '{ a } }',
    '{ ? }',
    '{ a: space(id: "a.eth") { id } }',
    '{ space(id: "a.eth") { id @skip(if: true) } }',
    '{ space(id: "a.eth") { ...known } } fragment known on Space { id }',
  ])('rejects %j', (query) => {
    expect(() => parseQuery(query, {})).toThrow(GraphqlMistake)
  })
})
