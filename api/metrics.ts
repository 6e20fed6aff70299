import { Counter, Histogram, type Registry } from 'prom-client'

export interface ApiMetrics {
  request(route: string, status: number, seconds: number): void
  answer(route: string, from: 'cache' | 'flight' | 'database'): void
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
    help: 'Answers by route and origin: kept bytes, a query under way for somebody else, or an own query.',
    labelNames: ['route', 'from'],
    registers: [registry],
  })
  return {
    request: (route, status, seconds) => requests.observe({ route, status }, seconds),
    answer: (route, from) => answers.inc({ route, from }),
  }
}
