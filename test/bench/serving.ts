import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import autocannon from 'autocannon'
import { createApiServer } from '../../api/server.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { startRedis } from '../../tools/redis-server.ts'
import { createHandFeed, emptyLog } from '../support/api.ts'
import { storeMarket } from '../support/market.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { measureAssembled } from './assembled.ts'
import { atLeast, atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { measureLongSeries } from './long-series.ts'
import { compare, compareWithItself, type Side } from './measure.ts'
import { readCpuSeconds, readResidentBytes } from './processes.ts'

const LIST = '/data/tokens?limit=10'
const STEP = 300_000
const CONNECTIONS = 32
const ROUNDS = 7

interface Running {
  readonly url: string
  readonly pid: number
}

interface Sizes {
  readonly requests: number
  readonly slowRequests: number
  /** Points of a year and of a complete history, five minutes apart. */
  readonly year: number
  readonly long: number
}

const FULL: Sizes = { requests: 40_000, slowRequests: 1_000, year: 105_120, long: 500_000 }
const SMALL: Sizes = { requests: 2_000, slowRequests: 100, year: 12_000, long: 30_000 }

export const serving: Benchmark = {
  name: 'serving',
  about: 'Answers of a separate API process, cached and from the engine, against simpler servers with the same bytes.',
  run: (context) => withEngine((engine) => withDatabase(engine, 'serving', (database) => measure(context, database))),
}

async function measure({ quick, say }: BenchContext, database: BenchDatabase): Promise<Findings> {
  const sizes = quick ? SMALL : FULL
  const tokens = database.registry.tokens.filter(({ live }) => live)
  const now = Math.floor(Date.now() / STEP) * STEP
  const [long, ...rest] = tokens as [Token, ...Token[]]
  const years = rest.slice(0, ROUNDS + 2)
  say('storing prices')
  await storeMarket(database.db, { keys: tokens.map(({ key }) => key), until: now, points: 12, stepMs: STEP })
  await storeMarket(database.db, { keys: years.map(({ key }) => key), until: now, points: sizes.year, stepMs: STEP })
  await storeMarket(database.db, { keys: [long.key], until: now, points: sizes.long, stepMs: STEP })
  await database.db.command({ name: 'merge', sql: 'OPTIMIZE TABLE token_prices FINAL' })
  const processes = await startProcesses(database)
  try {
    const { api, uncached } = processes
    const series = { ...{ database, now, years, long, sizes }, rounds: ROUNDS, api: api.url, uncached: uncached.url }
    const rows = [
      ...(await measureLists(processes, sizes, say)),
      await measureCold(database, now),
      ...(await measureAssembled({
        database,
        now,
        url: processes.api.url,
        tokens: years,
        days: Math.floor(sizes.year / 288),
      })),
      ...(await measureLongSeries(series, say)),
    ]
    const memory = (name: string, { pid }: Running) => `${name} ${(readResidentBytes(pid) / 2 ** 20).toFixed(0)} MB`
    return {
      rows,
      notes: [
        `Kept answers are measured by the server's processor time a request (autocannon, ${CONNECTIONS} connections), because the client and the server share the machine; a request a CPU second is a request a second where the server has a core for itself.`,
        `Memory at the end: ${memory('API', processes.api)}, ${memory('API without a cache', processes.uncached)}.`,
      ],
    }
  } finally {
    await processes.stop()
  }
}

/** The API with and without a cache, and its peers. */
async function startProcesses({ config }: BenchDatabase) {
  const folder = await mkdtemp(join(tmpdir(), 'bench-redis-'))
  const redis = await startRedis(folder)
  const children: Child[] = []
  const start = async (name: string, file: string, env: NodeJS.ProcessEnv, args: readonly string[] = []) => {
    const child = startChild(name, join(import.meta.dirname, file), env, args)
    children.push(child)
    return { url: String((await untilReady(child)).url), pid: Number(child.process.pid) }
  }
  const settings = {
    ...toStoreSettings(config),
    REDIS_URL: redis.url,
    LOG_LEVEL: 'warn',
    API_PORT: '0',
    API_OPS_PORT: '0',
  }
  const api = await start('API', '../../api/main.ts', settings)
  const limited = await start('API with limits', '../../api/main.ts', {
    ...settings,
    RATE_LIMIT_ANONYMOUS: '999999999/60',
  })
  const uncached = await start('API without a cache', '../../api/main.ts', { ...settings, API_CACHE_MB: '0' })
  const response = await fetch(api.url + LIST, { headers: { 'accept-encoding': 'identity' } })
  const body = await response.text()
  const own = ['connection', 'date', 'keep-alive', 'transfer-encoding']
  const headers = [...response.headers].filter(([name]) => !own.includes(name))
  const length = ['Content-Length', String(Buffer.byteLength(body))]
  const bytes = (sent: string[]) => ['bytes', JSON.stringify({ headers: sent, body })]
  const same = await start('node:http', 'peers.ts', {}, bytes(headers.flat()))
  const bare = await start('node:http', 'peers.ts', {}, bytes(['Content-Type', 'application/json', ...length]))
  const plain = await start('Express', 'peers.ts', {}, ['express', JSON.stringify(toStoreSettings(config))])
  const stop = async () => {
    for (const child of children) await child.stop()
    await redis.stop()
    await rm(folder, { recursive: true, force: true })
  }
  return { api, limited, uncached, same, bare, plain, stop }
}

type Processes = Awaited<ReturnType<typeof startProcesses>>

/**
 * Requests for the list of tokens. The figure is requests per second of the server's processor time, or of wall-clock
 * time.
 */
function load(name: string, { url, pid }: Running, requests: number, by: 'cpu' | 'clock'): Side {
  return {
    name,
    measure: async () => {
      const [before, startedAt] = [readCpuSeconds(pid), performance.now()]
      const result = await autocannon({ url: url + LIST, connections: CONNECTIONS, amount: requests })
      if (result.non2xx + result.errors > 0)
        throw new Error(`${name}: ${result.non2xx + result.errors} requests failed`)
      const seconds = by === 'cpu' ? readCpuSeconds(pid) - before : (performance.now() - startedAt) / 1000
      return requests / seconds
    },
  }
}

async function measureLists(
  { api, limited, same, bare, plain }: Processes,
  { requests, slowRequests }: Sizes,
  say: BenchContext['say'],
): Promise<BenchRow[]> {
  say('kept answers')
  const cached = load('API, cached', api, requests, 'cpu')
  const unit = 'req/CPU s'
  const identical = load('node:http, same bytes and headers', same, requests, 'cpu')
  const fewer = load('node:http, same body, two headers', bare, requests, 'cpu')
  const counted = load('API with limits, cached', limited, requests, 'cpu')
  // Responses get cheaper with the uptime of a process, so both sides are warmed up equally.
  for (let round = 0; round < ROUNDS; round += 1) for (const side of [cached, counted]) await side.measure()
  const what = '10 tokens, cached'
  return [
    await compare({ what, unit, a: counted, b: cached, rounds: ROUNDS, target: atLeast(0.85), reason: COUNTING_COSTS }),
    await compare({ what, unit, a: cached, b: identical, rounds: ROUNDS, target: atLeast(0.92), reason: CACHED_COSTS }),
    await compare({ what, unit, a: cached, b: fewer, rounds: ROUNDS }),
    await compareWithItself(identical, unit, ROUNDS),
    await compare({
      what,
      unit: 'req/s',
      a: load('API, cached', api, requests, 'clock'),
      b: load('Express, query and res.json', plain, slowRequests, 'clock'),
      rounds: 3,
      target: atLeast(20),
    }),
  ]
}

const CACHED_COSTS = 'finding the bytes, their headers and the metrics are 2 microseconds of 17'
const COUNTING_COSTS =
  'each request is counted for its address, and each answer has the limits in its head: this takes as long as finding the bytes'

/** The number of statements for a hundred identical concurrent requests. */
async function measureCold(database: BenchDatabase, now: number): Promise<BenchRow> {
  let queries = 0
  const count = <T>(work: () => T): T => {
    queries++
    return work()
  }
  const db: Database = {
    ...database.reader,
    rows: (statement) => count(() => database.reader.rows(statement)),
    stream: (statement) => count(() => database.reader.stream(statement)),
  }
  const { config, registry } = database
  const changeFeed = createHandFeed()
  const server = createApiServer({
    ...{ db, config, registry, changeFeed, changeStream: emptyLog, log: silent, metrics: createMetrics('bench') },
    now: () => now,
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const answers = await Promise.all(
    Array.from({ length: 100 }, async () => (await fetch(`http://127.0.0.1:${port}${LIST}`)).arrayBuffer()),
  )
  await new Promise<void>((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
  const a = { name: `${answers.length} concurrent requests, nothing cached`, value: queries, unit: 'queries' }
  return { what: 'identical cold requests', a, target: atMost(1, '') }
}
