import { type ClientRequest, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { toReason } from '../../shared/errors.ts'

export interface ClusterDdl {
  readonly url: string
  close(): Promise<void>
}

interface DdlOptions {
  /**
   * The addresses of a cluster's servers. The first server of all clusters gets every request except DDL for a cluster.
   */
  readonly serversOf: (cluster: string) => readonly string[]
  readonly first: () => string
  /** Keeps replicated engines unchanged. */
  readonly keepsReplicas: boolean
}

/**
 * Replaces the DDL queue of a cluster's servers in Keeper, for servers without a Keeper. Removes `ON CLUSTER 'name'`
 * from a statement and runs it on each server of the cluster; it fails if it fails on any server. Replicated engines
 * become the plain ones of their family. All other requests are forwarded unchanged to the first server: statements,
 * rows, settings, headers, and the client's disconnect. One setting is added: the server reads its own shard directly.
 * Through its native port it would reset the connection when another shard fails, and the engine, which is
 * `clickhouse-local` here, ends its process when a native connection is reset.
 */
export async function startClusterDdl(options: DdlOptions): Promise<ClusterDdl> {
  // A client after a busy period must not use a connection that is being closed.
  const server = createServer({ keepAliveTimeout: 75_000 }, (incoming, response) => {
    void serve(incoming, response, options).catch((error: unknown) => response.destroy(error as Error))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const DDL = /^\s*(CREATE|ALTER|DROP|EXCHANGE|SYSTEM)\s/

async function serve(incoming: IncomingMessage, response: ServerResponse, options: DdlOptions): Promise<void> {
  // If the URL contains the statement, the body contains rows.
  const hasStatement = new URL(incoming.url ?? '/', 'http://server').searchParams.has('query')
  const head = hasStatement || incoming.method !== 'POST' ? null : await readHead(incoming)
  if (head !== null) incoming.unshift(head)
  if (head === null || !DDL.test(head.toString())) return passOn(incoming, response, options.first())
  const sql = await text(incoming)
  const cluster = / ON CLUSTER '(\w+)'/.exec(sql)?.[1]
  const servers = cluster === undefined ? [options.first()] : options.serversOf(cluster)
  const statement = cluster === undefined ? sql : toPlain(sql, cluster, options.keepsReplicas)
  const answers = await Promise.all(servers.map((url) => run(incoming, url, statement).catch(toFailure(url))))
  const result = answers.find(({ status }) => status !== 200) ?? answers[0]
  if (result === undefined) throw new Error(`no server is in the cluster ${cluster}`)
  response.writeHead(result.status, result.headers).end(result.body)
}

/** The first bytes of a body; null for an empty one. */
async function readHead(incoming: IncomingMessage): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const readChunk = () => {
      const bytes = incoming.read() as Buffer | null
      if (bytes === null && !incoming.readableEnded) return
      incoming.off('readable', readChunk).off('end', readChunk)
      resolve(bytes)
    }
    incoming.on('readable', readChunk).once('end', readChunk).once('error', reject)
  })
}

function toPlain(sql: string, cluster: string, keepsReplicas: boolean): string {
  const statement = sql.replace(` ON CLUSTER '${cluster}'`, '')
  if (keepsReplicas) return statement
  return statement.replace(
    /\bReplicated(\w*MergeTree)\('[^']*', '\{replica\}'(?:, )?([^)]*)\)/g,
    (_, family: string, args: string) => `${family}(${args})`,
  )
}

/** A new connection per request, because a pooled one may belong to a killed server. */
const send = (
  { method, url }: { method?: string | undefined; url?: string | undefined },
  server: string,
  headers: IncomingMessage['headers'],
): ClientRequest => request(new URL(url ?? '/', server), { method, headers, agent: false })

function passOn(incoming: IncomingMessage, response: ServerResponse, server: string): void {
  const url = incoming.url?.replace('prefer_localhost_replica=0', 'prefer_localhost_replica=1')
  const forwarded = send({ method: incoming.method, url }, server, incoming.headers)
  forwarded.on('response', (answer) => {
    response.writeHead(answer.statusCode ?? 500, answer.headers)
    pipeline(answer, response, () => forwarded.destroy())
  })
  response.on('close', () => forwarded.destroy())
  pipeline(incoming, forwarded, (error) => {
    if (error) response.destroy()
  })
}

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** The response for a server that did not respond, with its address and the reason. */
const toFailure = (server: string) => (error: unknown) => {
  return { status: 502, headers: {}, body: Buffer.from(`no answer from ${server}: ${toReason(error)}`) }
}

function run(incoming: IncomingMessage, server: string, statement: string): Promise<Answer> {
  const { 'transfer-encoding': _, ...headers } = incoming.headers
  return new Promise((resolve, reject) => {
    const forwarded = send(incoming, server, { ...headers, 'content-length': String(Buffer.byteLength(statement)) })
    forwarded.on('error', reject)
    forwarded.on('response', (answer) => {
      const { 'transfer-encoding': __, ...own } = answer.headers
      buffer(answer).then((body) => resolve({ status: Number(answer.statusCode), headers: own, body }), reject)
    })
    forwarded.end(statement)
  })
}
