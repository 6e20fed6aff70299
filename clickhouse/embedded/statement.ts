import { ClickHouseException, readonlyViolation } from './exception.ts'

type Token = {
  readonly kind: 'word' | 'quoted' | 'literal' | 'symbol'
  /** Upper case for words, the bare name for quoted identifiers, nothing for literals. */
  readonly text: string
  readonly start: number
  readonly end: number
  readonly depth: number
}

/**
 * What one SQL text asks for. Offsets of `insert.data` count in the text as given.
 * - `rows`: prints a result; `head` + `tail` is the statement, an output clause fits between them.
 * - `insert`: `head` + `tail` is the statement without its data, an input clause fits between them;
 *   `dataStart` is where inline data begins.
 * - `command`: everything else (DDL, `INSERT ... SELECT`, `SYSTEM`, ...).
 */
export type Statement =
  | { readonly kind: 'rows'; readonly head: string; readonly tail: string; readonly format: string | undefined }
  | { readonly kind: 'insert'; readonly head: string; readonly tail: string; readonly dataStart: number }
  | { readonly kind: 'command'; readonly sql: string }

const ROW_KEYWORDS = new Set(['SELECT', 'WITH', 'FROM', 'SHOW', 'DESCRIBE', 'DESC', 'EXPLAIN', 'EXISTS', 'CHECK'])
const READER_KEYWORDS = new Set(['SELECT', 'WITH', 'FROM', 'SHOW', 'DESCRIBE', 'DESC', 'EXPLAIN', 'EXISTS'])

/**
 * Functions and table functions that reach files, other hosts or programs. The engine's own read-only mode refuses
 * most table functions, but not scalar `file()`, `DESCRIBE file(...)`, nor those that parse their address first.
 */
const OUTSIDE_FUNCTIONS = new Set(
  `arrowflight azureblobstorage azureblobstoragecluster catboostevaluate cluster clusterallreplicas deltalake deltalakeazure
  deltalakecluster deltalakelocal deltalakes3 executable file filecluster filesystem gcs hdfs hdfscluster
  hive hudi hudicluster iceberg icebergazure iceberghdfs iceberglocal icebergs3 icebergs3cluster jdbc kafka mongodb
  mysql odbc paimon paimons3 postgresql python redis remote remotesecure s3 s3cluster sqlite url urlcluster ytsaurus`
    .split(/\s+/)
    .filter((name) => name !== ''),
)

/** Quoted text is only recognised by its opening quote here: a pattern over its body overflows on long literals. */
const tokenPattern =
  /\s+|--[^\n]*|#[ !][^\n]*|\/\*[\s\S]*?(?:\*\/|$)|(?<quote>['"`])|(?<literal>\$(?<tag>\w*)\$[\s\S]*?(?:\$\k<tag>\$|$)|\d[\w.]*)|(?<word>[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*)|(?<symbol>[\s\S])/y

function* tokens(sql: string): Generator<Token> {
  const pattern = new RegExp(tokenPattern)
  let depth = 0
  for (let match = pattern.exec(sql); match !== null; match = pattern.exec(sql)) {
    const { quote, literal, word, symbol } = match.groups ?? {}
    const start = match.index
    if (quote !== undefined) pattern.lastIndex = findQuoteEnd(sql, start)
    const end = pattern.lastIndex
    if (word !== undefined) yield { kind: 'word', text: word.toUpperCase(), start, end, depth }
    else if (quote === "'" || literal !== undefined) yield { kind: 'literal', text: '', start, end, depth }
    else if (quote !== undefined) yield { kind: 'quoted', text: sql.slice(start + 1, end - 1), start, end, depth }
    else if (symbol !== undefined) {
      if (symbol === ')' || symbol === ']' || symbol === '}') depth -= 1
      yield { kind: 'symbol', text: symbol, start, end, depth }
      if (symbol === '(' || symbol === '[' || symbol === '{') depth += 1
    }
  }
}

/** A quote is escaped by a backslash or by doubling, which reads the same as two literals side by side. */
function findQuoteEnd(sql: string, start: number): number {
  const quote = sql[start]
  for (let at = start + 1; at < sql.length; at += 1) {
    if (sql[at] === '\\') at += 1
    else if (sql[at] === quote) return at + 1
  }
  return sql.length
}

/**
 * Reads one statement's shape without understanding the rest of SQL: the engine stays the parser.
 * Throws code 62 for an empty text or several statements, and 36 for file clauses, as an HTTP server does.
 */
export function readStatement(sql: string): Statement {
  const scan = tokens(sql)
  const first = scan.next()
  if (first.done === true) throw new ClickHouseException(62, 'SYNTAX_ERROR', 'Empty query')
  if (first.value.text === 'INSERT') return readInsert(sql, first.value, scan)
  const all = withoutSemicolon([first.value, ...scan])
  refuseFileClauses(all)
  const keyword = firstKeyword(all)
  const writes = keyword === 'WITH' && all.some((token) => token.depth === 0 && token.text === 'INSERT')
  const last = all.at(-1)
  if (last === undefined) throw new ClickHouseException(62, 'SYNTAX_ERROR', 'Empty query')
  if (!ROW_KEYWORDS.has(keyword) || writes) return { kind: 'command', sql: sql.slice(0, last.end) }
  const format = findFormat(all)
  const split = format?.start ?? last.end
  return {
    kind: 'rows',
    head: sql.slice(0, split),
    tail: sql.slice(split, last.end),
    format: format && sql.slice(format.nameStart, format.nameEnd),
  }
}

/**
 * Refuses what the reader may not run. Defence in depth: the reader's connection is in the engine's own
 * `readonly=1` as well. Throws code 164.
 */
export function refuseForReader(sql: string): void {
  let previous: Token | undefined
  let keyword: string | undefined
  for (const token of tokens(sql)) {
    if (keyword === undefined && token.text !== '(') {
      keyword = token.text
      if (token.kind !== 'word' || !READER_KEYWORDS.has(keyword)) {
        throw readonlyViolation(`Cannot execute ${keyword} in readonly mode.`)
      }
    }
    if (token.text === '(' && previous !== undefined && isOutsideFunction(previous)) {
      throw readonlyViolation(`Function ${previous.text.toLowerCase()} is not allowed in readonly mode.`)
    }
    previous = token
  }
}

function isOutsideFunction(token: Token): boolean {
  return (token.kind === 'word' || token.kind === 'quoted') && OUTSIDE_FUNCTIONS.has(token.text.toLowerCase())
}

function readInsert(sql: string, first: Token, scan: Iterable<Token>): Statement {
  const all: Token[] = [first]
  let split: number | undefined
  for (const token of scan) {
    const previous = all.at(-1)
    all.push(token)
    if (token.depth !== 0 || token.kind !== 'word') continue
    if (token.text === 'INFILE' && previous?.text === 'FROM') refuseFileClauses(all)
    if (token.text === 'SELECT' || token.text === 'WITH') return readInsertSelect(sql, [...all, ...scan])
    if (token.text === 'SETTINGS') split ??= token.start
    if (token.text === 'VALUES') {
      return {
        kind: 'insert',
        head: sql.slice(0, split ?? token.start),
        tail: valuesTail(sql, split, token),
        dataStart: token.end,
      }
    }
    if (previous?.text === 'FORMAT' && previous.kind === 'word' && previous.depth === 0) {
      const at = split ?? previous.start
      return {
        kind: 'insert',
        head: sql.slice(0, at),
        tail: sql.slice(at, token.end),
        dataStart: dataStart(sql, token.end),
      }
    }
  }
  const last = withoutSemicolon(all).at(-1) ?? first
  const at = split ?? last.end
  return {
    kind: 'insert',
    head: sql.slice(0, at),
    tail: `${sql.slice(at, last.end)} FORMAT Values`,
    dataStart: sql.length,
  }
}

function readInsertSelect(sql: string, all: readonly Token[]): Statement {
  const statement = withoutSemicolon(all)
  refuseFileClauses(statement)
  if (statement.some((token, index) => token.text === 'INPUT' && statement[index + 1]?.text === '(')) {
    throw new ClickHouseException(48, 'NOT_IMPLEMENTED', 'INSERT ... SELECT FROM input() is not supported here.')
  }
  return { kind: 'command', sql: sql.slice(0, statement.at(-1)?.end) }
}

function valuesTail(sql: string, split: number | undefined, values: Token): string {
  return `${split === undefined ? '' : sql.slice(split, values.start)} FORMAT Values`
}

/** Data begins after blanks and at most one line break behind the format's name, so that binary data stays whole. */
function dataStart(sql: string, end: number): number {
  const blanks = /[ \t]*(?:;?[ \t]*\r?\n)?/y
  blanks.lastIndex = end
  blanks.test(sql)
  return blanks.lastIndex
}

function withoutSemicolon(all: readonly Token[]): readonly Token[] {
  const semicolon = all.findIndex((token) => token.text === ';' && token.kind === 'symbol')
  if (semicolon === -1) return all
  if (all.slice(semicolon).some((token) => token.text !== ';')) {
    throw new ClickHouseException(62, 'SYNTAX_ERROR', 'Multi-statements are not allowed.')
  }
  return all.slice(0, semicolon)
}

function refuseFileClauses(all: readonly Token[]): void {
  const index = all.findIndex(
    (token, at) =>
      token.kind === 'word' &&
      ((token.text === 'OUTFILE' && all[at - 1]?.text === 'INTO') ||
        (token.text === 'INFILE' && all[at - 1]?.text === 'FROM')),
  )
  if (index !== -1) {
    throw new ClickHouseException(36, 'BAD_ARGUMENTS', `${all[index]?.text} is not allowed over HTTP.`)
  }
}

function firstKeyword(all: readonly Token[]): string {
  const token = all.find(({ text }) => text !== '(')
  return token?.kind === 'word' ? token.text : ''
}

/** `FORMAT name` counts only at the end or before `SETTINGS`; elsewhere `format` is a column's name. */
function findFormat(
  all: readonly Token[],
): { readonly start: number; readonly nameStart: number; readonly nameEnd: number } | undefined {
  for (let at = all.length - 2; at > 0; at -= 1) {
    const [keyword, name, next] = [all[at], all[at + 1], all[at + 2]]
    if (keyword?.kind !== 'word' || keyword.text !== 'FORMAT' || keyword.depth !== 0) continue
    if (name?.kind !== 'word' || name.text === 'ASC' || name.text === 'DESC' || name.text === 'SETTINGS') continue
    if (next === undefined || next.text === 'SETTINGS')
      return { start: keyword.start, nameStart: name.start, nameEnd: name.end }
  }
  return undefined
}
