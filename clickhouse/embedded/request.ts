import { rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { type Encoding, readEncoding, readMultipart, readText, spoolBody } from './body.ts'
import { ClickHouseException } from './exception.ts'
import { readStatement, type Statement } from './statement.ts'

/** Bytes: a statement is held in memory, data of an insert is spooled to disk. */
export type BodyLimits = { readonly maxStatementBytes: number; readonly maxInsertBytes: number }

/** Data of an insert, spooled to a file that the caller removes. */
export type InsertData = { readonly path: string; readonly encoding: Encoding }

/** One request of the HTTP interface, read to its end. */
export type ClickHouseRequest = {
  readonly queryId: string | undefined
  /** The text as sent, without an insert's data. */
  readonly sql: string
  readonly statement: Statement
  readonly data: InsertData | undefined
  readonly database: string
  readonly defaultFormat: string
  readonly settings: ReadonlyMap<string, string>
  readonly parameters: ReadonlyMap<string, string>
  readonly compress: boolean
  readonly waitEndOfQuery: boolean
}

/** URL parameters that are neither settings nor bound parameters. */
const INTERFACE_PARAMETERS = new Set([
  'buffer_size',
  'client_protocol_version',
  'database',
  'default_format',
  'password',
  'query',
  'query_id',
  'quota_key',
  'user',
  'wait_end_of_query',
])

/** They would need state that outlives a request, or users and codecs that the engine does not have. */
const UNSUPPORTED_PARAMETERS = ['session_id', 'role', 'compress', 'decompress'] as const

/**
 * Reads a request's URL, headers and body. `spoolPath` names the file for an insert's data.
 * Throws code 48 for what is not supported, 62 for a malformed text, 307 (413) for a body past its limit.
 */
export async function readRequest(
  request: IncomingMessage,
  search: URLSearchParams,
  spoolPath: string,
  limits: BodyLimits,
): Promise<ClickHouseRequest> {
  refuseUnsupported(search)
  const body = await readSqlAndData(request, search, spoolPath, limits)
  const fields = new Map([...search, ...body.fields])
  const settings = new Map<string, string>()
  const parameters = new Map<string, string>()
  for (const [name, value] of fields) {
    if (name.startsWith('param_')) parameters.set(toWord(name.slice(6)), value)
    else if (!INTERFACE_PARAMETERS.has(name)) settings.set(toWord(name), value)
  }
  const format = fields.get('default_format') ?? request.headers['x-clickhouse-format'] ?? 'TabSeparated'
  return {
    queryId: fields.get('query_id'),
    sql: body.sql,
    statement: body.statement,
    data: body.data,
    database: fields.get('database') ?? String(request.headers['x-clickhouse-database'] ?? 'default'),
    defaultFormat: toWord(String(format)),
    settings,
    parameters,
    compress: isOn(settings.get('enable_http_compression')),
    waitEndOfQuery: isOn(fields.get('wait_end_of_query')),
  }
}

export async function removeInsertData(data: InsertData | undefined): Promise<void> {
  if (data !== undefined) await rm(data.path, { force: true })
}

type SqlAndData = {
  readonly sql: string
  readonly statement: Statement
  readonly data: InsertData | undefined
  readonly fields: ReadonlyMap<string, string>
}

async function readSqlAndData(
  request: IncomingMessage,
  search: URLSearchParams,
  spoolPath: string,
  limits: BodyLimits,
): Promise<SqlAndData> {
  const encoding = readEncoding(request.headers['content-encoding'])
  const contentType = request.headers['content-type'] ?? ''
  const urlSql = search.get('query') ?? ''
  const none = new Map<string, string>()
  if (/^multipart\/form-data/i.test(contentType)) {
    const fields = readMultipart(await readText(request, encoding, limits.maxStatementBytes), contentType)
    const sql = urlSql + (fields.get('query') ?? '')
    return withInlineData(Buffer.from(sql), spoolPath, limits, fields)
  }
  if (urlSql.trim() !== '') {
    const statement = readStatement(urlSql)
    if (statement.kind === 'insert' && urlSql.slice(statement.dataStart).trim() === '') {
      await spoolBody(request, spoolPath, limits.maxInsertBytes)
      return { sql: urlSql, statement, data: { path: spoolPath, encoding }, fields: none }
    }
  }
  const body = await readText(request, encoding, limits.maxStatementBytes)
  return withInlineData(Buffer.concat([Buffer.from(urlSql), body]), spoolPath, limits, none)
}

/** Splits the data off an `INSERT ... FORMAT X <data>` in one text; offsets are bytes, as the data may be binary. */
async function withInlineData(
  text: Buffer,
  spoolPath: string,
  limits: BodyLimits,
  fields: ReadonlyMap<string, string>,
): Promise<SqlAndData> {
  const bytes = readStatement(text.toString('latin1'))
  if (bytes.kind !== 'insert') {
    const sql = text.toString('utf8')
    return { sql, statement: readStatement(sql), data: undefined, fields }
  }
  const sql = text.subarray(0, bytes.dataStart).toString('utf8')
  const statement = readStatement(sql)
  await spoolBody([text.subarray(bytes.dataStart)], spoolPath, limits.maxInsertBytes)
  return { sql, statement, data: { path: spoolPath, encoding: 'none' }, fields }
}

function refuseUnsupported(search: URLSearchParams): void {
  const name = UNSUPPORTED_PARAMETERS.find((parameter) => !['', '0', null].includes(search.get(parameter)))
  if (name !== undefined) {
    throw new ClickHouseException(48, 'NOT_IMPLEMENTED', `${name} is not supported by the embedded ClickHouse.`)
  }
}

/** Names of settings, parameters and formats stand in SQL unquoted, so they may be nothing but a word. */
function toWord(name: string): string {
  if (!/^\w+$/.test(name)) throw new ClickHouseException(36, 'BAD_ARGUMENTS', `${JSON.stringify(name)} is not a name.`)
  return name
}

function isOn(value: string | undefined): boolean {
  return value === '1' || value === 'true'
}
