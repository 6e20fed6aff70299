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

/** Whether a cluster can be made here: a server and the tool that joins its nodes. */
export const canCluster = ['redis-server', 'redis-cli'].every((name) => spawnSync(name, ['--version']).status === 0)

const SLOTS = 16_384

/** A Redis Cluster of three masters on free ports; every slot is served when it resolves. */
export async function startRedisCluster(): Promise<RedisClusterServers> {
  const dir = mkdtempSync(join(tmpdir(), 'dao-data-redis-cluster-'))
  // By default nodes talk on a port 10,000 higher, which there need not be.
  const talkPorts = await Promise.all([0, 1, 2].map(() => findFreePort()))
  const nodes = await Promise.all(
    talkPorts.map((port, n) => {
      const settings = { 'cluster-enabled': 'yes', 'cluster-port': String(port) }
      return startRedis(join(dir, String(n)), { settings })
    }),
  )
  const ports = nodes.map(({ url }) => new URL(url).port)
  const cli = (port: string | undefined, ...args: string[]) =>
    execFileSync('redis-cli', ['-p', String(port), ...args], { encoding: 'utf8' })
  const [first, ...others] = ports
  ports.forEach((port, n) => {
    const range = [n, n + 1].map((part) => Math.floor((SLOTS * part) / ports.length))
    cli(port, 'cluster', 'addslotsrange', String(range[0]), String(Number(range[1]) - 1))
  })
  for (const [n, port] of others.entries()) cli(first, 'cluster', 'meet', '127.0.0.1', port, String(talkPorts[n + 1]))
  while (!ports.every((port) => isWhole(cli(port, 'cluster', 'info')))) await new Promise(setImmediate)
  const rest = others.map((port) => `node=127.0.0.1:${port}`).join('&')
  return {
    url: `redis+cluster://127.0.0.1:${first}?${rest}`,
    nodes,
    stop: async () => {
      await Promise.all(nodes.filter(({ child }) => child.exitCode === null).map((node) => node.stop()))
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

const isWhole = (info: string) => info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3')
