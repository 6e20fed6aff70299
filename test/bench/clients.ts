import { gzipSync } from 'node:zlib'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { type ApiProcess, withApi } from './api-process.ts'
import { createDayDraws, type StoredDays, toDayPath } from './days.ts'
import { atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { cpu, send } from './load.ts'
import { compare } from './measure.ts'
import { readCpuSeconds } from './processes.ts'

const STEP = 300_000
const CONNECTIONS = 16
const ROUNDS = 5
const TOKENS = 40
const YEAR_POINTS = 105_120
const GZIP = { 'Accept-Encoding': 'gzip' }

interface Sizes {
  readonly days: number
  readonly requests: number
}
const FULL: Sizes = { days: 60, requests: 2_000 }
const SMALL: Sizes = { days: 5, requests: 100 }

/** Half of the API's cache is for series. */
const toCacheMb = (seriesBytes: number) => Math.max(1, Math.round((2 * seriesBytes) / 2 ** 20))

interface Stored extends StoredDays {
  readonly database: BenchDatabase
  readonly enginePid: number
  /** The token with a year of points. */
  readonly long: Token
  readonly requests: number
}

export const clients: Benchmark = {
  name: 'clients',
  about:
    'Days and years of 5-minute prices as clients request them: with gzip, at random times, over more data than the memory of the API holds.',
  run: (context) =>
    withEngine((engine) => withDatabase(engine, 'clients', (database) => measure(database, engine.pid, context))),
}

async function measure(database: BenchDatabase, enginePid: number, { quick, say }: BenchContext): Promise<Findings> {
  const sizes = quick ? SMALL : FULL
  const [long, ...tokens] = database.registry.tokens.filter(({ live }) => live).slice(0, TOKENS + 1) as [
    Token,
    ...Token[],
  ]
  const until = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const stored = { database, enginePid, tokens, long, until, ...sizes }
  say('storing prices')
  await storePrices(stored, tokens, sizes.days * 288)
  await storePrices(stored, [long], quick ? 10_000 : YEAR_POINTS)
  const { rows, seriesBytes } = await withApi(database, { API_CACHE_MB: '256' }, async (api) => {
    say('reading all days once')
    await readAll(api, stored)
    const bytes = await readSeriesBytes(api)
    const points = tokens.length * sizes.days * 288
    const memory: BenchRow = {
      what: 'memory of a cached 5-minute price',
      a: { name: 'API', value: bytes / points, unit: 'B/point' },
      target: atMost(40, ' B/point'),
    }
    say('reading all days again: their points are cached')
    await readAll(api, stored)
    return {
      rows: [memory, ...(await measureCached(api, stored, say)), await measureYear(api, stored)],
      seriesBytes: bytes,
    }
  })
  const body: string[][] = []
  for (const share of [0.5, 2, 10]) {
    say(`days of ${share} times the memory`)
    body.push(await measureWorkingSet(stored, share, toCacheMb(seriesBytes / share)))
  }
  return {
    rows,
    tables: [
      {
        title: 'Random days in gzip, tokens by a Zipf distribution, working sets of several sizes',
        head: ['data / memory of the series cache', 'req/s', 'API, ms CPU/req', 'ClickHouse, ms CPU/req'],
        body,
      },
    ],
    notes: [
      `${tokens.length} tokens with ${sizes.days} days of 288 points, prices with all digits; ${CONNECTIONS} connections with keep-alive. Processor time is that of the API's process, or of ClickHouse's; a day "at any time" begins at any of its 288 buckets, so both ends cut a chunk.`,
    ],
  }
}

/** Stores 5-minute points up to `until`, with all digits of a double as providers send them. */
async function storePrices({ database, until }: Stored, tokens: readonly Token[], points: number): Promise<void> {
  await database.db.command({
    name: 'store-prices',
    sql: `INSERT INTO token_quotes_in (token, observed_at, is_latest, price, volume_24h, market_cap, total_supply, circulating_supply)
SELECT arrayJoin({keys: Array(UInt64)}) AS token,
  fromUnixTimestamp64Milli({until: Int64} - toInt64({points: UInt32} - number) * ${STEP}, 'UTC'), false,
  1 + sin(number / 500) / 3 + (cityHash64(token, number) % 1000003) / 1e8 AS price, price * 1e8 + number, price * 1155057402, 15e8, 1155057402
FROM numbers({points: UInt32})`,
    params: { keys: tokens.map(({ key }) => key), until, points },
  })
  await database.db.command({ name: 'merge', sql: 'OPTIMIZE TABLE token_prices FINAL' })
}

async function readSeriesBytes({ opsPort }: ApiProcess): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text()
  const [, bytes] = /^api_kept_bytes\{[^}]*of="pieces"[^}]*\} (\S+)$/m.exec(text) ?? []
  if (bytes === undefined) throw new Error('the API reports no size of its series cache')
  return Number(bytes)
}

async function readAll({ url }: ApiProcess, { tokens, until, days }: Stored): Promise<void> {
  let next = 0
  const toNext = () => {
    const index = next++ % (tokens.length * days)
    const token = tokens[index % tokens.length] as Token
    return toDayPath({ token, from: until - (1 + Math.floor(index / tokens.length)) * DAY_MS })
  }
  await send({ url, toNext, connections: CONNECTIONS, headers: GZIP }, tokens.length * days)
}

const WHOLE_PATH =
  'a new request passes Express, the parameters and the headers, which a cached answer skips; the assembly of a day takes 50 to 300 us of it'

async function measureCached(api: ApiProcess, stored: Stored, say: BenchContext['say']): Promise<BenchRow[]> {
  const { requests } = stored
  const draw = createDayDraws(stored)
  const cached = toDayPath(draw({ step: 288 }))
  // Each request has its own limit above the number of points, so that no answer comes from the response cache.
  let limit = 300
  const fresh = (path: string) => `${path}&limit=${limit++}`
  const aligned = () => fresh(toDayPath(draw({ step: 288 })))
  const unaligned = () => fresh(toDayPath(draw()))
  const sides: readonly [what: string, next: () => string, encoding: string, most: number][] = [
    ['a day that is a chunk, in gzip', aligned, 'gzip', 2],
    ['a day at any time, in gzip', unaligned, 'gzip', 7],
    ['a day at any time, without compression', unaligned, 'identity', 7],
  ]
  const rows: BenchRow[] = []
  const readCpu = () => readCpuSeconds(api.pid)
  for (const [what, toNext, encoding, most] of sides) {
    say(what)
    const of = { url: api.url, connections: CONNECTIONS, headers: { 'Accept-Encoding': encoding } }
    const a = cpu('API, from cached chunks', readCpu, { ...of, toNext }, requests)
    const b = cpu('API, cached answer of the same size', readCpu, { ...of, toNext: () => cached }, 5 * requests)
    rows.push(await compare({ what, unit: 'us CPU', a, b, rounds: ROUNDS, target: atMost(most), reason: WHOLE_PATH }))
  }
  return rows
}

/** A year in gzip from cached chunks, against compressing its text once. */
async function measureYear(api: ApiProcess, { long, until }: Stored): Promise<BenchRow> {
  const path = `/data/tokens/historic-financial?id=${long.id}&interval=5m&start=${until - YEAR_POINTS * STEP}&end=${until}`
  const text = Buffer.from(await (await fetch(api.url + path)).arrayBuffer())
  const compress = {
    name: 'its text through gzip, level 1',
    measure: async () => {
      const before = process.cpuUsage()
      gzipSync(text, { level: 1 })
      const { user, system } = process.cpuUsage(before)
      return user + system
    },
  }
  const of = { url: api.url, toNext: () => path, connections: CONNECTIONS, headers: GZIP }
  const a = cpu('API, from cached chunks', () => readCpuSeconds(api.pid), of, CONNECTIONS)
  return compare({ what: 'a year, in gzip', unit: 'us CPU', a, b: compress, rounds: ROUNDS, target: atMost(0.2) })
}

/** Random days, the tokens by a Zipf distribution, while the API has memory for a part of them. */
async function measureWorkingSet(stored: Stored, share: number, cacheMb: number): Promise<string[]> {
  const { database, enginePid, requests } = stored
  const draw = createDayDraws(stored)
  const toNext = () => toDayPath(draw({ zipf: true }))
  return withApi(database, { API_CACHE_MB: String(cacheMb) }, async (api) => {
    await readAll(api, stored)
    const of = { url: api.url, toNext, connections: CONNECTIONS, headers: GZIP }
    await send(of, requests)
    const before = [api.pid, enginePid].map(readCpuSeconds)
    const seconds = await send(of, 2 * requests)
    const [own, engine] = [api.pid, enginePid].map((pid, index) => readCpuSeconds(pid) - (before[index] as number))
    const toMs = (value = 0) => ((value / (2 * requests)) * 1000).toFixed(2)
    return [`${share}x`, ((2 * requests) / seconds).toFixed(0), toMs(own), toMs(engine)]
  })
}
