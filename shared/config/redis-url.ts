/** Whether a URL names a Redis Cluster: `redis+cluster://host:6379?node=host:6379&node=...`, or `rediss+cluster`. */
export const isRedisCluster = (url: string): boolean => /^rediss?\+cluster:/.test(url)

/** The nodes that a cluster's URL names, the first before those in `node`, and how to log in to any of them. */
export function readClusterUrl(url: string) {
  const { protocol, host, username, password, searchParams } = new URL(url)
  const nodes = [host, ...searchParams.getAll('node')].map((address) => {
    const [, name = '', port = '6379'] = /^(.*?)(?::(\d+))?$/.exec(address) ?? []
    return { host: name, port: Number(port) }
  })
  const login = {
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss+cluster:' ? { tls: {} } : {}),
  }
  return { nodes, login }
}
