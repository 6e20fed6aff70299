import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

type Labels = readonly string[]

interface Declared<Kind extends string, L extends Labels = Labels> {
  readonly kind: Kind
  readonly name: string
  readonly help: string
  readonly labels: L
}

type DeclaredCounter<L extends Labels = Labels> = Declared<'counter', L>
type DeclaredGauge<L extends Labels = Labels> = Declared<'gauge', L>
type DeclaredHistogram<L extends Labels = Labels> = Declared<'histogram', L> & { readonly buckets: readonly number[] }

/** Seconds, from a cached response to the time limit of a query. */
const REQUEST_BUCKETS = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10]
/** Seconds, from one provider call to a job's time limit. */
const WORK_BUCKETS = [0.05, 0.2, 1, 5, 15, 60, 180, 600]

/**
 * All metrics of the service except prom-client's runtime metrics (event-loop lag, memory, CPU). A test checks that the
 * dashboard and the alert rules in `observability/` use no others.
 */
export const METRICS = {
  apiRequest: {
    kind: 'histogram',
    name: 'api_request_duration_seconds',
    help: 'Time from the request to the first byte of its response, by route and status; the rest depends on the client.',
    labels: ['route', 'status'],
    buckets: REQUEST_BUCKETS,
  },
  apiAnswers: {
    kind: 'counter',
    name: 'api_answers_total',
    help: 'Responses by route and origin: cached bytes, a running query of a concurrent request, or computed for this request.',
    labels: ['route', 'from'],
  },
  apiWaiting: {
    kind: 'gauge',
    name: 'api_queue_waiting',
    help: 'Requests that wait now, by queue: answers and downloads of the database, compression, pictures.',
    labels: ['queue'],
  },
  apiWaited: {
    kind: 'histogram',
    name: 'api_queue_wait_seconds',
    help: 'Time that a request waited, by queue; 0 without a wait.',
    labels: ['queue'],
    buckets: REQUEST_BUCKETS,
  },
  apiRefused: {
    kind: 'counter',
    name: 'api_refused_total',
    help: 'Rejected requests by queue: answers, downloads, compression and pictures (the queue was full), limits (the rate limit of the key or address is used up, or could not be checked).',
    labels: ['queue'],
  },
  apiStreams: {
    kind: 'gauge',
    name: 'api_streams',
    help: 'Clients of the change stream now.',
    labels: [],
  },
  apiKept: {
    kind: 'gauge',
    name: 'api_kept_bytes',
    help: 'Bytes of the caches in memory: responses, and chunks of series.',
    labels: ['of'],
  },
  apiPoints: {
    kind: 'gauge',
    name: 'api_kept_points',
    help: 'Points of series in the cache of series (`pieces` in `api_kept_bytes`), as points or as stored rows.',
    labels: [],
  },
  apiChunkReads: {
    kind: 'counter',
    name: 'api_chunk_reads_total',
    help: 'Requested values of the series cache by result: hit (cached or being read), disk (evicted to the temporary file), miss, evicted (a cache of twice the size would have it).',
    labels: ['result'],
  },
  apiRoom: {
    kind: 'gauge',
    name: 'api_kept_room_bytes',
    help: 'Size limit of the caches in bytes, from API_CACHE_MB; the least recently used entries are evicted.',
    labels: ['of'],
  },
  jobs: {
    kind: 'counter',
    name: 'worker_jobs_total',
    help: 'Attempts at jobs by dataset and outcome: completed, postponed (the rest is planned again when the quota allows), retried (another attempt follows), failed (a dead letter), returned (to the queue while stopping).',
    labels: ['dataset', 'outcome'],
  },
  jobDuration: {
    kind: 'histogram',
    name: 'worker_job_duration_seconds',
    help: 'Duration of an attempt at a job, by dataset and outcome.',
    labels: ['dataset', 'outcome'],
    buckets: WORK_BUCKETS,
  },
  storageFailures: {
    kind: 'counter',
    name: 'worker_storage_failures_total',
    help: 'Attempts at jobs that failed because of ClickHouse or Redis, by dataset.',
    labels: ['dataset'],
  },
  rowsInserted: {
    kind: 'counter',
    name: 'worker_rows_inserted_total',
    help: 'Rows stored, by dataset. Repeated inserts of a row count each time.',
    labels: ['dataset'],
  },
  rowsRejected: {
    kind: 'counter',
    name: 'worker_rows_rejected_total',
    help: "Rows that failed the dataset's schema, by dataset and reason.",
    labels: ['dataset', 'reason'],
  },
  valuesWithheld: {
    kind: 'counter',
    name: 'worker_values_withheld_total',
    help: 'Values of slots that are not stored because no other provider confirms them, by dataset.',
    labels: ['dataset'],
  },
  entitiesExcluded: {
    kind: 'gauge',
    name: 'worker_excluded_entities',
    help: 'Entities for which the values of a provider are not used, because other providers differ from them, in the last slot of this worker.',
    labels: ['dataset', 'provider'],
  },
  alertFirings: {
    kind: 'counter',
    name: 'alert_firings_total',
    help: 'Alerts that fired, by kind of rule.',
    labels: ['kind'],
  },
  alertDeliveries: {
    kind: 'counter',
    name: 'alert_deliveries_total',
    help: 'Attempts to deliver a message by channel type and outcome: delivered, retried (another attempt follows), dead (failed for good).',
    labels: ['channel', 'outcome'],
  },
  alertEvaluation: {
    kind: 'histogram',
    name: 'alert_evaluation_duration_seconds',
    help: 'Duration of the evaluation of a group of rules, by kind of rule.',
    labels: ['kind'],
    buckets: WORK_BUCKETS,
  },
  alertEvaluationFailures: {
    kind: 'counter',
    name: 'alert_evaluation_failures_total',
    help: 'Failed evaluations of groups of rules, by kind of rule; the next tick repeats them.',
    labels: ['kind'],
  },
  providerCalls: {
    kind: 'counter',
    name: 'provider_calls_total',
    help: 'Calls to providers by provider, route and outcome; a call includes its retries. unsent: prevented because the plan or its budget is used up.',
    labels: ['provider', 'route', 'outcome'],
  },
  providerCallDuration: {
    kind: 'histogram',
    name: 'provider_call_duration_seconds',
    help: 'Duration of a call, including its retries and the wait for the rate limit.',
    labels: ['provider', 'route'],
    buckets: WORK_BUCKETS,
  },
  providerRetries: {
    kind: 'counter',
    name: 'provider_retries_total',
    help: 'Requests that were retried after a temporary failure.',
    labels: ['provider'],
  },
  providerQuotaLeft: {
    kind: 'gauge',
    name: 'provider_quota_left',
    help: "Remaining requests according to the provider's last response; absent for providers that do not report it.",
    labels: ['provider'],
  },
  queueJobs: {
    kind: 'gauge',
    name: 'queue_jobs',
    help: 'Jobs in the queue by dataset, lane (live: slots, history: ranges) and state: waiting, prioritized (planned ranges), active, delayed, failed (dead letters).',
    labels: ['dataset', 'lane', 'state'],
  },
  queueOldest: {
    kind: 'gauge',
    name: 'queue_oldest_job_age_seconds',
    help: 'Age of the oldest job by dataset, lane and state, since it was enqueued, started (active) or failed; 0 without a job.',
    labels: ['dataset', 'lane', 'state'],
  },
  slots: {
    kind: 'counter',
    name: 'scheduler_slots_total',
    help: 'Slots by dataset and outcome: enqueued, lost (not collected in time, and its providers have no history).',
    labels: ['dataset', 'outcome'],
  },
  tickFailures: {
    kind: 'counter',
    name: 'scheduler_failures_total',
    help: 'Failures to enqueue due slots of a dataset or to find its missing data; the next tick retries.',
    labels: ['dataset'],
  },
  datasetLag: {
    kind: 'gauge',
    name: 'dataset_lag_seconds',
    help: 'Age of the newest stored datum; absent while a dataset is empty.',
    labels: ['dataset', 'cadence'],
  },
  datasetState: {
    kind: 'gauge',
    name: 'dataset_state',
    help: '1 for the current state of a dataset, else 0: fresh, late (over 1.5 cadences old, or entities are overdue), stale (over 2), empty, unserved (empty, and no provider serves it, for example without a key).',
    labels: ['dataset', 'state'],
  },
  datasetComplete: {
    kind: 'gauge',
    name: 'dataset_complete',
    help: 'The stored share of the data expected up to now, 0 to 1.',
    labels: ['dataset'],
  },
  datasetOverdue: {
    kind: 'gauge',
    name: 'dataset_lost_entities',
    help: 'Entities that a provider serves, with a newest datum over 1.5 cadences old.',
    labels: ['dataset'],
  },
  datasetMissing: {
    kind: 'gauge',
    name: 'dataset_missing_buckets',
    help: 'Due buckets without data, over all entities: pending (will be collected), failed (will be retried), unserved (no provider has them).',
    labels: ['dataset', 'state'],
  },
  providerFailing: {
    kind: 'gauge',
    name: 'dataset_provider_failing_seconds',
    help: 'Time since a provider of a dataset last responded in a slot; absent while it responds.',
    labels: ['dataset', 'cadence', 'provider'],
  },
} as const satisfies Readonly<Record<string, DeclaredCounter | DeclaredGauge | DeclaredHistogram>>

/** Creates a declared counter in a process's registry. */
export function createCounter<L extends Labels>(of: DeclaredCounter<L>, registry: Registry): Counter<L[number]> {
  return new Counter({ name: of.name, help: of.help, labelNames: [...of.labels], registers: [registry] })
}

/**
 * Creates a declared gauge. `collect` runs before each scrape and must not throw, because that would fail the scrape.
 */
export function createGauge<L extends Labels>(
  of: DeclaredGauge<L>,
  registry: Registry,
  collect?: (gauge: Gauge<L[number]>) => Promise<void> | void,
): Gauge<L[number]> {
  const gauge: Gauge<L[number]> = new Gauge({
    name: of.name,
    help: of.help,
    labelNames: [...of.labels],
    registers: [registry],
    ...(collect === undefined ? {} : { collect: () => collect(gauge) }),
  })
  return gauge
}

/** Creates a declared histogram of seconds. */
export function createHistogram<L extends Labels>(of: DeclaredHistogram<L>, registry: Registry): Histogram<L[number]> {
  const { name, help, labels, buckets } = of
  return new Histogram({ name, help, labelNames: [...labels], buckets: [...buckets], registers: [registry] })
}
