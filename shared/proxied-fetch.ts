import type { Config } from './config/config.ts'

/** Sends one request through a proxy. */
export type Fetch = (url: URL, init: RequestInit) => Promise<Response>

/** Requests to this machine, such as to a local node, never use a proxy. */
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/** Returns a `fetch` with the proxies of the settings; undefined if there are none and the platform's own is used. */
export function createProxiedFetch({ http, https, none }: Config['proxy']): Fetch | undefined {
  if (http === undefined && https === undefined) return undefined
  const noProxy = none.trim() === '*' ? '*' : [none, ...LOOPBACK].join(',')
  // Loaded only if there is a proxy: the package needs 20 MB of memory.
  const loaded = import('undici').then((undici) => {
    const dispatcher = new undici.EnvHttpProxyAgent({
      httpProxy: http ?? '',
      httpsProxy: https ?? '',
      noProxy,
      proxyTunnel: false,
    })
    return { fetch: undici.fetch as unknown as ProxiedFetch, dispatcher }
  })
  return async (url, init) => {
    const { fetch: fetchThrough, dispatcher } = await loaded
    return fetchThrough(url, { ...init, dispatcher })
  }
}

/** The package's request and response types differ from the platform's, but behave alike. */
type ProxiedFetch = (url: URL, init: object) => Promise<Response>
