import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { DAY_MS } from '../../shared/intervals.ts'
import { startChild, untilReady } from '../../tools/children.ts'
import { storeMarket } from '../support/market.ts'
import { withApi } from './api-process.ts'
import { type Day, toDayPath, toShuffled } from './days.ts'
import { atLeast, atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { createDuckdbFile } from './duckdb-file.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { createOneReader, load } from './load.ts'
import { compare, timed } from './measure.ts'
import { startPostgres, toAddress } from './postgres-server.ts'

const STEP = 300_000
const TOKENS = 9
const ROUNDS = 5
const LEAST_BYTES = 288 * 100
/** Days of each token with cached chunks before the measurement. */
const WARM_DAYS = 25

/** A conventional service, if its database is installed. */
interface Plain {
  readonly name: string
  readonly url: string
  /** The minimum ratio of responses from cached chunks, and the maximum ratio of the time without. */
  readonly targets: { readonly cached: number; readonly cold: number } | undefined
}

export const plain: Benchmark = {
  name: 'plain',
  about:
    'Days of 5-minute prices against a common design: Express over a database with the right index that writes the JSON.',
  run: (context) => withEngine((engine) => withDatabase(engine, 'plain', (database) => measure(context, database))),
}

async function measure(context: BenchContext, database: BenchDatabase): Promise<Findings | { skipped: string }> {
  const days = context.quick ? 60 : 365
  const tokens = database.registry.tokens.filter(({ live }) => live).slice(0, TOKENS)
  const until = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const points = days * 288
  context.say('storing prices')
  await storeMarket(database.db, { keys: tokens.map(({ key }) => key), until, points, stepMs: STEP })
  await database.db.command({ name: 'merge', sql: 'OPTIMIZE TABLE token_prices FINAL' })
  const toDays = (first: number, count: number): Day[] =>
    tokens.flatMap((token) =>
      Array.from({ length: count }, (_, day) => ({ token, from: until - (first + day + 1) * DAY_MS })),
    )
  const [warm, cold] = [toDays(0, WARM_DAYS), toDays(WARM_DAYS + 3, days - WARM_DAYS - 4)]
  const rows: BenchRow[] = []
  await withPlain(database, context, (service) =>
    withApi(database, {}, async ({ url }) => {
      context.say(service.name)
      for (const day of [...warm, cold[0] as Day]) await requireSame(url, service.url, day)
      rows.push(...(await compareBoth(url, service, warm, cold.slice(1))))
    }),
  )
  if (rows.length === 0) return { skipped: 'neither PostgreSQL nor DuckDB is installed' }
  const stored = `${(TOKENS * points).toLocaleString('en-US')} points of ${TOKENS} tokens are stored in each; both sides answer with the same points and the same members.`
  return { rows, notes: [stored] }
}

async function compareBoth(
  url: string,
  { name, url: second, targets }: Plain,
  warm: readonly Day[],
  cold: readonly Day[],
): Promise<BenchRow[]> {
  // Each day once, because a repeated one would be cached.
  const next = (days: readonly Day[]) => {
    const order = toShuffled(days.length)
    const remaining = Array.from(days, () => days[order.next().value as number] as Day)
    return () => {
      const day = remaining.pop()
      if (day === undefined) throw new Error('all days that are stored were asked for')
      return toDayPath(day)
    }
  }
  // 24 hours from any multiple of five minutes, all different.
  const starts = toShuffled(warm.length * 288)
  const anyStart = () => {
    const start = starts.next().value as number
    const day = warm[start % warm.length] as Day
    return toDayPath({ ...day, from: day.from - (Math.floor(start / warm.length) % 288) * STEP })
  }
  const express = `Express and ${name}`
  const [api, peer] = [next(cold), next(cold)]
  const [one, two] = [createOneReader(url, LEAST_BYTES), createOneReader(second, LEAST_BYTES)]
  // Includes the warm-up round.
  const times = Math.floor(cold.length / (ROUNDS + 1))
  const rows = [
    await compare({
      what: 'a new range of a day, its chunks cached, 32 connections',
      unit: 'req/s',
      a: load(url, 'API', anyStart),
      b: load(second, express, anyStart),
      rounds: ROUNDS,
      ...(targets && {
        target: atLeast(targets.cached),
        reason: 'the rest is writing 288 points as JSON for each request',
      }),
    }),
    await compare({
      what: 'an uncached day, one connection',
      unit: 'ms',
      a: timed('API', () => one.read(api()), times),
      b: timed(express, () => two.read(peer()), times),
      rounds: ROUNDS,
      ...(targets && {
        target: atMost(targets.cold),
        reason: 'ClickHouse takes 2 to 5 ms for a statement, whatever it reads, and unpacks whole granules for a day',
      }),
    }),
  ]
  for (const { close } of [one, two]) close()
  return rows
}

/** @throws Error if the two responses differ. */
export async function requireSame(url: string, second: string, day: Day): Promise<void> {
  const path = toDayPath(day)
  const [one, two] = await Promise.all([url, second].map(async (base) => (await fetch(base + path)).json()))
  if (!isDeepStrictEqual(one, two)) throw new Error(`${path}: the two answers differ`)
}

/** Runs `work` with each service that this machine can run. */
async function withPlain(
  database: BenchDatabase,
  { say }: BenchContext,
  work: (service: Plain) => Promise<void>,
): Promise<void> {
  const serve = (name: string, place: object, targets?: Plain['targets']) =>
    withPlainService(name, place, ({ url }) => work({ name, url, targets }))
  const postgres = await startPostgres(database, say)
  if (postgres !== undefined) {
    const address = { postgres: toAddress(postgres) }
    await serve('PostgreSQL', address, { cached: 5, cold: 2 }).finally(() => postgres.stop())
  }
  const duckdb = await createDuckdbFile(database, say)
  if (duckdb !== undefined) await serve('DuckDB', { duckdb: duckdb.file }).finally(() => duckdb.remove())
}

/** Runs `work` with a conventional service over the database at a place. */
export async function withPlainService<T>(
  name: string,
  place: object,
  work: (service: { readonly url: string; readonly pid: number }) => Promise<T>,
): Promise<T> {
  const child = startChild(name, join(import.meta.dirname, 'plain-service.ts'), {}, [JSON.stringify(place)])
  try {
    return await work({ url: String((await untilReady(child)).url), pid: Number(child.process.pid) })
  } finally {
    await child.stop()
  }
}
