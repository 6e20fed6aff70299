import { setImmediate } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { expect } from 'vitest'
import { type Buckets, toTimes } from '../../shared/buckets.ts'
import type { Config } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { HttpClients } from '../../workers/http/client.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { runJob } from '../../workers/run/runner.ts'
import { START } from '../upstream/small-chain.ts'
import { SEED } from './cases.ts'
import { type ClaimTables, createClaimTables, type EventsOf } from './claim-tables.ts'
import { createRandom } from './random.ts'
import { silent } from './silent.ts'

/**
 * A model of readings that resume from cursors: slots and ranges in random order, with restarts, lost state, concurrent
 * workers, nodes that lag and a change of the provider. Jobs, providers and ledger are the product's; stores and
 * network are in memory. After each event, everything that counts as read must be stored.
 */

export type Random = ReturnType<typeof createRandom>

/** Days of the small chain with events. */
export const CLAIM_DAYS = 5
/** The time that the slots and ranges of an order are in, in Unix milliseconds. */
export const WANTED = { from: START * 1000 + HOUR_MS, to: START * 1000 + (CLAIM_DAYS - 1) * DAY_MS }

/** A job with random events on a chain, and what must be stored of them. */
export interface ClaimSubject {
  readonly job: Job
  /** The providers of which one is used at a time; the first one is drawn from all of them. */
  readonly providers: readonly ClaimProvider[]
  /** The beginnings of the names of job state, of which one is lost at a time. */
  readonly states: readonly string[]
  /** The tables of which an insert may fail. */
  readonly written: readonly string[]
  /** Whether the job reads ranges, too. */
  readonly readsRanges: boolean
  /** The number of final runs of the remaining jobs: with the smallest node limit, a run stops early. */
  readonly attempts: number
  readonly eventsOf: EventsOf
  open(random: Random): ClaimWorld
}

export type ClaimProvider = 'node' | 'moralis'

/** The time of one order. */
export interface ClaimClock {
  /** Unix milliseconds. */
  now: number
  /** How long the newest data of the provider lags behind, in milliseconds. */
  lag: number
}

export interface ClaimWorld {
  /** The registry at first, and after it has grown. */
  readonly registries: readonly [Registry, Registry]
  openConfig(provider: ClaimProvider, random: Random): Config
  openNetwork(clock: ClaimClock): HttpClients
  /** The lags of a provider from which one is drawn, in minutes. */
  readonly lags: Readonly<Record<ClaimProvider, readonly number[]>>
  /** Checks the claims since the last check. @returns their number, and the false ones in words. */
  check(tables: ClaimTables, now: number): { readonly claims: number; readonly wrong: readonly string[] }
  /** The jobs that read what is not read yet, when the order is over; empty if everything is read. */
  toRemaining(tables: ClaimTables, registry: Registry, now: number): readonly Record<string, unknown>[]
}

/** The result of one random order. */
interface OrderResult {
  readonly events: readonly string[]
  readonly claims: number
  /** What counts as read and is not stored. Empty if the claims are true. */
  readonly falseClaims: readonly string[]
  /** The number of jobs that are still needed after all remaining ones ran. */
  readonly uncovered: number
}

/** Runs random events of a seed, and checks the claims after each of them. */
async function runRandomOrder({ job, ...subject }: ClaimSubject, seed: number): Promise<OrderResult> {
  const random = createRandom(seed)
  const world = subject.open(random)
  const clock = { now: WANTED.from + (1 + random.below(20)) * HOUR_MS + random.below(HOUR_MS), lag: 0 }
  const now = () => clock.now
  const tables = createClaimTables(now, { eventsOf: subject.eventsOf, wantedFrom: WANTED.from })
  const events: string[] = []
  const falseClaims: string[] = []
  let claims = 0
  const [young, grown] = world.registries
  let registry = random.chance(0.5) ? grown : young
  const http = world.openNetwork(clock)
  const sources = new Map(
    [...new Set(subject.providers)].map((provider) => {
      const config = world.openConfig(provider, random)
      return [provider, { config, collectors: job.connect({ config, http, now, log: silent, db: tables.db }) }]
    }),
  )
  let provider = random.pick(subject.providers)

  async function run(payload: object, handBack?: AbortSignal): Promise<void> {
    const source = sources.get(provider)
    if (source === undefined) throw new Error(`the model has no provider ${provider}`)
    const context = {
      ...{ config: source.config, db: tables.db, log: silent, now, registry },
      redis: { publish: async () => 0, xadd: async () => '' } as unknown as Redis,
      recomputation: { enqueue: async () => {}, close: async () => {} },
      redact: (text: string) => text,
      ...(handBack === undefined ? {} : { handBack }),
    }
    try {
      await runJob(job, source.collectors, context, payload)
    } catch (error) {
      if (!(error instanceof DataError) && handBack?.aborted !== true) throw error
      events.push(`  ${error instanceof Error ? error.message.slice(0, 80) : String(error)}`)
    }
  }

  const note = (text: string) => events.push(`${new Date(clock.now).toISOString().slice(5, 16)} ${provider}: ${text}`)
  const toEntities = () =>
    random.chance(0.25) ? { entities: [random.pick(job.entities(registry)).id] } : ({} as { entities?: string[] })
  const toSlot = () => ({ kind: 'slot', slot: Math.floor(clock.now / HOUR_MS) * HOUR_MS, ...toEntities() })
  const toRange = () => {
    if (!subject.readsRanges) return toSlot()
    const hours = Math.floor((clock.now - WANTED.from) / HOUR_MS)
    const from = WANTED.from + random.below(hours) * HOUR_MS
    const to = Math.min(from + (1 + random.below(24)) * HOUR_MS, Math.ceil(clock.now / HOUR_MS) * HOUR_MS)
    return { kind: 'range', from, to, interval: '1h', ...toEntities() }
  }
  const runNoted = (payload: Record<string, unknown>, handBack?: AbortSignal) => {
    note(describe(payload))
    return run(payload, handBack)
  }
  /** A worker that stops in the middle of a job. */
  const runStopped = async (payload: Record<string, unknown>) => {
    const stop = new AbortController()
    const steps = random.below(60)
    const stopping = (async () => {
      for (let at = 0; at < steps; at += 1) await setImmediate()
      stop.abort(new DataError('provider_unavailable', 'the worker stops'))
    })()
    await Promise.all([runNoted(payload, stop.signal), stopping])
  }
  const advance = (most: number) => {
    const hours = random.below(most)
    clock.now = Math.min(WANTED.to, clock.now + hours * HOUR_MS + random.below(HOUR_MS))
  }
  const actions: readonly (readonly [number, () => Promise<void> | void])[] = [
    [10, () => runNoted(toSlot())],
    [
      6,
      () => {
        advance(4)
        return runNoted(toSlot())
      },
    ],
    [5, () => runNoted(toRange())],
    [3, () => advance(30)],
    [
      2,
      async () => void (await Promise.all([runNoted(toSlot()), runNoted(random.chance(0.5) ? toSlot() : toRange())])),
    ],
    [2, () => runStopped(random.chance(0.5) ? toSlot() : toRange())],
    [
      2,
      async () => {
        const table = random.pick(subject.written)
        const isStored = random.chance(0.5)
        note(`the worker dies at ${table}, ${isStored ? 'after' : 'before'} the insert`)
        tables.failNext(table, isStored)
        await runNoted(random.chance(0.6) ? toSlot() : toRange())
        tables.fixInserts()
      },
    ],
    [
      1,
      () => {
        const lost = random.pick(subject.states)
        note(`state is lost: ${lost}*`)
        tables.loseState((name) => name.startsWith(lost))
      },
    ],
    [
      1,
      () => {
        provider = subject.providers.find((one) => one !== provider) ?? provider
        clock.lag = 0
        note('is the provider now')
      },
    ],
    [
      2,
      () => {
        const minutes = random.pick(world.lags[provider])
        clock.lag = minutes * 60_000
        note(`lags by ${minutes} minutes`)
      },
    ],
    [
      1,
      () => {
        registry = grown
        note('the registry has grown')
      },
    ],
  ]
  const total = actions.reduce((sum, [weight]) => sum + weight, 0)
  const next = () => {
    let at = random.below(total)
    for (const [weight, act] of actions) {
      if (at < weight) return act
      at -= weight
    }
    return () => advance(4)
  }
  function check(): void {
    const found = world.check(tables, clock.now)
    claims += found.claims
    falseClaims.push(...found.wrong)
  }

  for (let step = 0; step < 12 && falseClaims.length === 0; step += 1) {
    await next()()
    check()
  }
  clock.lag = 0
  clock.now = WANTED.to + 4 * HOUR_MS
  const toRemaining = () => world.toRemaining(tables, registry, clock.now)
  for (let attempt = 0; attempt < subject.attempts && falseClaims.length === 0; attempt += 1)
    for (const payload of toRemaining()) {
      await runNoted(payload)
      check()
    }
  return { events, claims, falseClaims, uncovered: toRemaining().length }
}

const describe = (payload: Readonly<Record<string, unknown>>) =>
  JSON.stringify(payload, (key, value) =>
    ['slot', 'from', 'to'].includes(key) ? new Date(Number(value)).toISOString().slice(5, 13) : value,
  )

/** The start and end of a covered bucket, in Unix milliseconds. */
export function* toCoveredBuckets(runs: readonly Buckets[], cadence: Job['dataset']['cadence']) {
  for (const { first, last } of runs)
    for (let bucket = first; bucket <= last; bucket += 1)
      yield { bucket, ...toTimes({ first: bucket, last: bucket }, cadence) }
}

/** The first seed: different each day, or the setting of the environment to repeat a run. */
export const CLAIMS_SEED = Number(process.env.CLAIMS_SEED ?? SEED * 10_000)

/** Checks the claims of one order for each seed; `leastClaims` is the least number of claims of an order on average. */
export async function expectTrueClaims(
  subject: ClaimSubject,
  seed: number,
  { orders, leastClaims }: { readonly orders: number; readonly leastClaims: number },
): Promise<void> {
  let all = 0
  for (let at = seed; at < seed + orders; at += 1) {
    const { falseClaims, uncovered, events, claims } = await runRandomOrder(subject, at)
    const { name } = subject.job
    const repeat = `CLAIMS_SEED=${at} CLAIMS_ORDERS=1 npx vitest run test/unit/claims.test.ts -t ${name}\n${events.join('\n')}`
    expect(falseClaims, repeat).toEqual([])
    expect(uncovered, repeat).toBe(0)
    all += claims
  }
  expect(all).toBeGreaterThan(orders * leastClaims)
}
