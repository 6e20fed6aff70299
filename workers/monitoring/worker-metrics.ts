import type { Job as QueuedJob, Worker } from 'bullmq'
import type { Registry } from 'prom-client'
import type { JobPayload, JobReport } from '../../shared/queue/queues.ts'
import { createCounter, createGauge, createHistogram, METRICS } from '../../shared/telemetry/metric-list.ts'
import type { ProviderCall } from '../http/client.ts'

type Attempt = Pick<QueuedJob<JobPayload, JobReport>, 'processedOn'>

/** Counters of a worker. */
export interface WorkerMetrics {
  call(call: ProviderCall): void
  rejected(dataset: string, reason: string, rows: number): void
  /** A slot: its withheld values, and by provider the entities whose values are not used. */
  confirmed(dataset: string, withheld: number, excluded: ReadonlyMap<string, number>): void
  /** An attempt that ended because ClickHouse or Redis failed. */
  storageFailed(dataset: string): void
  /** A job returned to its queue while the worker stops; BullMQ emits no event for it. */
  returned(dataset: string, attempt: Attempt): void
  /** Starts counting the jobs of a queue. */
  observe(dataset: string, worker: Worker<JobPayload, JobReport>): void
}

/** The metrics of jobs, rows and provider calls. */
export function createWorkerMetrics(registry: Registry): WorkerMetrics {
  const jobs = createCounter(METRICS.jobs, registry)
  const durations = createHistogram(METRICS.jobDuration, registry)
  const inserted = createCounter(METRICS.rowsInserted, registry)
  const rejected = createCounter(METRICS.rowsRejected, registry)
  const withheldValues = createCounter(METRICS.valuesWithheld, registry)
  const excludedEntities = createGauge(METRICS.entitiesExcluded, registry)
  const storageFailures = createCounter(METRICS.storageFailures, registry)
  const ended = (dataset: string, outcome: string, attempt: Attempt | undefined) => {
    jobs.inc({ dataset, outcome })
    const startedAt = attempt?.processedOn
    if (startedAt !== undefined) durations.observe({ dataset, outcome }, (Date.now() - startedAt) / 1000)
  }
  return {
    call: createCallMetrics(registry),
    rejected: (dataset, reason, rows) => rejected.inc({ dataset, reason }, rows),
    confirmed: (dataset, withheld, excluded) => {
      withheldValues.inc({ dataset }, withheld)
      for (const [provider, entities] of excluded) excludedEntities.set({ dataset, provider }, entities)
    },
    storageFailed: (dataset) => storageFailures.inc({ dataset }),
    returned: (dataset, attempt) => ended(dataset, 'returned', attempt),
    observe: (dataset, worker) => {
      // Counters exist from the start. If one first appeared with a failure, a rate over it would miss that failure.
      for (const outcome of ['completed', 'postponed', 'retried', 'failed']) jobs.inc({ dataset, outcome }, 0)
      inserted.inc({ dataset }, 0)
      storageFailures.inc({ dataset }, 0)
      worker.on('completed', (job, report) => {
        ended(dataset, report.postponed === undefined ? 'completed' : 'postponed', job)
        inserted.inc({ dataset }, report.rows)
      })
      worker.on('failed', (job) => ended(dataset, job?.finishedOn === undefined ? 'retried' : 'failed', job))
    },
  }
}

function createCallMetrics(registry: Registry): (call: ProviderCall) => void {
  const calls = createCounter(METRICS.providerCalls, registry)
  const durations = createHistogram(METRICS.providerCallDuration, registry)
  const retries = createCounter(METRICS.providerRetries, registry)
  const quotaGauge = createGauge(METRICS.providerQuotaLeft, registry)
  return ({ provider, path: route, outcome, seconds, retries: retryCount, remainingQuota: remaining }) => {
    calls.inc({ provider, route, outcome })
    if (outcome === 'unsent') return
    durations.observe({ provider, route }, seconds)
    retries.inc({ provider }, retryCount)
    if (remaining !== undefined) quotaGauge.set({ provider }, remaining)
  }
}
