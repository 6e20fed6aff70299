/** A field that a query asks for, its variables filled in. */
export interface AskedField {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly fields: readonly AskedField[]
}

/** A query that a server refuses before it looks at any data. */
export class GraphqlMistake extends Error {}

const TOKEN = /[\s,]*([A-Za-z_]\w*|\$[A-Za-z_]\w*|-?\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*"|[{}()[\]:!=@])/y

/** The tokens of a query, one after the other, and what its variables stand for. */
interface Reader {
  peek(): string | undefined
  next(): string
  expect(token: string): void
  readonly declared: Set<string>
  readonly variables: Readonly<Record<string, unknown>>
}

/**
 * The fields of a query document with one operation: nested fields with arguments, variables, lists and objects. No
 * fragments, directives or aliases.
 * @throws GraphqlMistake for anything else, and for a variable that is not declared or has no value.
 */
export function parseQuery(text: string, variables: Readonly<Record<string, unknown>>): readonly AskedField[] {
  const reader = createReader(tokenize(text), variables)
  if (reader.peek() === 'query') {
    reader.next()
    if (reader.peek() !== '{' && reader.peek() !== '(') reader.next()
    if (reader.peek() === '(') readDeclarations(reader)
  }
  const fields = readFields(reader)
  const left = reader.peek()
  if (left !== undefined) throw new GraphqlMistake(`Syntax Error: Unexpected "${left}".`)
  return fields
}

function createReader(tokens: readonly string[], variables: Reader['variables']): Reader {
  let at = 0
  const next = () => {
    const token = tokens[at]
    if (token === undefined) throw new GraphqlMistake('Syntax Error: Unexpected <EOF>.')
    at += 1
    return token
  }
  return {
    peek: () => tokens[at],
    next,
    expect(wanted) {
      const token = next()
      if (token !== wanted) throw new GraphqlMistake(`Syntax Error: Expected "${wanted}", found "${token}".`)
    },
    declared: new Set(),
    variables,
  }
}

function readDeclarations(reader: Reader): void {
  reader.expect('(')
  while (reader.peek() !== ')') {
    reader.declared.add(reader.next())
    reader.expect(':')
    reader.next()
    if (reader.peek() === '!') reader.next()
  }
  reader.next()
}

function readFields(reader: Reader): AskedField[] {
  reader.expect('{')
  const fields: AskedField[] = []
  while (reader.peek() !== '}') {
    const name = reader.next()
    if (!/^[A-Za-z_]/.test(name)) throw new GraphqlMistake(`Syntax Error: Expected Name, found "${name}".`)
    const args = reader.peek() === '(' ? readMembers(reader, '(', ')') : {}
    fields.push({ name, args, fields: reader.peek() === '{' ? readFields(reader) : [] })
  }
  reader.next()
  return fields
}

function readMembers(reader: Reader, begin: string, end: string): Record<string, unknown> {
  reader.expect(begin)
  const members: Record<string, unknown> = {}
  while (reader.peek() !== end) {
    const name = reader.next()
    reader.expect(':')
    members[name] = readValue(reader)
  }
  reader.next()
  return members
}

function readValue(reader: Reader): unknown {
  if (reader.peek() === '{') return readMembers(reader, '{', '}')
  const token = reader.next()
  if (token === '[') {
    const values: unknown[] = []
    while (reader.peek() !== ']') values.push(readValue(reader))
    reader.next()
    return values
  }
  if (token.startsWith('$')) return toVariable(reader, token)
  if (token.startsWith('"') || token === 'null' || token === 'true' || token === 'false') return JSON.parse(token)
  return /^-?\d/.test(token) ? Number(token) : token
}

function toVariable({ declared, variables }: Reader, token: string): unknown {
  const value = variables[token.slice(1)]
  if (!declared.has(token)) throw new GraphqlMistake(`Variable "${token}" is not defined.`)
  if (value === undefined) throw new GraphqlMistake(`Variable "${token}" of required type was not provided.`)
  return value
}

function tokenize(text: string): string[] {
  const tokens: string[] = []
  let end = 0
  for (const match of text.matchAll(new RegExp(TOKEN, 'gy'))) {
    tokens.push(match[1] ?? '')
    end = match.index + match[0].length
  }
  if (/[^\s,]/.test(text.slice(end))) throw new GraphqlMistake(`Syntax Error: Unexpected character at ${end}.`)
  return tokens
}
