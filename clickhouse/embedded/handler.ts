import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { chooseEncoding } from './body.ts'
import { type Engine, type EngineResult, quoteText } from './engine.ts'
import { readonlyViolation } from './exception.ts'
import type { Lease, Leases } from './leases.ts'
import { type BodyLimits, type ClickHouseRequest, readRequest, removeInsertData } from './request.ts'
import { type ResponseHead, type Summary, sendStream, sendWhole } from './response.ts'
import { endPipe, openReader } from './result-pipe.ts'
import { refuseForReader } from './statement.ts'
import { authenticate, type Credentials, type Role, toReaderSettings } from './users.ts'

export type HandlerContext = {
  readonly engine: Engine
  readonly leases: Leases
  readonly pipes: readonly string[]
  readonly spoolDir: string
  readonly bodyLimits: BodyLimits
  readonly users: Readonly<Record<Role, Credentials>>
  readonly readerLimits: ReadonlyMap<string, string>
}

type Running = {
  readonly context: HandlerContext
  readonly request: ClickHouseRequest
  readonly settings: ReadonlyMap<string, string>
  readonly readonly: 0 | 1 | 2
  readonly response: ServerResponse
  readonly signal: AbortSignal
}

/** Answers one query request. Throws what has to be sent as an exception; `signal` is the client going away. */
export async function handleQuery(
  context: HandlerContext,
  incoming: IncomingMessage,
  response: ServerResponse,
  search: URLSearchParams,
  signal: AbortSignal,
): Promise<void> {
  const role = authenticate(context.users, incoming.headers, search)
  const request = await readRequest(incoming, search, join(context.spoolDir, randomUUID()), context.bodyLimits)
  try {
    response.setHeader('X-ClickHouse-Query-Id', request.queryId ?? randomUUID())
    const access = checkAccess(context, role, incoming.method, request)
    const lease = await context.leases.acquire(signal)
    try {
      const encoding = request.compress ? chooseEncoding(incoming.headers['accept-encoding']) : 'none'
      await answer({ context, request, response, signal, ...access }, lease, encoding)
    } finally {
      lease.release()
    }
  } finally {
    await removeInsertData(request.data)
  }
}

/** A reader is held by the list of statements, by its limits and by `readonly=1`; a GET by `readonly=2`. */
function checkAccess(
  context: HandlerContext,
  role: Role,
  method: string | undefined,
  request: ClickHouseRequest,
): { settings: ReadonlyMap<string, string>; readonly: 0 | 1 | 2 } {
  if (role === 'reader') {
    if (request.statement.kind !== 'rows') throw readonlyViolation('Cannot execute query in readonly mode.')
    refuseForReader(request.sql)
    return { settings: toReaderSettings(context.readerLimits, request.settings), readonly: 1 }
  }
  if (method !== 'GET') return { settings: request.settings, readonly: 0 }
  // The engine's read-only mode does not cover data that it reads from a file.
  if (request.statement.kind === 'insert') throw readonlyViolation('Cannot execute query in readonly mode.')
  return { settings: request.settings, readonly: 2 }
}

async function answer(running: Running, lease: Lease, encoding: ResponseHead['encoding']): Promise<void> {
  const { request, response } = running
  const { statement } = request
  switch (statement.kind) {
    case 'rows': {
      const head = { format: statement.format ?? request.defaultFormat, encoding }
      if (request.waitEndOfQuery) return answerFromFile(running, head)
      return answerThroughPipe(running, head, lease)
    }
    case 'insert': {
      const { path, encoding: compression } = request.data ?? { path: '/dev/null', encoding: 'none' }
      const clause = `FROM INFILE ${quoteText(path)} COMPRESSION '${compression}'`
      const result = await run(running, `${statement.head}\n${clause}\n${statement.tail}`)
      const summary = { written_rows: String(result.rows), elapsed_ns: toNanoseconds(result) }
      return sendWhole(response, { format: request.defaultFormat, encoding: 'none' }, summary, result.bytes)
    }
    case 'command': {
      const result = await run(running, statement.sql)
      const summary = { elapsed_ns: toNanoseconds(result) }
      return sendWhole(response, { format: request.defaultFormat, encoding: 'none' }, summary, result.bytes)
    }
  }
}

async function answerThroughPipe(running: Running, head: ResponseHead, lease: Lease): Promise<void> {
  const path = running.context.pipes[lease.slot]
  if (path === undefined) throw new Error(`there is no pipe for slot ${lease.slot}`)
  const reader = openReader(path)
  const finished = run(running, toOutputStatement(running.request, head, path)).then((result): Summary => {
    endPipe(path)
    return { result_rows: String(result.rows), elapsed_ns: toNanoseconds(result) }
  })
  // Without a reader the engine's blocked write fails at once, so that a stop is not held up by a full pipe.
  const onAbort = () => reader.destroy()
  running.signal.addEventListener('abort', onAbort, { once: true })
  try {
    await sendStream(running.response, head, reader, finished, running.signal)
  } finally {
    running.signal.removeEventListener('abort', onAbort)
    reader.destroy()
  }
}

/** `wait_end_of_query`: nothing is sent before the statement has succeeded, however large its result. */
async function answerFromFile(running: Running, head: ResponseHead): Promise<void> {
  const path = join(running.context.spoolDir, randomUUID())
  try {
    const result = await run(running, toOutputStatement(running.request, head, path))
    const summary: Summary = { result_rows: String(result.rows), elapsed_ns: toNanoseconds(result) }
    running.response.setHeader('X-ClickHouse-Summary', JSON.stringify(summary))
    await sendStream(running.response, head, createReadStream(path), Promise.resolve(summary), running.signal)
  } finally {
    await rm(path, { force: true })
  }
}

function toOutputStatement({ statement }: ClickHouseRequest, head: ResponseHead, path: string): string {
  if (statement.kind !== 'rows') throw new Error(`a ${statement.kind} has no result to send`)
  const tail = statement.format === undefined ? `FORMAT ${head.format}` : statement.tail
  return `${statement.head}\nINTO OUTFILE ${quoteText(path)} TRUNCATE COMPRESSION '${head.encoding}'\n${tail}`
}

function run({ context, request, settings, readonly, signal }: Running, sql: string): Promise<EngineResult> {
  const { database, parameters, defaultFormat } = request
  return context.engine.run({ sql, database, settings, parameters, format: defaultFormat, readonly, signal })
}

function toNanoseconds(result: EngineResult): string {
  return String(Math.round(result.elapsedSeconds * 1e9))
}
