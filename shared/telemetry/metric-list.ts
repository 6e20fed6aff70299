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
    help: 'Time from the request to the beginning of its answer, by route and status: the rest is for the client to read.',
    labels: ['route', 'status'],
    buckets: REQUEST_BUCKETS,
  },
  apiAnswers: {
    kind: 'counter',
    name: 'api_answers_total',
    help: 'Answers by route and origin: kept bytes, a query under way for somebody else, or made for this request.',
    labels: ['route', 'from'],
  },
  apiWaiting: {
    kind: 'gauge',
    name: 'api_queue_waiting',
    help: 'Requests that wait for their turn at the database now, by queue.',
    labels: ['queue'],
  },
  apiWaited: {
    kind: 'histogram',
    name: 'api_queue_wait_seconds',
    help: 'Time that a request waited for its turn at the database, by queue; 0 where there was a place at once.',
    labels: ['queue'],
    buckets: REQUEST_BUCKETS,
  },
  apiRefused: {
    kind: 'counter',
    name: 'api_refused_total',
    help: 'Requests refused by queue: answers and downloads (too many waited already), limits (those of its key or address are used up, or could not be counted).',
    labels: ['queue'],
  },
  apiStreams: {
    kind: 'gauge',
    name: 'api_streams',
    help: 'Clients that follow the stream of commits now.',
    labels: [],
  },
  apiKept: {
    kind: 'gauge',
    name: 'api_kept_bytes',
    help: 'Bytes of what is kept in memory for requests to come: answers, and the pieces that answers are put together from.',
    labels: ['of'],
  },
  apiRoom: {
    kind: 'gauge',
    name: 'api_kept_room_bytes',
    help: 'Most bytes that may be kept, of the budget API_CACHE_MB: what was used longest ago makes room.',
    labels: ['of'],
  },
  jobs: {
    kind: 'counter',
    name: 'worker_jobs_total',
    help: 'Attempts at jobs by dataset and outcome: completed, postponed (what is left is planned anew when a plan has room again), retried (will be tried again), failed (a dead letter), returned (handed back while stopping).',
    labels: ['dataset', 'outcome'],
  },
  jobDuration: {
    kind: 'histogram',
    name: 'worker_job_duration_seconds',
    help: 'Time that an attempt at a job took, by dataset and outcome.',
    labels: ['dataset', 'outcome'],
    buckets: WORK_BUCKETS,
  },
  storageFailures: {
    kind: 'counter',
    name: 'worker_storage_failures_total',
    help: 'Attempts at jobs that ended because ClickHouse or Redis did not take or give what it had to, by dataset.',
    labels: ['dataset'],
  },
  rowsInserted: {
    kind: 'counter',
    name: 'worker_rows_inserted_total',
    help: 'Rows stored, by dataset. A row that is stored again counts again.',
    labels: ['dataset'],
  },
  rowsRejected: {
    kind: 'counter',
    name: 'worker_rows_rejected_total',
    help: "Rows that failed the dataset's schema, by dataset and reason.",
    labels: ['dataset', 'reason'],
  },
  providerCalls: {
    kind: 'counter',
    name: 'provider_calls_total',
    help: 'Calls to providers, retries included in one, by provider, route and outcome; unsent are those that were not made, because a plan or the budget of it is used up.',
    labels: ['provider', 'route', 'outcome'],
  },
  providerCallDuration: {
    kind: 'histogram',
    name: 'provider_call_duration_seconds',
    help: 'Time that a call took, with its retries and the wait for the rate limit.',
    labels: ['provider', 'route'],
    buckets: WORK_BUCKETS,
  },
  providerRetries: {
    kind: 'counter',
    name: 'provider_retries_total',
    help: 'Requests that were sent again after a failure that may pass.',
    labels: ['provider'],
  },
  providerQuotaLeft: {
    kind: 'gauge',
    name: 'provider_quota_left',
    help: 'What the provider said last is left of its limit; absent for providers that do not say.',
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
    help: 'Age of the oldest job by dataset, lane and state, since it was enqueued, was taken (active) or failed; 0 where there is none.',
    labels: ['dataset', 'lane', 'state'],
  },
  slots: {
    kind: 'counter',
    name: 'scheduler_slots_total',
    help: 'Slots by dataset and outcome: enqueued, lost (nobody collected it at the time, and its providers have no history).',
    labels: ['dataset', 'outcome'],
  },
  tickFailures: {
    kind: 'counter',
    name: 'scheduler_failures_total',
    help: 'Times that due slots of a dataset could not be enqueued, or what it is missing could not be looked for; the next tick repeats it.',
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
    help: '1 for the state that a dataset is in, else 0: fresh, late (over 1.5 cadences old, or entities are lost), stale (over 2), empty, unserved (empty, and no provider serves it, as without a key).',
    labels: ['dataset', 'state'],
  },
  datasetComplete: {
    kind: 'gauge',
    name: 'dataset_complete',
    help: 'The share of what is expected up to now that is stored, 0 to 1.',
    labels: ['dataset'],
  },
  datasetLost: {
    kind: 'gauge',
    name: 'dataset_lost_entities',
    help: 'Entities that some provider serves and whose newest datum is over 1.5 cadences old.',
    labels: ['dataset'],
  },
  datasetMissing: {
    kind: 'gauge',
    name: 'dataset_missing_buckets',
    help: 'Buckets over all entities that are due and not known: pending (going to be collected), failed (tried in vain, and tried again), unserved (nobody has them).',
    labels: ['dataset', 'state'],
  },
  providerFailing: {
    kind: 'gauge',
    name: 'dataset_provider_failing_seconds',
    help: 'For how long a provider of a dataset has given no answer in any slot; absent while it answers.',
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
