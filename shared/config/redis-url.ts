import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'

/** Whether a URL names a Redis Cluster: `redis+cluster://host:6379?node=host:6379&node=...`, or `rediss+cluster`. */
export const isRedisCluster = (url: string): boolean => /^rediss?\+cluster:/.test(url)

/** The nodes that a cluster's URL names, the first before those in `node`, and how to log in to any of them. */
export function readClusterUrl(url: string) {
  const { protocol, host, username, password, searchParams } = new URL(url)
  const nodes = [host, ...searchParams.getAll('node')].map((address) => {
    const [, name = '', port = '6379'] = /^(.*?)(?::(\d+))?$/.exec(address) ?? []
    return { host: name.replace(/^\[|\]$/g, ''), port: Number(port) }
  })
  const login = {
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss+cluster:' ? { tls: toClusterTls(nodes.map(({ host: name }) => name)) } : {}),
  }
  return { nodes, login }
}

/**
 * A node that the cluster announces by name has to have a certificate of that name. One that is announced by address may have a
 * certificate of any name in the URL instead: certificates seldom hold addresses.
 */
function toClusterTls(names: readonly string[]) {
  return {
    checkServerIdentity: (host: string, certificate: PeerCertificate) => {
      const error = checkServerIdentity(host, certificate)
      const others = isIP(host) === 0 ? [] : names
      return others.some((name) => checkServerIdentity(name, certificate) === undefined) ? undefined : error
    },
  }
}
