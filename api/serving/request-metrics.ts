import type { Counter, Histogram, Registry } from 'prom-client'
import { createCounter, createGauge, createHistogram, METRICS } from '../../shared/telemetry/metric-list.ts'

/**
 * Origin of an answer: the cache, a stale cache entry while its successor is made, a shared single flight, or a query
 * for this request.
 */
export type Origin = 'cache' | 'stale' | 'flight' | 'made'

/** Metrics of one route, looked up once: finding a child by its labels costs more than incrementing it. */
export interface RouteMeters {
  answered(from: Origin): void
  requested(status: number, seconds: number): void
  /** A request answered from the cache that began at `startedAt` of the process clock (`performance.now`). */
  servedKept(status: number, startedAt: number): void
}

/** The API's metrics: requests by route and status, their durations, and the origin of answers. */
export interface ApiMetrics {
  of(route: string): RouteMeters
  /** Reports the size of a cache on each scrape, and its capacity in bytes. */
  keeps(of: string, roomBytes: number, toBytes: () => number): void
}

export function createApiMetrics(registry: Registry): ApiMetrics {
  const requests = createHistogram(METRICS.apiRequest, registry)
  const answers = createCounter(METRICS.apiAnswers, registry)
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
    keeps: (of, roomBytes, toBytes) => {
      kept.set(of, toBytes)
      room.set({ of }, roomBytes)
    },
  }
}
