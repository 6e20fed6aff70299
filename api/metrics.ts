import type { Counter, Histogram, Registry } from 'prom-client'
import { createCounter, createHistogram, METRICS } from '../shared/metric-list.ts'

export interface ApiMetrics {
  request(route: string, status: number, seconds: number): void
  answer(route: string, from: 'cache' | 'flight' | 'made'): void
}

/** The API's own metrics: requests by route and status, their durations, and where answers come from. */
export function createApiMetrics(registry: Registry): ApiMetrics {
  const requests = createHistogram(METRICS.apiRequest, registry)
  const answers = createCounter(METRICS.apiAnswers, registry)
  // Finding a child by its labels costs more than counting does.
  const timers = new Map<string, Histogram.Internal<'route' | 'status'>>()
  const counters = new Map<string, Counter.Internal>()
  return {
    request: (route, status, seconds) => {
      const timer = timers.get(`${route} ${status}`) ?? requests.labels({ route, status })
      timers.set(`${route} ${status}`, timer)
      timer.observe(seconds)
    },
    answer: (route, from) => {
      const counter = counters.get(`${route} ${from}`) ?? answers.labels({ route, from })
      counters.set(`${route} ${from}`, counter)
      counter.inc()
    },
  }
}
