import type { Counter, Histogram, Registry } from 'prom-client'
import { createCounter, createGauge, createHistogram, METRICS } from '../../shared/telemetry/metric-list.ts'
import type { QueueMeters } from './queue.ts'

/**
 * Where an answer came from: kept bytes, kept bytes while new ones are made, a query for somebody else, one of its own.
 */
export type Origin = 'cache' | 'stale' | 'flight' | 'made'

/** The meters of one route, found once: finding a child by its labels costs more than counting does. */
export interface RouteMeters {
  answered(from: Origin): void
  requested(status: number, seconds: number): void
  /** A request answered from kept bytes, since `startedAt` of the process's clock (`performance.now`). */
  servedKept(status: number, startedAt: number): void
}

/** The API's own metrics: requests by route and status, their durations, and where answers come from. */
export interface ApiMetrics {
  of(route: string): RouteMeters
  ofQueue(queue: string): QueueMeters
  /** Tells how many bytes of something are kept, whenever that is asked for, and for how many there is room. */
  keeps(of: string, roomBytes: number, toBytes: () => number): void
}

export function createApiMetrics(registry: Registry): ApiMetrics {
  const requests = createHistogram(METRICS.apiRequest, registry)
  const answers = createCounter(METRICS.apiAnswers, registry)
  const waiting = createGauge(METRICS.apiWaiting, registry)
  const waited = createHistogram(METRICS.apiWaited, registry)
  const refused = createCounter(METRICS.apiRefused, registry)
  const toMeters = (route: string): RouteMeters => {
    const timers = new Map<number, Histogram.Internal<'route' | 'status'>>()
    const counters = new Map<Origin, Counter.Internal>()
    const answered = (from: Origin) => {
      const counter = counters.get(from) ?? answers.labels({ route, from })
      counters.set(from, counter)
      counter.inc()
    }
    const requested = (status: number, seconds: number) => {
      const timer = timers.get(status) ?? requests.labels({ route, status })
      timers.set(status, timer)
      timer.observe(seconds)
    }
    const servedKept = (status: number, startedAt: number) => {
      answered('cache')
      requested(status, (performance.now() - startedAt) / 1000)
    }
    return { answered, requested, servedKept }
  }
  const kept = new Map<string, () => number>()
  createGauge(METRICS.apiKept, registry, (gauge) => {
    for (const [of, toBytes] of kept) gauge.set({ of }, toBytes())
  })
  const room = createGauge(METRICS.apiRoom, registry)
  const meters = new Map<string, RouteMeters>()
  return {
    of: (route) => {
      const known = meters.get(route) ?? toMeters(route)
      meters.set(route, known)
      return known
    },
    ofQueue: (queue) => {
      const [inLine, times, refusals] = [waiting.labels({ queue }), waited.labels({ queue }), refused.labels({ queue })]
      return {
        waiting: (count) => inLine.set(count),
        waited: (seconds) => times.observe(seconds),
        refused: () => refusals.inc(),
      }
    },
    keeps: (of, roomBytes, toBytes) => {
      kept.set(of, toBytes)
      room.set({ of }, roomBytes)
    },
  }
}
