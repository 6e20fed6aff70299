import { Counter, Histogram, type Registry } from 'prom-client'

export interface ApiMetrics {
  request(route: string, status: number, seconds: number): void
  answer(route: string, from: 'cache' | 'flight' | 'made'): void
}

/** The API's own metrics: requests by route and status, their durations, and where answers come from. */
export function createApiMetrics(registry: Registry): ApiMetrics {
  const requests = new Histogram({
    name: 'api_request_duration_seconds',
    help: 'Time from the request to the end of its response, by route and status.',
    labelNames: ['route', 'status'],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
    registers: [registry],
  })
  const answers = new Counter({
    name: 'api_answers_total',
    help: 'Answers by route and origin: kept bytes, a query under way for somebody else, or made for this request.',
    labelNames: ['route', 'from'],
    registers: [registry],
  })
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
