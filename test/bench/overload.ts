import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { storeMarket } from '../support/market.ts'
import { type ApiProcess, withApi } from './api-process.ts'
import {
  type Client,
  createClient,
  isGood,
  type RecordedRequest,
  requestAtRate,
  requestInSequence,
  toP95,
} from './arrivals.ts'
import { toDayPath, toShuffled } from './days.ts'
import { atLeast, atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { compare } from './measure.ts'
import { readCpuSeconds, readPeakBytes } from './processes.ts'

const STEP = 300_000
const DAY_POINTS = DAY_MS / STEP
const TOKENS = 24
const CLIENTS = 8
const READERS = 64
const ROUNDS = 5
/** Numbers of concurrent requests; the one with the highest rate of answers is the capacity. */
const CONCURRENCY = [8, 16, 32]

interface Sizes {
  readonly days: number
  /** How long each load lasts. */
  readonly seconds: number
  readonly roundSeconds: number
}

const FULL: Sizes = { days: 365, seconds: 60, roundSeconds: 6 }
const SMALL: Sizes = { days: 90, seconds: 3, roundSeconds: 2 }

export const overload: Benchmark = {
  name: 'overload',
  about:
    'Requests above the capacity of the service, each for an uncached day of 5-minute prices: answered requests, delay of refusals, and effect on another client.',
  run: (context) =>
    withEngine((engine) => withDatabase(engine, 'overload', (database) => measure(context, database, engine.pid))),
}

async function measure(context: BenchContext, database: BenchDatabase, enginePid: number): Promise<Findings> {
  const sizes = context.quick ? SMALL : FULL
  const tokens = database.registry.tokens.filter(({ live }) => live).slice(0, TOKENS)
  const until = Math.floor(Date.now() / STEP) * STEP
  context.say('storing prices')
  await storeMarket(database.db, {
    keys: tokens.map(({ key }) => key),
    until,
    points: sizes.days * DAY_POINTS,
    stepMs: STEP,
  })
  await database.db.command({ name: 'merge', sql: 'OPTIMIZE TABLE token_prices FINAL' })
  const toPath = createPaths(tokens, until, sizes.days)
  // The cache is small: a minute of such a load would bring most of the stored rows into memory.
  return withApi(database, { API_CACHE_MB: '4' }, async (api) => {
    const clients = Array.from({ length: CLIENTS }, (_, number) => createClient(api.url, number))
    const pids = { clients: process.pid, API: api.pid, ClickHouse: enginePid }
    const load = { api, clients, toPath, sizes, pids, notes: [], say: context.say }
    try {
      const rows = [
        ...(await measureLoad(load)),
        await measureFlood(load),
        await measureSlowReaders(load, tokens, until),
      ]
      const peak = `${(readPeakBytes(api.pid) / 2 ** 20).toFixed(0)} MB`
      return {
        rows,
        notes: [
          `The capacity is the highest rate of answers to ${CLIENTS} clients with ${CONCURRENCY.join(', ')} concurrent requests that wait for their answers, measured just before each load. Answers under the load are compared with it, and with the same concurrency just after it. A load comes from the same clients for ${sizes.seconds} s and does not wait for answers. Clients, API and ClickHouse share the machine.`,
          ...load.notes,
          `The API took ${peak} of memory at most.`,
        ],
      }
    } finally {
      for (const client of clients) client.disconnect()
    }
  })
}

/** 24 hours of 5-minute prices that begin at any of their times, no two of which are the same within all there are. */
function createPaths(tokens: readonly Token[], until: number, days: number): () => string {
  const midnight = Math.floor(until / DAY_MS) * DAY_MS
  const places = toShuffled(tokens.length * (days - 2) * DAY_POINTS)
  return () => {
    const place = places.next().value as number
    const from = midnight - DAY_MS - Math.floor(place / tokens.length) * STEP
    return toDayPath({ token: tokens[place % tokens.length] as Token, from })
  }
}

interface Load {
  readonly api: ApiProcess
  readonly clients: readonly Client[]
  readonly toPath: () => string
  readonly sizes: Sizes
  /** Processes whose processor time is reported. */
  readonly pids: Readonly<Record<string, number>>
  /** Notes below the table. */
  readonly notes: string[]
  readonly say: (line: string) => void
}

/** Measures the processor time of each process from now until the returned function is called. */
function watchProcessors({ pids }: Load): () => string {
  const read = () => Object.entries(pids).map(([name, pid]) => ({ name, seconds: readCpuSeconds(pid) }))
  const [before, since] = [read(), performance.now()]
  return () => {
    const seconds = (performance.now() - since) / 1000
    return read()
      .map(({ name, seconds: now }, at) => `${name} ${((now - (before[at]?.seconds ?? 0)) / seconds).toFixed(2)}`)
      .join(', ')
  }
}

/** Answers a second of a round. */
const countGood = (answers: readonly RecordedRequest[], { roundSeconds }: Sizes): number =>
  answers.filter(isGood).length / roundSeconds

interface Best {
  readonly perSecond: number
  readonly concurrency: number
  /** Processor time of each process during the measurement. */
  readonly busy: string
}

/** The highest rate of answers when clients wait for their answers. */
async function measureBest(load: Load): Promise<Best> {
  const { clients, toPath, sizes, say } = load
  await requestInSequence(clients, CONCURRENCY[0] ?? 1, sizes.roundSeconds, toPath)
  let best: Best = { perSecond: 0, concurrency: 0, busy: '' }
  for (const concurrency of CONCURRENCY) {
    const processors = watchProcessors(load)
    const answers = await requestInSequence(clients, concurrency, sizes.roundSeconds, toPath)
    const perSecond = countGood(answers, sizes)
    say(`${concurrency} at once: ${perSecond.toFixed(0)} a second`)
    if (perSecond > best.perSecond) best = { perSecond, concurrency, busy: processors() }
  }
  return best
}

const REFUSING_COSTS =
  'refusals cost time too: the process that answers reads each request and refuses it, and clients, API and ClickHouse share the cores'

/** How many times the capacity a load is. */
const TIMES = 4

/** A load of four times the capacity: answers, delay of refusals, and time until the service is as fast as before. */
async function measureLoad(load: Load): Promise<BenchRow[]> {
  const { clients, toPath, sizes, say } = load
  // A machine that others share is faster in one minute than in the next: both sides are measured beside each other.
  const { perSecond, concurrency, busy } = await measureBest(load)
  say(`${TIMES} times the capacity`)
  const calm = await requestInSequence(clients.slice(0, 1), 1, sizes.roundSeconds, toPath)
  const processors = watchProcessors(load)
  const startedAt = performance.now()
  const asking = requestAtRate(clients, TIMES * perSecond, AbortSignal.timeout(sizes.seconds * 1000), toPath)
  await wait(sizes.seconds * 1000)
  const endedAt = performance.now()
  load.notes.push(`Processors busy at ${TIMES} times the load: ${processors()}; before it: ${busy}.`)
  const recoveredMs = await measureRecovery(load, endedAt, 2 * toP95(calm))
  const answers = await asking
  const inTime = ({ sentAt, tookMs }: RecordedRequest) => sentAt + tookMs < endedAt
  const good = answers.filter((one) => isGood(one) && inTime(one)).length / ((endedAt - startedAt) / 1000)
  const refused = answers.filter(({ status }) => status === 503)
  const rest = answers.filter((one) => !isGood(one) && one.status !== 503)
  if (rest.length > 0) {
    const ways = new Set(rest.map(({ status, failure }) => failure ?? `status ${status}`))
    const what = `${rest.length} of ${answers.length} requests got neither an answer nor a refusal`
    throw new Error(`${what}: ${[...ways].join('; ')}`)
  }
  const after = countGood(await requestInSequence(clients, concurrency, sizes.roundSeconds, toPath), sizes)
  const borne = (perSecond + after) / 2
  const what = `${TIMES} times the capacity`
  return [
    {
      what: `${what}: answered`,
      a: { name: `at ${(answers.length / sizes.seconds).toFixed(0)} req/s`, value: good, unit: 'req/s' },
      b: { name: 'capacity just before and after', value: borne, unit: 'req/s' },
      ratio: good / borne,
      target: atLeast(0.9),
      reason: REFUSING_COSTS,
    },
    {
      what: `${what}: a refusal, 95 of 100`,
      a: { name: `${refused.length.toLocaleString('en-US')} refused`, value: toP95(refused), unit: 'ms' },
    },
    {
      what: `${what}: until new requests are as fast as before`,
      a: { name: 'since the last request', value: recoveredMs, unit: 'ms' },
      target: atMost(1_000, ' ms'),
      reason: 'requests that wait when the load ends are answered before new ones',
    },
  ]
}

/** The time until a new request is as fast as 95 of 100 were before, in milliseconds since the load ended. */
async function measureRecovery({ api, toPath }: Load, endedAt: number, withinMs: number): Promise<number> {
  const newcomer = createClient(api.url, CLIENTS)
  for (;;) {
    const { sentAt, tookMs, status } = await newcomer.request(toPath())
    if (status !== 200 || tookMs > withinMs) continue
    newcomer.disconnect()
    return sentAt - endedAt
  }
}

/** Latency of one client beside another that sends four times the capacity. */
async function measureFlood(load: Load): Promise<BenchRow> {
  const { api, clients, toPath, sizes, say } = load
  const { perSecond } = await measureBest(load)
  say('a flood of one client')
  const second = createClient(api.url, CLIENTS)
  const measureSecond = async () => toP95(await requestInSequence([second], 1, sizes.roundSeconds, toPath))
  const concurrent = async () => {
    const over = new AbortController()
    const flood = requestAtRate(clients.slice(0, 1), TIMES * perSecond, over.signal, toPath)
    await wait(1_000)
    const p95 = await measureSecond()
    over.abort()
    await flood
    return p95
  }
  return compare({
    what: "another client's answers, 95 of 100",
    unit: 'ms',
    a: { name: 'beside a flood of one client', measure: concurrent },
    b: { name: 'alone', measure: measureSecond },
    rounds: ROUNDS,
    target: atMost(2),
    reason: REFUSING_COSTS,
  })
}

/** Latency of other clients beside 64 clients that read long series at a kilobyte a second. */
function measureSlowReaders(
  { api, clients, toPath, sizes, say }: Load,
  tokens: readonly Token[],
  until: number,
): Promise<BenchRow> {
  say('slow readers')
  const measureRest = async () => toP95(await requestInSequence(clients.slice(0, 2), 2, sizes.roundSeconds, toPath))
  const concurrent = async () => {
    const readers = Array.from({ length: READERS }, (_, number) => {
      const { id } = tokens[number % tokens.length] as Token
      const start = until - sizes.days * DAY_MS + Math.floor(number / tokens.length) * STEP
      return readSlowly(api.url, `/data/tokens/historic-financial?id=${id}&interval=5m&start=${start}&format=csv`)
    })
    await Promise.all(readers.map(({ started }) => started))
    const p95 = await measureRest()
    for (const { disconnect } of readers) disconnect()
    return p95
  }
  return compare({
    what: "others' answers, 95 of 100",
    unit: 'ms',
    a: { name: `beside ${READERS} readers of long series at 1 kB/s`, measure: concurrent },
    b: { name: 'beside none', measure: measureRest },
    rounds: ROUNDS,
    target: atMost(1.2),
  })
}

/** Reads a kilobyte of an answer a second. `started` resolves with its first bytes. */
function readSlowly(url: string, path: string): { started: Promise<void>; disconnect(): void } {
  const { hostname, port } = new URL(url)
  let [socket, timer]: [Socket | undefined, NodeJS.Timeout | undefined] = [undefined, undefined]
  const begin = (resolve: () => void, reject: (error: Error) => void) => {
    const opened = connect({ host: hostname, port: Number(port) })
    socket = opened
    opened.once('error', reject).write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`)
    opened.once('readable', () => {
      // Clients that are refused, because all begin at the same time, try again.
      if (String(opened.read(12)).endsWith('503')) {
        opened.destroy()
        timer = setTimeout(() => begin(resolve, reject), 500)
        return
      }
      timer = setInterval(() => opened.read(1_024), 1_000)
      resolve()
    })
  }
  return {
    started: new Promise(begin),
    disconnect: () => {
      clearInterval(timer)
      socket?.destroy()
    },
  }
}
