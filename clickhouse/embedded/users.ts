import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { ClickHouseException, readonlyViolation } from './exception.ts'

export type Credentials = { readonly name: string; readonly password: string }

export type Role = 'writer' | 'reader'

/** Upper bounds of one statement of the reader: seconds, rows, bytes. */
export type ReaderLimits = {
  readonly maxExecutionSeconds: number
  readonly maxResultRows: number
  readonly maxMemoryBytes: number
}

/**
 * Finds the role of a request from `Authorization: Basic`, `X-ClickHouse-User`/`-Key` or `user`/`password` in the URL,
 * in the ClickHouse server's order. Throws code 516 when they match no user.
 */
export function authenticate(
  users: Readonly<Record<Role, Credentials>>,
  headers: IncomingHttpHeaders,
  search: URLSearchParams,
): Role {
  const given = readCredentials(headers, search)
  for (const role of ['writer', 'reader'] as const) {
    const nameMatches = sameText(users[role].name, given.name)
    const passwordMatches = sameText(users[role].password, given.password)
    if (nameMatches && passwordMatches) return role
  }
  throw new ClickHouseException(
    516,
    'AUTHENTICATION_FAILED',
    `${given.name}: Authentication failed: password is incorrect, or there is no user with such name.`,
  )
}

function readCredentials(headers: IncomingHttpHeaders, search: URLSearchParams): Credentials {
  const basic = /^Basic (.+)$/i.exec(headers.authorization ?? '')?.[1]
  if (basic !== undefined) {
    const [name = '', ...password] = Buffer.from(basic, 'base64').toString('utf8').split(':')
    return { name, password: password.join(':') }
  }
  const name = headers['x-clickhouse-user'] ?? search.get('user') ?? 'default'
  const password = headers['x-clickhouse-key'] ?? search.get('password') ?? ''
  return { name: String(name), password: String(password) }
}

/** Compares digests, so that the time taken says nothing about the secret. */
function sameText(expected: string, given: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(expected), digest(given))
}

/** What a reader's request may choose: how the answer looks and how it is computed, never what is allowed. */
const READER_SETTINGS = new Set([
  'async_insert',
  'cast_keep_nullable',
  'date_time_input_format',
  'date_time_output_format',
  'do_not_merge_across_partitions_select_final',
  'enable_http_compression',
  'enable_named_columns_in_function_tuple',
  'extremes',
  'final',
  'format_csv_null_representation',
  'group_by_use_nulls',
  'join_algorithm',
  'join_use_nulls',
  'log_comment',
  'max_block_size',
  'max_threads',
  'optimize_aggregation_in_order',
  'optimize_move_to_prewhere',
  'optimize_read_in_order',
  'optimize_use_projections',
  'prefer_column_name_to_alias',
  'send_progress_in_http_headers',
  'session_timezone',
  'use_query_cache',
  'use_skip_indexes',
  'use_uncompressed_cache',
])

/** The engine settings of each reader's statement, as text. */
export function toLimitSettings(limits: ReaderLimits): ReadonlyMap<string, string> {
  return new Map([
    ['max_execution_time', String(limits.maxExecutionSeconds)],
    ['max_result_rows', String(limits.maxResultRows)],
    ['max_memory_usage', String(limits.maxMemoryBytes)],
    ['result_overflow_mode', 'throw'],
    ['timeout_overflow_mode', 'throw'],
  ])
}

/**
 * The reader's settings: the request's harmless ones, its limits where they are lower, the fixed limits elsewhere.
 * Throws code 164 for a raised limit and for every setting that is not listed.
 */
export function toReaderSettings(
  limits: ReadonlyMap<string, string>,
  requested: ReadonlyMap<string, string>,
): Map<string, string> {
  const settings = new Map(limits)
  for (const [name, value] of requested) {
    const limit = Number(limits.get(name))
    if (limits.get(name) === value) continue
    const lowered = Number(value) > 0 && (limit === 0 || Number(value) <= limit)
    if (!READER_SETTINGS.has(name) && !/^(input|output)_format_/.test(name) && !lowered) {
      throw readonlyViolation(`Cannot modify '${name}' setting in readonly mode.`)
    }
    settings.set(name, value)
  }
  return settings
}
