import type { Config } from '../../shared/config/config.ts'
import { toCheckedProviders } from '../../shared/config/providers/list.ts'
import { createRedactor, findSecrets } from '../../shared/config/secrets.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { groupBy } from '../../shared/group-by.ts'
import { DAY_MS, HISTORY_START, HOUR_MS, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { createHttpClients, type Exchange, type QueueClassClients } from '../http/client.ts'
import type { Collector, Entity, Job, Omitted, Range } from '../job/define-job.ts'
import type { JobState } from '../job/state.ts'
import { jobs } from '../jobs/list.ts'
import { checkRows } from '../run/runner.ts'
import { type Probe, type ProbeTime, toFinding } from './finding.ts'
import { toSamples } from './samples.ts'

export interface ProbeOptions {
  readonly config: Config
  readonly registry: Registry
  readonly db: Database
  readonly log: Logger
  /** Unix milliseconds. */
  readonly now: number
  /** Whether to send only one request per provider, for current data. */
  readonly isShort: boolean
  /** Time limit of one probe, including retries and waits. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** First retry delay, as in the HTTP client. */
  readonly backoffMs?: number
  readonly record?: ((exchange: Exchange) => void) | undefined
}

/** Hours of a first reading of trades. A check needs no more, and requests are billed. */
const FEWEST_HOURS = 1

/**
 * Sends one small request per dataset to each configured provider, with the code of the workers. The result of a probe
 * is therefore the result that a worker would get. Stores nothing. Providers are probed in parallel, the datasets of
 * one provider in sequence.
 */
export async function probeProviders(options: ProbeOptions): Promise<Probe[]> {
  const config = {
    ...options.config,
    dex: { ...options.config.dex, firstRunHours: FEWEST_HOURS },
    providers: toCheckedProviders(options.config.providers),
  }
  const redact = createRedactor(findSecrets(options.config))
  // A host may serve several datasets, whose probes share its limits.
  const { limitsOf } = createHttpClients({ log: options.log })
  const questions = toQuestions(options)
  const byProvider = groupBy(questions, ({ provider }) => provider)
  const groups = [...byProvider.values()].map((group) => (options.isShort ? group.slice(0, 1) : group))
  const groupsOfProbes = await Promise.all(
    groups.map(async (group) => {
      const probes: Probe[] = []
      for (const question of group) probes.push(...(await runProbe(question, { ...options, config, redact, limitsOf })))
      return probes
    }),
  )
  return groupsOfProbes.flat()
}

interface Question {
  readonly job: Job
  readonly provider: string
  readonly asked: ProbeTime
}

/** Computed datasets have no provider to probe. */
function toQuestions({ isShort }: ProbeOptions): Question[] {
  return jobs
    .filter(({ computedFrom }) => computedFrom.length === 0)
    .flatMap((job) => job.providers.map(({ name }) => ({ job, provider: name })))
    .flatMap(({ job, provider }) => {
      const hasDays = job.history?.intervals.includes('1d') ?? false
      const now = { job, provider, asked: 'now' as const }
      if (isShort || job.history === undefined) return [now]
      const history = { job, provider, asked: 'history' as const }
      return hasDays ? [now, history, { job, provider, asked: 'oldest' as const }] : [now, history]
    })
}

type Asking = ProbeOptions & {
  /** Removes keys that a provider may have repeated in its response. */
  readonly redact: (text: string) => string
  readonly limitsOf: QueueClassClients['limitsOf']
}

/** Runs one probe per host of the provider: one per chain if each chain has its own node, or else one. */
async function runProbe(question: Question, options: Asking): Promise<Probe[]> {
  const { job, provider, asked } = question
  const calls = { requests: 0, quotaLeft: undefined as number | undefined }
  const http = createHttpClients({
    log: options.log,
    proxy: options.config.proxy,
    limitsOf: options.limitsOf,
    ...(options.backoffMs === undefined ? {} : { backoffMs: options.backoffMs }),
    observe: ({ retries, remainingQuota }) => {
      calls.requests += 1 + retries
      calls.quotaLeft = remainingQuota ?? calls.quotaLeft
    },
    record: options.record,
  })
  const context = { config: options.config, http, db: options.db, log: options.log, now: () => options.now }
  const collector = job.connect(context).find((one) => one.provider === provider)
  if (collector === undefined) return []
  const samples = toSamples(job, collector, options.registry, options.now)
  const probes: Probe[] = []
  for (const entity of samples) {
    calls.requests = 0
    const result = await probeEntity(entity, collector, question, options)
    const reason = options.redact(result.reason)
    probes.push({ provider, dataset: job.name, asked, entity: entity.name, ...result, reason, ...calls })
  }
  if (samples.length > 0) return probes
  const reason = 'no entity uses it with these settings and this registry'
  return [
    { provider, dataset: job.name, asked, entity: '', finding: 'unconfigured', reason, sample: undefined, ...calls },
  ]
}

type ProbeResult = Pick<Probe, 'finding' | 'reason' | 'sample'>

async function probeEntity(
  entity: Entity,
  collector: Collector,
  { job, asked }: Question,
  options: Asking,
): Promise<ProbeResult> {
  const { now, log } = options
  const range = toRange(job, asked, now)
  const steps: number[] = []
  const omitted: Omitted[] = []
  let isRead = false
  let refusal: DataError | undefined
  try {
    const candidates = await collector.collect({
      entities: [entity],
      peers: { all: [entity], own: [entity] },
      passedOn: [],
      slot: toBucketStart(now, job.cadence),
      range,
      state: createState(),
      log,
      signal: AbortSignal.any([options.signal, AbortSignal.timeout(options.timeoutMs)]),
      noteRead: () => {
        isRead = true
      },
      refuse: (_, reason) => {
        refusal = reason
      },
      putOff: () => {},
      noteStep: (_, seconds) => void steps.push(seconds),
      omit: (_, elements) => void omitted.push(elements),
      noteMore: () => {},
    })
    const checked = checkRows(job.dataset, collector.provider, candidates, { now, log })
    const rows = range === undefined ? withoutOutdated(job, checked.rows, now) : checked.rows
    refusal ??= [...checked.refused.values()][0] ?? toOutdated(job, checked.rows, rows)
    omitted.push(...(checked.omitted?.values() ?? []))
    const coarsest = range === undefined ? 0 : Math.max(0, ...steps)
    return toProbeResult({ rows, isRead, refusal, omitted, coarsest, range })
  } catch (error) {
    if (error instanceof DataError) return toRefused(error)
    if (options.signal.aborted) throw error
    if (isTimeout(error))
      return { finding: 'unreached', reason: `no answer within ${options.timeoutMs / 1000} s`, sample: undefined }
    // A bug in reading one response must not hide the results of the others.
    return { finding: 'malformed', reason: `cannot be read by this program: ${toReason(error)}`, sample: undefined }
  }
}

const isTimeout = (error: unknown) => error instanceof Error && error.name === 'TimeoutError'

interface Answered {
  readonly rows: readonly object[]
  /** Whether the collector reported the entity as completely read, with or without rows. */
  readonly isRead: boolean
  readonly refusal: DataError | undefined
  readonly omitted: readonly Omitted[]
  /** The longest step of the returned data, in seconds. */
  readonly coarsest: number
  readonly range: Range | undefined
}

function toProbeResult({ rows, isRead, refusal, omitted, coarsest, range }: Answered): ProbeResult {
  const sample = rows.at(-1)
  if (refusal !== undefined) return { ...toRefused(refusal), sample }
  if (sample === undefined && !isRead) return { finding: 'nothing', reason: 'an answer without any data', sample }
  const isCoarser = range !== undefined && coarsest > INTERVAL_SECONDS[range.interval]
  if (isCoarser)
    return { finding: 'coarser', reason: `asked for ${range.interval}, has one every ${coarsest} s`, sample }
  const count = omitted.reduce((sum, one) => sum + one.count, 0)
  return { finding: 'works', reason: count === 0 ? '' : `${count} left out, ${omitted[0]?.reason}`, sample }
}

/** Removes rows that do not answer the current slot, because they are older than the slot before it. */
function withoutOutdated(job: Job, rows: readonly object[], now: number): readonly object[] {
  if (job.resumes) return rows
  const from = toBucketStart(now, job.cadence) - INTERVAL_SECONDS[job.cadence] * 1000
  return rows.filter((row) => Date.parse(timeOf(job, row)) >= from)
}

const timeOf = ({ dataset }: Job, row: object) => String(Reflect.get(row, dataset.series.time))

function toOutdated(job: Job, rows: readonly object[], current: readonly object[]): DataError | undefined {
  const newest = rows.at(-1)
  if (newest === undefined || current.length > 0) return undefined
  return new DataError('provider_malformed', `its newest value is of ${timeOf(job, newest)}`)
}

const toRefused = (error: DataError): ProbeResult => ({
  finding: toFinding(error.code),
  reason: toReason(error),
  sample: undefined,
})

/** Recent history is one hour or one day; the oldest history is two days. */
function toRange(job: Job, time: ProbeTime, now: number): Range | undefined {
  if (time === 'now') return undefined
  const first = Date.parse(HISTORY_START)
  if (time === 'oldest') return { from: first, to: first + 2 * DAY_MS, interval: '1d' }
  const interval = job.history?.intervals[0] ?? job.cadence
  const length = INTERVAL_SECONDS[interval] < INTERVAL_SECONDS['1d'] ? HOUR_MS : DAY_MS
  const to = Math.floor(now / length) * length - length
  return { from: to - length, to, interval }
}

/** Creates an in-memory state for one probe. */
function createState(): JobState {
  const values = new Map<string, string>()
  const keep = async (name: string, value: string) => void values.set(name, value)
  return { get: async (name) => values.get(name), set: (name, value) => void values.set(name, value), save: keep }
}
