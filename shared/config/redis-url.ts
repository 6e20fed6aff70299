import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'

/** Whether a URL names a Redis Cluster: `redis+cluster://host:6379?node=host:6379&node=...`, or `rediss+cluster`. */
export const isRedisCluster = (url: string): boolean => /^rediss?\+cluster:/.test(url)

/** The nodes of a cluster's URL, its host before those in `node`, and the login for all of them. */
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
 * If the cluster announces a node by name, its certificate must have that name. If it announces an address, a
 * certificate for any host name in the URL is accepted, because certificates seldom contain addresses.
 */
function toClusterTls(names: readonly string[]) {
  return {
    checkServerIdentity: (host: string, certificate: PeerCertificate) => {
      const error = checkServerIdentity(host, certificate)
      const acceptedNames = isIP(host) === 0 ? [] : names
      return acceptedNames.some((name) => checkServerIdentity(name, certificate) === undefined) ? undefined : error
    },
  }
}
