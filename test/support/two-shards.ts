import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SHARDED } from '../../clickhouse/cluster/sharding.ts'
import { createEmbeddedClickHouse } from '../../clickhouse/embedded.ts'
import { announceReady, isMain, onStopSignal, runProgram } from '../../shared/process.ts'
import { toLocal } from '../../shared/store/topology.ts'

/** The name of the cluster that `two-shards` knows. */
export const CLUSTER = 'two'

/**
 * Two shards of a cluster in one embedded engine, behind its HTTP interface. The engine reads and writes both shards of a
 * distributed table by itself, as a server does with those that it holds; both find the same tables, so a filter on every
 * read leaves each shard the rows that the sharding key gives it. What the engine has no server for is left out of DDL:
 * `ON CLUSTER`, and with `replicated` unset the replication; `replicated` keeps it, over a Keeper in memory, which is
 * enough to make such tables and not to write to them.
 */
async function main(): Promise<void> {
  const replicated = process.argv.includes('--replicated')
  const dataDir = mkdtempSync(join(tmpdir(), 'dao-data-two-shards-'))
  const configFile = join(dataDir, 'config.xml')
  writeFileSync(configFile, CONFIG)
  const user = { name: 'writer', password: '' }
  const users = { writer: user, reader: { name: 'reader', password: '' } }
  const embedded = await createEmbeddedClickHouse({ dataDir: join(dataDir, 'data'), configFile, users })
  const front = createServer(async (incoming, response) => {
    const body = await readBody(incoming)
    const url = new URL(incoming.url ?? '/', embedded.url)
    const sql = isText(incoming) ? body.toString() : ''
    const text = replicated ? withoutCluster(sql) : withoutReplicas(withoutCluster(sql))
    url.searchParams.set('prefer_localhost_replica', '1')
    if (!isDataInsert(url, sql)) url.searchParams.set('additional_table_filters', toFilters(url))
    const headers = { ...incoming.headers, ...(sql === '' ? {} : { 'content-length': Buffer.byteLength(text) }) }
    delete headers['transfer-encoding']
    const forwarded = send(url, { method: incoming.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    forwarded.on('error', (error) => response.destroy(error))
    response.on('close', () => forwarded.destroy())
    forwarded.end(sql === '' ? body : text)
  })
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  onStopSignal(async () => {
    front.closeAllConnections()
    front.close()
    await embedded.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  announceReady({ url: `http://127.0.0.1:${(front.address() as AddressInfo).port}` })
}

async function readBody(incoming: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const SHARD = `<shard><internal_replication>true</internal_replication>
  <replica><host>127.0.0.1</host><port>9000</port></replica></shard>`

const CONFIG = `<clickhouse>
  <tcp_port>9000</tcp_port>
  <zookeeper><implementation>testkeeper</implementation></zookeeper>
  <macros><shard>1</shard><replica>1</replica></macros>
  <remote_servers><${CLUSTER}>${SHARD}${SHARD}</${CLUSTER}></remote_servers>
</clickhouse>`

const isText = ({ headers }: IncomingMessage) =>
  headers['content-encoding'] === undefined && !String(headers['content-type']).startsWith('multipart')

/** Only a statement that stands in the body whole can read a table. */
const isDataInsert = (url: URL, sql: string) => url.searchParams.has('query') || /^\s*INSERT INTO \S+ FORMAT/.test(sql)

const withoutCluster = (sql: string) => sql.replaceAll(` ON CLUSTER '${CLUSTER}'`, '')

const withoutReplicas = (sql: string) =>
  sql.replace(/Replicated(\w+)\('[^']*', '\{replica\}'(?:, )?([^)]*)\)/g, (_, family, args) => `${family}(${args})`)

/** Per table of a node, which rows are on the shard that reads. */
function toFilters(url: URL): string {
  const database = url.searchParams.get('database')
  const entries = [...SHARDED].flatMap(([table, column]) =>
    [table, `${table}_rebuild`].map(
      (name) => `'${database}.${toLocal(name)}':'cityHash64(${column}) % 2 = shardNum() - 1'`,
    ),
  )
  return `{${entries.join(',')}}`
}

if (isMain(import.meta.url)) runProgram(main)
