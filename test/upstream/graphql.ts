/** A field that a query asks for, its variables filled in. */
export interface AskedField {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly fields: readonly AskedField[]
}

/** A query that a server refuses before it looks at any data. */
export class GraphqlMistake extends Error {}

const TOKEN = /[\s,]*([A-Za-z_]\w*|\$[A-Za-z_]\w*|-?\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*"|[{}()[\]:!=@])/y

/**
 * The fields of a query document with one operation: nested fields with arguments, variables, lists and objects. No
 * fragments, directives or aliases.
 * @throws GraphqlMistake for anything else, and for a variable that is not declared or has no value.
 */
export function parseQuery(text: string, variables: Readonly<Record<string, unknown>>): readonly AskedField[] {
  const tokens = tokenize(text)
  let at = 0
  const peek = () => tokens[at]
  const next = () => {
    const token = tokens[at]
    if (token === undefined) throw new GraphqlMistake('Syntax Error: Unexpected <EOF>.')
    at += 1
    return token
  }
  const expect = (wanted: string) => {
    const token = next()
    if (token !== wanted) throw new GraphqlMistake(`Syntax Error: Expected "${wanted}", found "${token}".`)
  }
  const declared = new Set<string>()

  function readDeclarations(): void {
    expect('(')
    while (peek() !== ')') {
      declared.add(next())
      expect(':')
      next()
      if (peek() === '!') next()
    }
    next()
  }
  function readValue(): unknown {
    const token = next()
    if (token === '{') return readObject('}')
    if (token === '[') {
      const values: unknown[] = []
      while (peek() !== ']') values.push(readValue())
      next()
      return values
    }
    if (token.startsWith('$')) return toVariable(token)
    if (token.startsWith('"')) return JSON.parse(token)
    if (token === 'null' || token === 'true' || token === 'false') return JSON.parse(token)
    return /^-?\d/.test(token) ? Number(token) : token
  }
  function toVariable(token: string): unknown {
    const name = token.slice(1)
    if (!declared.has(token)) throw new GraphqlMistake(`Variable "${token}" is not defined.`)
    if (variables[name] === undefined)
      throw new GraphqlMistake(`Variable "${token}" of required type was not provided.`)
    return variables[name]
  }
  function readObject(end: string): Record<string, unknown> {
    const members: Record<string, unknown> = {}
    while (peek() !== end) {
      const name = next()
      expect(':')
      members[name] = readValue()
    }
    next()
    return members
  }
  function readFields(): AskedField[] {
    expect('{')
    const fields: AskedField[] = []
    while (peek() !== '}') {
      const name = next()
      if (!/^[A-Za-z_]/.test(name)) throw new GraphqlMistake(`Syntax Error: Expected Name, found "${name}".`)
      let args = {}
      if (peek() === '(') {
        next()
        args = readObject(')')
      }
      fields.push({ name, args, fields: peek() === '{' ? readFields() : [] })
    }
    next()
    return fields
  }

  if (peek() === 'query') {
    next()
    if (peek() !== '{' && peek() !== '(') next()
    if (peek() === '(') readDeclarations()
  }
  const fields = readFields()
  if (peek() !== undefined) throw new GraphqlMistake(`Syntax Error: Unexpected "${peek()}".`)
  return fields
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
