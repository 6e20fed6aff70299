import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { connect, type Socket } from 'node:net'

/** The behaviour of a hostile client. */
interface Attack {
  readonly name: string
  /** Starts the attack and returns a function that ends it. */
  begin(url: URL): Promise<() => void>
}

/** Results of another client's requests for a cached response during an attack. */
export interface HostileResult {
  readonly name: string
  readonly requests: number
  /** Requests without status 200. */
  readonly failures: number
  readonly p50: number
  readonly p95: number
}

/** Served from memory after the first request, without a store. */
const CACHED = '/data/categories'
/** The other client's address. Limits and queues must distinguish it from the attacker's, which is 127.0.0.1. */
const SECOND_ADDRESS = '127.0.0.2'

async function join(url: URL, count: number, toBytes: (socket: Socket) => string): Promise<() => void> {
  const sockets = Array.from({ length: count }, () =>
    connect({ port: Number(url.port), host: url.hostname, localAddress: '127.0.0.1' }).on('error', () => {}),
  )
  await Promise.all(
    sockets.map(async (socket) => {
      // A rejected connection ends before it is used.
      await Promise.race([once(socket, 'connect'), once(socket, 'close')])
      socket.resume().write(toBytes(socket))
    }),
  )
  return () => {
    for (const socket of sockets) socket.destroy()
  }
}

const head = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`

/** Sends requests on some connections, each time that the response before has begun. */
const repeatEach = (toHead: (count: number) => string, connections: number) => (url: URL) => {
  let count = 0
  return join(url, connections, (socket) => {
    socket.on('data', (bytes) => {
      if (bytes.includes('HTTP/1.1 ')) socket.write(toHead(count++))
    })
    return toHead(count++)
  })
}

const repeat = (path: string, connections: number) => repeatEach(() => head(path), connections)

const toUnknownFilters = () => {
  const filters = Array.from({ length: 10 }, (_, index) => `filter=financialData.percentChanges${index}d>1`)
  return `/data/tokens?${filters.join('&')}`
}

const LARGE = `X-Large: ${'x'.repeat(31_000)}\r\n`
const BEHIND_STREAM = {
  large: head('/data/stream') + head('/data/tokens', LARGE).repeat(20),
  small: head('/data/stream') + head('/health/live').repeat(4_000),
}

/** Attacks that fill the memory of a process without limits on pending data. */
export const MEMORY_ATTACKS: readonly Attack[] = [
  { name: 'large requests behind a stream', begin: (url) => join(url, 400, () => BEHIND_STREAM.large) },
  { name: 'thousands of small requests behind a stream', begin: (url) => join(url, 400, () => BEHIND_STREAM.small) },
  { name: 'incomplete heads', begin: (url) => join(url, 3_000, () => `GET / HTTP/1.1\r\nHost: a\r\n${LARGE.trim()}`) },
  { name: 'idle connections', begin: (url) => join(url, 3_000, () => '') },
]

/** Attacks that keep the event loop busy if the work for one request is not bounded. */
export const WORK_ATTACKS: readonly Attack[] = [
  { name: 'a list of commas', begin: repeat(`/data/tokens?id=${','.repeat(31_000)}`, 16) },
  { name: 'thousands of parameters', begin: repeat(`/data/tokens?${'a&'.repeat(15_500)}`, 16) },
  { name: 'unknown members in ten filters', begin: repeat(toUnknownFilters(), 16) },
  { name: 'an unknown parameter', begin: repeat('/data/tokens?nmae=a', 16) },
]

/** What the requests of `toCostAttacks` are about. */
interface Targets {
  readonly tokens: readonly string[]
  /** Paths of large files of the page. */
  readonly files: readonly string[]
  /** Unix milliseconds. */
  readonly now: number
}

const FLOOD_CONNECTIONS = 64

/** Attacks whose single requests cost much: pictures, files without compression, compression, publication, long ranges. */
export function toCostAttacks({ tokens, files, now }: Targets): readonly Attack[] {
  const since = (days: number) => new Date(now - days * 86_400_000).toISOString()
  const pick = (values: readonly string[], count: number) => values[count % values.length] ?? ''
  const prices = (count: number) =>
    `/data/tokens/historic-financial?id=${pick(tokens, count)}&interval=5m&start=${since(30)}`
  const weekOf = (count: number) => `&start=${since(7 * (2 + (count % 6)))}&end=${since(7 * (1 + (count % 6)))}`
  const toAttack = (name: string, toHead: (count: number) => string): Attack => ({
    ...{ name, begin: repeatEach(toHead, FLOOD_CONNECTIONS) },
  })
  return [
    toAttack('pictures of all tokens', (count) => head(`/og/tokens/${pick(tokens, count)}.png`)),
    ...(files.length === 0 ? [] : [toAttack('large files without compression', (count) => head(pick(files, count)))]),
    toAttack('compression with br', (count) => head(prices(count), 'Accept-Encoding: br\r\n')),
    toAttack('HEAD of Parquet', (count) =>
      head(`${prices(count)}${weekOf(count)}&format=parquet`.replace(`&start=${since(30)}`, '')).replace('GET', 'HEAD'),
    ),
    toAttack('coverage since 2022', () => head('/data/status/coverage?dataset=prices&start=2022-01-01')),
    toAttack('like-for-like market cap', (count) =>
      head(`/data/aggregated/market-cap?basis=like-for-like&start=${since(365 + count)}`),
    ),
  ]
}

/** One request of the other client: its status, 0 without a response, and its milliseconds. */
function request(url: URL, agent: Agent): Promise<{ status: number; ms: number }> {
  const since = performance.now()
  return new Promise((resolve) => {
    const end = (status: number) => resolve({ status, ms: performance.now() - since })
    get({ host: url.hostname, port: url.port, path: CACHED, localAddress: SECOND_ADDRESS, agent }, (response) => {
      response.resume().once('end', () => end(response.statusCode ?? 0))
    }).once('error', () => end(0))
  })
}

const quantile = (sorted: readonly number[], share: number) =>
  Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 10) / 10

/** Runs attacks one after the other. During each, another client requests a cached response, one at a time. */
export async function runHostile(options: {
  readonly url: string
  readonly attacks: readonly Attack[]
  readonly requests: number
}): Promise<HostileResult[]> {
  const url = new URL(options.url)
  const results: HostileResult[] = []
  for (const { name, begin } of options.attacks) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    await request(url, agent)
    const end = await begin(url)
    const times: number[] = []
    let failures = 0
    for (let count = 0; count < options.requests; count += 1) {
      const { status, ms } = await request(url, agent)
      times.push(ms)
      if (status !== 200) failures += 1
    }
    end()
    agent.destroy()
    const sorted = times.toSorted((a, b) => a - b)
    results.push({ name, requests: times.length, failures, p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95) })
  }
  return results
}
