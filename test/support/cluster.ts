import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../../shared/free-port.ts'
import { startClusterDdl } from './cluster-ddl.ts'
import { type OwnClickHouse, startOwnClickHouse } from './own-clickhouse.ts'

export interface TestCluster {
  /** The settings that run the service on the first `shards` servers. */
  settings(shards: number): Readonly<Record<string, string>>
  /** Kills a server like a crash (SIGKILL), by its number from 1. */
  kill(shard: number): Promise<void>
  /** Restarts a stopped server on its data and its port; does nothing for a running one. */
  start(shard: number): Promise<void>
  stop(): Promise<void>
}

interface ClusterOptions {
  /** Creates replicated tables over a Keeper in each server's memory: they can be created, but not written to. */
  readonly replicated?: boolean
}

/** The name of the cluster of the first `shards` servers. */
const toClusterName = (shards: number) => `shards_${shards}`

/**
 * Real servers of one cluster, a shard each. For every number of servers there is a cluster of the first ones, so that
 * data can move from fewer shards to more. Distributed tables read and write over native TCP, as the initial user and
 * with that user's limits. The servers have no Keeper; `startClusterDdl` replaces it.
 */
export async function startCluster(servers: number, { replicated = false }: ClusterOptions = {}): Promise<TestCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'dao-data-cluster-'))
  const shards = Array.from({ length: servers }, (_, index) => index + 1)
  const ports: number[] = []
  for (const _ of shards) ports.push(await findFreePort())
  const startShard = (shard: number) =>
    startOwnClickHouse({
      dataDir: join(folder, String(shard)),
      tcpPort: Number(ports[shard - 1]),
      configuration: toConfiguration(shard, ports, replicated),
    })
  const nodes = await Promise.all(shards.map(startShard))
  const urls = () => nodes.map(({ url }) => url)
  const ddl = await startClusterDdl({
    first: () => String(urls()[0]),
    serversOf: (cluster) => urls().slice(0, shards.find((count) => toClusterName(count) === cluster) ?? 0),
    keepsReplicas: replicated,
  })
  return {
    settings: (count) => ({
      ...nodes[0]?.settings,
      CLICKHOUSE_URL: ddl.url,
      CLICKHOUSE_CLUSTER: toClusterName(count),
    }),
    kill: async (shard) => nodes[shard - 1]?.kill(),
    start: async (shard) => {
      if (nodes[shard - 1]?.hasEnded()) nodes[shard - 1] = await startShard(shard)
    },
    stop: async () => {
      await ddl.close()
      await Promise.all(nodes.map((node: OwnClickHouse) => node.stop()))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function toConfiguration(shard: number, ports: readonly number[], replicated: boolean): string {
  const shards = ports.map(
    (port) => `<shard><internal_replication>true</internal_replication>
      <replica><host>127.0.0.1</host><port>${port}</port></replica></shard>`,
  )
  const clusters = ports.map((_, index) => {
    const name = toClusterName(index + 1)
    return `<${name}><secret>secret of the cluster</secret>${shards.slice(0, index + 1).join('')}</${name}>`
  })
  return `<remote_servers>${clusters.join('')}</remote_servers>
    <macros><shard>${shard}</shard><replica>1</replica></macros>
    ${replicated ? '<zookeeper><implementation>testkeeper</implementation></zookeeper>' : ''}`
}
