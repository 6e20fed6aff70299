import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { z } from 'zod'
import { DataError, toReason } from '../errors.ts'
import { toJson } from '../json.ts'
import { type Database, probe } from '../store/store.ts'
import type { ShownMetrics } from '../telemetry/metrics.ts'

/** Dependencies of a process by name; each check throws if its dependency is unavailable. */
export type Checks = Readonly<Record<string, () => Promise<unknown>>>

/** State of a process on its operations port. */
interface OpsState {
  readonly checks: Checks
  /** An additional listener for all requests below one path, such as the dashboard of the queues. */
  readonly pages?: { readonly path: string; readonly listener: RequestListener }
}

export interface OpsOptions extends OpsState {
  readonly registry: ShownMetrics
  readonly host: string
  /** Names with a dot that a request may have in its Host header. */
  readonly hosts?: readonly string[]
  /** 0 turns the server off. */
  readonly port: number
  /** The setting with the port, for the message if the port is taken. */
  readonly setting: string
}

export interface OpsServer {
  readonly port: number
  /** Replaces the checks and pages. */
  setState(newState: OpsState): void
  close(): Promise<void>
}

const CHECK_TIMEOUT_MS = 3_000

/**
 * Serves a process's operations port, which is separate from the public one. `/metrics` is for Prometheus.
 * `/health/live` shows that the process responds. `/health/ready` answers 503 with the reason of each failed check.
 * @returns undefined if the port is 0.
 * @throws DataError `config` with the setting's name if the port is taken.
 */
export async function startOpsServer(options: OpsOptions): Promise<OpsServer | undefined> {
  if (options.port === 0) return undefined
  let state: OpsState = options
  const server = createServer(toListener(options, () => state))
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(toListenError(error, options)))
    server.listen(options.port, options.host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    setState: (newState) => {
      state = newState
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function toListenError(error: NodeJS.ErrnoException, { setting, host, port }: OpsOptions): Error {
  if (error.code !== 'EADDRINUSE') return error
  return new DataError('config', `${setting}: port ${port} of ${host} is taken: name another, or 0 for none`)
}

/**
 * Whether to accept a Host header. In a DNS rebinding attack, a browser page resolves its public name to this machine
 * and reads the responses. Public names have a dot; names of containers and of machines in a local network have none.
 */
function isOwnHost(header: string | undefined, { host, hosts = [] }: Pick<OpsOptions, 'host' | 'hosts'>): boolean {
  const name = header?.replace(/:\d*$/, '').toLowerCase()
  if (name === undefined || name === host || hosts.includes(name)) return true
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || /^[\w-]+$/.test(name)
}

function toListener(options: OpsOptions, readState: () => OpsState): RequestListener {
  const { registry } = options
  return (request, response) => {
    const { host } = request.headers
    if (!isOwnHost(host, options)) {
      const error = `Host ${JSON.stringify(host?.slice(0, 60))} is not allowed here: set OPS_HOSTS, or use the address`
      return sendJson(response, 403, { error })
    }
    const { checks, pages } = readState()
    const path = request.url?.split('?')[0] ?? '/'
    if (path === '/health/live') sendJson(response, 200, { status: 'ok' })
    else if (path === '/health/ready') void sendReadiness(response, checks)
    else if (path === '/metrics') {
      registry.metrics().then(
        (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
        (error: unknown) => sendJson(response, 500, { error: toReason(error) }),
      )
    } else if (pages !== undefined && (path === pages.path || path.startsWith(`${pages.path}/`))) {
      pages.listener(request, response)
    } else sendJson(response, 404, { error: 'there are /metrics, /health/live and /health/ready' })
  }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function sendReadiness(response: ServerResponse, checks: Checks): Promise<void> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [name, await toResult(check)] as const),
  )
  const ready = results.every(([, result]) => result === 'ok')
  sendJson(response, ready ? 200 : 503, { status: ready ? 'ready' : 'not ready', ...Object.fromEntries(results) })
}

/** A check that does not respond in time fails, so that the request never waits for it. */
async function toResult(check: () => Promise<unknown>): Promise<string> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no answer within ${CHECK_TIMEOUT_MS} ms`), CHECK_TIMEOUT_MS)
  })
  try {
    return await Promise.race([check().then(() => 'ok'), late])
  } catch (error) {
    return toReason(error)
  } finally {
    clearTimeout(timer)
  }
}

/** Checks that ClickHouse responds. */
export function toDatabaseCheck(db: Database): () => Promise<unknown> {
  return () => probe(db, { signal: AbortSignal.timeout(CHECK_TIMEOUT_MS) })
}

/**
 * The space for new rows in bytes: of the tables' storage policy with the least, on its disk with the most. Space that is
 * kept free or reserved for merges does not count.
 */
const SPACE = `SELECT min(space) AS space FROM
(
  SELECT policy_name, max(d.unreserved_space) AS space
  FROM (SELECT policy_name, arrayJoin(disks) AS disk FROM system.storage_policies) AS p
  INNER JOIN system.disks AS d ON d.name = p.disk
  WHERE policy_name IN (SELECT storage_policy FROM system.tables WHERE database = currentDatabase())
  GROUP BY policy_name
)`

/** ClickHouse reserves this space for an insert of any size, and refuses the insert without it. */
const INSERT_BYTES = 1_048_576

/** Null in a database without tables. */
const spaceRow = z.object({ space: z.number().nullable() })

/** Checks that ClickHouse responds and has space for an insert. */
export function toInsertCheck(db: Database): () => Promise<unknown> {
  return async () => {
    const answer = await probe(db, { sql: SPACE, signal: AbortSignal.timeout(CHECK_TIMEOUT_MS) })
    const { space } = spaceRow.parse(toJson(answer))
    if (space === null || space >= INSERT_BYTES) return
    const next = 'free space there; jobs continue then'
    throw new DataError('storage', `ClickHouse's disk is full (${space} bytes left), so no insert works: ${next}`)
  }
}
