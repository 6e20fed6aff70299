import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { findFreePort } from '../../shared/free-port.ts'
import { DAY_MS, HISTORY_START } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { withApi } from './api-process.ts'
import { createDayDraws, type StoredDays, toDayPath, toPath } from './days.ts'
import { atLeast, atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { cpu, createOneReader, load, send } from './load.ts'
import { compare, type Side, timed } from './measure.ts'
import { requireSame, withPlainService } from './plain.ts'
import { startPostgres, toAddress } from './postgres-server.ts'
import { readResidentBytes, readTreeCpuSeconds } from './processes.ts'
import { storePrices } from './scale-tables.ts'

const TOKENS = 100
const YEAR_DAYS = 365
/** All days since the start of the history: the API rejects earlier ones. */
const FULL_DAYS = Math.floor((Date.now() - Date.parse(HISTORY_START)) / DAY_MS)
const LEAST_DAYS = 20
/** Memory of the API's caches for the full history; fewer days get the same share of their size. */
const FULL_CACHE_MB = 2560
const CONNECTIONS = 32
const ROUNDS = 5
const GZIP = { 'Accept-Encoding': 'gzip' }
const EXPRESS = 'Express and PostgreSQL'
/** A compressed day of 288 points has 10 to 12 kB. */
const LEAST_GZIP_BYTES = 5_000

/** A server of the answers. */
interface Served {
  readonly name: string
  readonly url: string
  /** Processor seconds of its process and of its database. */
  readCpu(): number
}

interface Stored extends StoredDays {
  readonly database: BenchDatabase
  readonly enginePid: number
  readonly cacheMb: number
  readonly requests: number
}

export const history: Benchmark = {
  name: 'history',
  about: `All 5-minute prices of 100 tokens since ${HISTORY_START}, read in gzip: the API against Express with compression over PostgreSQL, and against files of nginx.`,
  run: (context) =>
    withEngine((engine) => withDatabase(engine, 'history', (database) => measure(database, engine.pid, context))),
}

async function measure(
  database: BenchDatabase,
  enginePid: number,
  { rows: points, quick, say }: BenchContext,
): Promise<Findings | { skipped: string }> {
  const days = Math.max(LEAST_DAYS, Math.min(FULL_DAYS, Math.floor(points / TOKENS / 288)))
  const tokens = database.registry.tokens.filter(({ live }) => live).slice(0, TOKENS)
  const until = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const cacheMb = Math.max(10, Math.round((FULL_CACHE_MB * days) / FULL_DAYS))
  const stored = { database, enginePid, tokens, until, days, cacheMb, requests: quick ? 400 : 4_000 }
  const prices = { keys: tokens.map(({ key }) => key), start: until - days * DAY_MS, points: days * 288 }
  await storePrices(database.db, prices, say)
  const postgres = await startPostgres(database, say)
  if (postgres === undefined) return { skipped: 'PostgreSQL is not installed' }
  try {
    return await withPlainService('plain service', { postgres: toAddress(postgres) }, ({ url, pid }) => {
      const readCpu = () => readTreeCpuSeconds(pid) + readTreeCpuSeconds(postgres.pid)
      return compareAll(stored, { name: EXPRESS, url, readCpu }, say)
    })
  } finally {
    await postgres.stop()
  }
}

/** Runs `work` with an API that may use this much memory for its caches. One address has half of its slots. */
const withServedApi = <T>(
  { database, enginePid }: Stored,
  cacheMb: number,
  work: (served: Served, pid: number) => Promise<T>,
): Promise<T> =>
  withApi(database, { API_CACHE_MB: String(cacheMb), API_CONCURRENCY: String(2 * CONNECTIONS) }, ({ url, pid }) =>
    work({ name: 'API', url, readCpu: () => readTreeCpuSeconds(pid) + readTreeCpuSeconds(enginePid) }, pid),
  )

async function compareAll(stored: Stored, express: Served, say: BenchContext['say']): Promise<Findings> {
  const { tokens, days, cacheMb } = stored
  const draw = createDayDraws(stored)
  const memory: string[][] = []
  const rows = await withServedApi(stored, cacheMb, async (api, pid) => {
    const note = noteMemory(memory, `${cacheMb} MB`, pid)
    note('start')
    for (let count = 0; count < 20; count++) await requireSame(api.url, express.url, draw())
    say('days that were never read')
    const cold = await compareCold(api, express, draw)
    say('reading all days')
    // Twice: the points of a day are cached when it is used again.
    await readAll(api, stored, 2)
    note('all days read')
    const random = () => toDayPath(draw())
    const aligned = () => toDayPath(draw({ step: 288 }))
    await readRandom(api, stored, random, note)
    say('random days')
    const target = { target: atLeast(5) }
    const warm = [
      ...(await compareDays('a random day', [api, express], random, stored, target)),
      ...(await compareDays('a random day that is a chunk', [api, express], aligned, stored)),
    ]
    say('a year')
    const years = await compareYears([api, express], stored)
    note('end')
    say('nginx')
    return [...warm, ...cold, ...years, ...(await compareFiles(api, stored, say))]
  })
  const less = Math.max(1, Math.round(cacheMb / 10))
  const zipf = await withServedApi(stored, less, async (api, pid) => {
    const note = noteMemory(memory, `${less} MB`, pid)
    note('start')
    const random = () => toDayPath(draw({ zipf: true }))
    say('reading all days with a tenth of the memory')
    await readAll(api, stored, 1)
    note('all days read')
    say('random days with a tenth of the memory')
    await readRandom(api, stored, random, note)
    const what = 'a random day, a tenth of the memory, Zipf tokens'
    const found = await compareDays(what, [api, express], random, stored, { target: atLeast(2) })
    note('end')
    return found
  })
  const points = tokens.length * days * 288
  return {
    rows: [...rows, ...zipf],
    tables: [{ title: 'Resident memory of the API', head: ['API_CACHE_MB', 'after', 'MB'], body: memory }],
    notes: [
      `${points.toLocaleString('en-US')} points of ${tokens.length} tokens over ${days} days are stored in each database, with all digits; 20 random days are equal in both services. API_CACHE_MB is ${cacheMb}, seven eighths of it for series. API_CONCURRENCY is ${2 * CONNECTIONS}, above its default: all connections have one address, of which the default rejects a part while the caches are empty.`,
      `All requests accept gzip. ${CONNECTIONS} connections with keep-alive; days begin at any of their 288 buckets and are drawn uniformly over the whole time. Processor time is that of the server with its database; it depends less on other load of the machine than requests a second.`,
      'nginx sends the same compressed bytes from files, with the same URLs.',
    ],
  }
}

const noteMemory = (memory: string[][], cache: string, pid: number) => (after: string) =>
  void memory.push([cache, after, (readResidentBytes(pid) / 2 ** 20).toFixed(0)])

/** Sends random requests in two halves, and notes the memory after each. */
async function readRandom({ url }: Served, { requests }: Stored, toNext: () => string, note: (after: string) => void) {
  for (const half of [1, 2]) {
    await send({ url, toNext, connections: CONNECTIONS, headers: GZIP }, requests)
    note(`${half * requests} random days`)
  }
}

type Both = readonly [a: Served, b: Served]

async function compareDays(
  what: string,
  servers: Both,
  toNext: () => string,
  { requests }: Stored,
  target: Pick<BenchRow, 'target'> = {},
): Promise<BenchRow[]> {
  const [a, b] = servers.map((one) => load(one.url, one.name, toNext, CONNECTIONS, GZIP)) as [Side, Side]
  return [
    await compare({ what, unit: 'req/s', a, b, rounds: ROUNDS, ...target }),
    await compareCpu(what, servers, toNext, requests / 10),
  ]
}

async function compareCpu(what: string, servers: Both, toNext: () => string, amount: number): Promise<BenchRow> {
  const toSide = ({ name, url, readCpu }: Served) =>
    cpu(name, readCpu, { url, toNext, connections: CONNECTIONS, headers: GZIP }, Math.max(CONNECTIONS, amount))
  const [a, b] = servers.map(toSide) as [Side, Side]
  return compare({ what, unit: 'us CPU', a, b, rounds: ROUNDS })
}

type Draw = ReturnType<typeof createDayDraws>

/** Days that nobody read before, one after the other. */
async function compareCold(api: Served, express: Served, draw: Draw): Promise<BenchRow[]> {
  const readers = [api, express].map(({ url }) => createOneReader(url, LEAST_GZIP_BYTES, GZIP))
  const rows: BenchRow[] = []
  for (const [what, step] of [
    ['a day that was never read, one client', 1],
    ['a day that is a chunk and was never read, one client', 288],
  ] as const) {
    const [a, b] = [api, express].map(({ name }, index) =>
      timed(name, async () => readers[index]?.read(toDayPath(draw({ step }))), 25),
    ) as [Side, Side]
    rows.push(await compare({ what, unit: 'ms', a, b, rounds: 7, target: atMost(1.3) }))
  }
  for (const { close } of readers) close()
  return rows
}

/** Reads each day this many times. */
async function readAll({ url }: Served, { tokens, until, days }: StoredDays, times: number): Promise<void> {
  const paths = tokens.flatMap((token) =>
    Array.from({ length: days }, (_, day) => toDayPath({ token, from: until - (day + 1) * DAY_MS })),
  )
  let next = 0
  const toNext = () => paths[next++ % paths.length] ?? ''
  await send({ url, toNext, connections: CONNECTIONS, headers: GZIP }, times * paths.length)
}

/** A year of a token, one client: the last one, which is cached last. */
async function compareYears(servers: Both, { tokens, until, days }: Stored): Promise<BenchRow[]> {
  const from = until - Math.min(days, YEAR_DAYS) * DAY_MS
  const readers = servers.map(({ url }) => createOneReader(url, LEAST_GZIP_BYTES, GZIP))
  const token = tokens.at(-1) as Token
  const sides = servers.map(({ name }, index) =>
    timed(name, async () => readers[index]?.read(toPath({ token, from }, until)), 2),
  )
  const [a, b] = sides as [Side, Side]
  const row = await compare({ what: 'a year of one token, one client', unit: 'ms', a, b, rounds: ROUNDS })
  for (const { close } of readers) close()
  return [row]
}

/** Days of some tokens and a year against files with the same bytes. Empty without nginx. */
async function compareFiles(api: Served, stored: Stored, say: BenchContext['say']): Promise<BenchRow[]> {
  const { tokens, until, days, requests } = stored
  if (spawnSync('nginx', ['-v']).status !== 0) {
    say('nginx is not installed (apt-get install nginx-light): not compared')
    return []
  }
  const draw = createDayDraws(stored)
  const paths = Array.from({ length: Math.min(500, requests) }, () => toDayPath(draw({ step: 288 })))
  const token = tokens.at(-1) as Token
  const year = toPath({ token, from: until - Math.min(days, YEAR_DAYS) * DAY_MS }, until)
  return withNginx(api, [...paths, year], async (nginx) => {
    let count = 0
    const next = () => paths[count++ % paths.length] as string
    // Another limit that is above the number of points makes another request: its answer is made from chunks.
    const fresh = (path: string) => `${path}&limit=${1_000_000 - count++}`
    return [
      await compareCpu('a day from its chunks', [api, nginx], () => fresh(next()), requests / 5),
      await compareCpu('a day whose answer is cached', [api, nginx], next, requests),
      await compareCpu('a year from its chunks', [api, nginx], () => fresh(year), CONNECTIONS),
    ]
  })
}

/** Runs `work` with an nginx that sends the API's compressed answers to these paths from files. */
async function withNginx<T>(api: Served, paths: readonly string[], work: (nginx: Served) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-nginx-'))
  const port = await findFreePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((of) => `${of}_temp_path ${folder}/${of};`)
  const configuration = `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events {}
http { access_log off; sendfile on; tcp_nopush on; open_file_cache max=10000; keepalive_requests 1000000; ${temporary.join(' ')}
types { application/json json; }
server { listen 127.0.0.1:${port}; root ${folder}/files;
location = /data/tokens/historic-financial { rewrite ^ /$arg_id/$arg_start/$arg_end.json; }
location / { gzip_static on; } } }`
  await writeFile(join(folder, 'nginx.conf'), configuration)
  for (const path of paths) {
    const query = new URL(path, api.url).searchParams
    const file = join(folder, 'files', ...['id', 'start', 'end'].map((name) => query.get(name) ?? ''))
    await mkdir(dirname(file), { recursive: true })
    await writeFile(`${file}.json.gz`, await readCompressed(api.url + path))
  }
  const nginx = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder], { stdio: 'inherit' })
  const ended = once(nginx, 'exit')
  const url = `http://127.0.0.1:${port}`
  try {
    while ((await fetch(url).catch(() => undefined)) === undefined && nginx.exitCode === null) await wait(50)
    return await work({ name: 'nginx', url, readCpu: () => readTreeCpuSeconds(Number(nginx.pid)) })
  } finally {
    nginx.kill('SIGTERM')
    await ended
    await rm(folder, { recursive: true })
  }
}

async function readCompressed(url: string): Promise<Buffer> {
  const [response] = (await once(get(url, { headers: GZIP, agent: false }), 'response')) as [IncomingMessage]
  if (response.headers['content-encoding'] !== 'gzip') throw new Error(`${url}: the answer is not compressed`)
  return buffer(response)
}
