import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../../shared/free-port.ts'
import { type RedisServer, startRedis } from '../../tools/redis-server.ts'

export interface RedisClusterServers {
  readonly url: string
  readonly nodes: readonly RedisServer[]
  stop(): Promise<void>
}

/** Whether this machine can start a cluster: it needs the server and the tool that joins nodes. */
export const canCluster = ['redis-server', 'redis-cli'].every((name) => spawnSync(name, ['--version']).status === 0)

const SLOTS = 16_384

export interface ClusterTls {
  /** Files of the self-signed certificate and of its key. */
  readonly certificate: string
  readonly key: string
  /** How nodes are announced to clients: as `localhost` or as 127.0.0.1. */
  readonly announced: 'hostname' | 'ip'
}

const toTlsSettings = ({ certificate, key, announced }: ClusterTls, port: number) => ({
  port: '0',
  'tls-port': String(port),
  'tls-cert-file': certificate,
  'tls-key-file': key,
  'tls-ca-cert-file': certificate,
  'tls-auth-clients': 'no',
  'tls-cluster': 'yes',
  'tls-replication': 'yes',
  'cluster-announce-hostname': 'localhost',
  'cluster-preferred-endpoint-type': announced,
})

/**
 * Starts a Redis Cluster of three masters on free ports; resolves when every slot is served. With TLS, clients must use
 * TLS, and the nodes' plain URLs do not work.
 */
export async function startRedisCluster(tls?: ClusterTls): Promise<RedisClusterServers> {
  const dir = mkdtempSync(join(tmpdir(), 'dao-data-redis-cluster-'))
  // The default bus port is 10,000 above the client port, which may be invalid.
  const talkPorts = await Promise.all([0, 1, 2].map(() => findFreePort()))
  const nodes = await Promise.all(
    talkPorts.map(async (talkPort, n) => {
      const port = await findFreePort()
      const settings = {
        'cluster-enabled': 'yes',
        'cluster-port': String(talkPort),
        ...(tls === undefined ? {} : toTlsSettings(tls, port)),
      }
      return startRedis(join(dir, String(n)), { port, settings })
    }),
  )
  const ports = nodes.map(({ url }) => new URL(url).port)
  const tlsArguments = tls === undefined ? [] : ['-h', 'localhost', '--tls', '--cacert', tls.certificate]
  const cli = (port: string | undefined, ...args: string[]) =>
    execFileSync('redis-cli', [...tlsArguments, '-p', String(port), ...args], { encoding: 'utf8' })
  const [first, ...restOfAll] = ports
  ports.forEach((port, n) => {
    const range = [n, n + 1].map((part) => Math.floor((SLOTS * part) / ports.length))
    cli(port, 'cluster', 'addslotsrange', String(range[0]), String(Number(range[1]) - 1))
  })
  for (const [n, port] of restOfAll.entries())
    cli(first, 'cluster', 'meet', '127.0.0.1', port, String(talkPorts[n + 1]))
  while (!ports.every((port) => isComplete(cli(port, 'cluster', 'info')))) await new Promise(setImmediate)
  const [scheme, host] = tls === undefined ? ['redis', '127.0.0.1'] : ['rediss', 'localhost']
  const rest = restOfAll.map((port) => `node=${host}:${port}`).join('&')
  return {
    url: `${scheme}+cluster://${host}:${first}?${rest}`,
    nodes,
    stop: async () => {
      await Promise.all(nodes.filter(({ child }) => child.exitCode === null).map((node) => node.stop()))
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

const isComplete = (info: string) => info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3')
