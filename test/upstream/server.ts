import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Chain } from './chain.ts'
import { control } from './control.ts'
import { type Plan, type Provider, type Reply, textReply, type UpstreamRequest } from './exchange.ts'
import { actOut, createFaults, type FaultControl, type FaultSwitch, sendReply } from './faults.ts'
import { type Markets, toOwnMarket } from './own-markets.ts'
import { coingecko } from './providers/coingecko.ts'
import { coinmarketcap } from './providers/coinmarketcap.ts'
import { defillama } from './providers/defillama.ts'
import { defillamaCoins } from './providers/defillama-coins.ts'
import { discord } from './providers/discord.ts'
import { binplorer, ethplorer } from './providers/ethplorer.ts'
import { blockscout, etherscan } from './providers/explorers.ts'
import { goldrush } from './providers/goldrush.ts'
import { moralis } from './providers/moralis.ts'
import { rpc } from './providers/rpc.ts'
import { snapshot } from './providers/snapshot.ts'
import { telegram, telegramBot } from './providers/telegram.ts'
import { x } from './providers/x.ts'
import { createRateLimit, FREE_PLANS, type Limits } from './rate-limit.ts'
import { createRecordedWorld } from './recorded.ts'
import { createRequestLog, type RequestLog, type RequestRecorder } from './request-log.ts'
import { createSimulatedWorld } from './simulated.ts'
import type { WorldRegistry } from './world.ts'

/** All providers of the stand-in. Each is mounted under `/<name>`, and for a past time `ms` under `/at/<ms>/<name>`. */
const PROVIDERS = [
  coinmarketcap,
  coingecko,
  defillama,
  defillamaCoins,
  moralis,
  ethplorer,
  binplorer,
  x,
  discord,
  telegram,
  telegramBot,
  snapshot,
  rpc,
  goldrush,
  etherscan,
  blockscout,
] as const satisfies readonly Provider[]

export interface UpstreamOptions {
  readonly registry: WorldRegistry
  /** 0, the default, selects a free port. */
  readonly port?: number
  readonly host?: string
  readonly seed?: number
  /** Folder of recorded data; without it the world is simulated. */
  readonly dataDir?: string | null
  /** The world's clock in Unix milliseconds. */
  readonly now?: () => number
  readonly limits?: Limits
  /** The plan of the providers' keys; `open` by default. */
  readonly plan?: Plan
  /** Whether providers agree on prices; by default they do. */
  readonly markets?: Markets
  /** Replaces the world's chains, by slug. */
  readonly chains?: Readonly<Record<string, Chain>>
}

export interface Upstream {
  /** `http://host:port`; a provider's base URL is this with `/<provider>`. */
  readonly url: string
  readonly port: number
  readonly faults: FaultControl
  readonly requests: RequestLog
  close(): Promise<void>
}

/** Starts a local server that responds in the providers' wire formats. */
export async function createUpstream(options: UpstreamOptions): Promise<Upstream> {
  const { port = 0, host = '127.0.0.1' } = options
  const faults = createFaults()
  const requests = createRequestLog()
  const respond = createResponder(options, faults, requests)
  const server = createServer((incoming, response) => {
    respond(incoming, response).catch((error: unknown) => {
      console.error('upstream stand-in failed on', incoming.url, error)
      response.destroy()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
  const address = server.address() as AddressInfo
  return {
    url: `http://${host}:${address.port}`,
    port: address.port,
    faults,
    requests,
    close() {
      const closed = new Promise<void>((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()))
      })
      server.closeAllConnections()
      return closed
    },
  }
}

type Respond = (incoming: IncomingMessage, response: ServerResponse) => Promise<void>

function createResponder(options: UpstreamOptions, faults: FaultSwitch, requests: RequestRecorder): Respond {
  const { registry, seed = 1, dataDir = null, now = Date.now, limits = {}, plan = 'open', chains = {} } = options
  const { markets = 'agreeing' } = options
  const found = dataDir === null ? createSimulatedWorld(registry, seed) : createRecordedWorld(registry, dataDir)
  const world = { ...found, chain: (slug: string) => chains[slug] ?? found.chain(slug) }
  const worlds = new Map(
    PROVIDERS.map(({ name }) => [name, markets === 'differing' ? toOwnMarket(world, name) : world]),
  )
  const overLimit = createRateLimit(plan === 'free' ? { ...FREE_PLANS, ...limits } : limits)

  async function answer(provider: Provider, request: UpstreamRequest): Promise<Reply> {
    const over = overLimit(provider.name, request.now)
    if (over === 'day' && provider.exhausted !== undefined) return provider.exhausted()
    if (over !== null) return provider.failure(429, request.now)
    return provider.handle(request, worlds.get(provider.name) ?? world)
  }
  return async (incoming, response) => {
    const url = new URL(incoming.url ?? '/', 'http://upstream')
    const body = await text(incoming)
    const method = incoming.method ?? 'GET'
    const own = control(method, url.pathname, body, { faults, requests })
    if (own) return sendReply(response, own)
    const [, time, mounted = url.pathname] = /^\/at\/(\d+)(\/.*)$/.exec(url.pathname) ?? []
    const provider = PROVIDERS.find(({ name }) => mounted.startsWith(`/${name}/`))
    if (!provider) return sendReply(response, textReply('No such provider', 404))

    const path = mounted.slice(provider.name.length + 1)
    const { searchParams: query } = url
    const at = time === undefined ? now() : Number(time)
    const request = { method, path, query, headers: incoming.headers, body, now: at, plan }
    requests.record(provider.name, path)
    const fault = faults.take(provider.name, path + url.search)
    if (fault) return actOut(fault, provider, request, response, () => answer(provider, request))
    sendReply(response, await answer(provider, request))
  }
}
