import { DelayedError, type Queue, UnrecoverableError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import { DataError, isTransient, toReason } from '../../shared/errors.ts'
import { openQueue, toQueuePrefix } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { type Database, followChangeStream } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { createCounter, createHistogram, METRICS } from '../../shared/telemetry/metric-list.ts'
import { createOutageLog } from '../../shared/telemetry/outage-log.ts'
import { startTicks } from '../monitoring/ticks.ts'
import { deliver, findDue } from './delivery.ts'
import { evaluateGroup, type RuleGroup } from './evaluation.ts'
import { followRules } from './followed-rules.ts'
import { storeInactive } from './inactive-rules.ts'
import type { Channel } from './rules.ts'
import { createSend } from './send.ts'
import { createAlertStore } from './state.ts'
import type { MessageKey, StoredFiring } from './state-rows.ts'

/** The queue of evaluations, and that of messages. */
export const ALERT_QUEUES = ['alerts', 'alerts-delivery'] as const

/** Every rule is evaluated this often: for the clock, and for change events that were missed with Redis. */
const TICK = '15 * * * * *'
/**
 * Number of concurrent deliveries. The number is high, because a receiver that does not answer occupies a delivery
 * until the timeout. The results of concurrent deliveries are stored in batches.
 */
const DELIVERIES_AT_ONCE = 64
/** A failed evaluation is repeated by the next tick at the latest. */
const EVALUATION_ATTEMPTS = 3
const PAUSE_MS = 1_000
const FAILED_JOBS = { age: 14 * 86_400, count: 1_000 }

const evaluation = z.strictObject({ group: z.string(), changedAt: z.number().optional() })
const delivery = z.strictObject({ rule: z.string(), channel: z.string(), message: z.string() })

export interface AlertsContext {
  readonly config: Config
  readonly db: Database
  readonly redis: Redis
  readonly registry: Registry
  readonly log: Logger
  readonly now: () => number
  /** Compares this machine's clock with those of the stores. */
  readonly sync?: () => Promise<void>
  readonly metrics: Parameters<typeof createCounter>[1]
  readonly redact: (text: string) => string
  /** Timing of the takeover of a killed worker's jobs. */
  readonly takeover?: { readonly lockMs: number; readonly checkMs: number }
}

export interface Alerts {
  /** Enqueues the evaluation of every rule, and due messages. */
  tick(): Promise<void>
  stop(): Promise<void>
}

function createAlertMetrics(registry: AlertsContext['metrics']) {
  const firings = createCounter(METRICS.alertFirings, registry)
  const deliveries = createCounter(METRICS.alertDeliveries, registry)
  const failures = createCounter(METRICS.alertEvaluationFailures, registry)
  const durations = createHistogram(METRICS.alertEvaluation, registry)
  return {
    fired: (list: readonly StoredFiring[]) => {
      for (const { kind } of list) firings.inc({ kind })
    },
    evaluated: (kind: string, seconds: number) => durations.observe({ kind }, seconds),
    evaluationFailed: (kind: string) => failures.inc({ kind }),
    attempted: (channel: string, outcome: string) => deliveries.inc({ channel, outcome }),
  }
}

/**
 * Evaluates the rules of ALERTS_FILE and delivers their messages, in any number of processes. Redis has only jobs: all
 * state is in ClickHouse, and every tick enqueues the due jobs.
 * @throws DataError `config` for a file with mistakes.
 */
export async function startAlerts(context: AlertsContext, file: string): Promise<Alerts> {
  const { config, db, redis, now } = context
  const { prefix } = config.redis
  const followed = followRules(file, context.log)
  const redact = (text: string) => followed.redact(context.redact(text))
  const log = context.log.child({ module: 'alerts' })
  const store = createAlertStore(db)
  const metrics = createAlertMetrics(context.metrics)
  const stopping = new AbortController()
  const [evaluations, deliveries] = ALERT_QUEUES.map((name) => openQueue(name, redis, prefix)) as [Queue, Queue]

  const enqueueGroups = async (groups: readonly RuleGroup[], changedAt?: number) => {
    const toJob = ({ name }: RuleGroup) => ({
      name: 'evaluate',
      data: { group: name, ...(changedAt === undefined ? {} : { changedAt }) },
      opts: {
        // At most one job of a group runs, and at most one waits.
        deduplication: { id: name, keepLastIfActive: true },
        attempts: EVALUATION_ATTEMPTS,
        backoff: { type: 'fixed', delay: PAUSE_MS },
        removeOnComplete: true,
        removeOnFail: FAILED_JOBS,
      },
    })
    if (groups.length > 0) await evaluations.addBulk(groups.map(toJob))
  }
  const enqueueMessages = async (messages: readonly (MessageKey & { readonly nextTryAt: number })[]) => {
    const jobs = messages.map(({ nextTryAt, ...data }) => ({
      name: 'deliver',
      data,
      opts: {
        // An existing job of the message stays as it is.
        jobId: `${data.channel}.${data.message}`,
        delay: Math.max(0, nextTryAt - now()),
        attempts: Number.MAX_SAFE_INTEGER,
        backoff: { type: 'fixed', delay: PAUSE_MS },
        removeOnComplete: true,
        removeOnFail: true,
      },
    }))
    if (jobs.length > 0) await deliveries.addBulk(jobs)
  }

  const announce = async (fired: readonly StoredFiring[]) => {
    metrics.fired(fired)
    for (const { rule, title, id } of fired) log.info({ rule, title, firing: id }, 'alert fired')
    await enqueueMessages(
      fired.flatMap(({ rule, id, channels, isDigest, dueAt }) =>
        isDigest ? [] : channels.map((channel) => ({ rule, channel, message: id, nextTryAt: dueAt })),
      ),
    )
  }
  const evaluate = async (data: unknown) => {
    followed.refresh()
    const group = followed.groups.get(evaluation.parse(data).group)
    // The rules have changed since the job was enqueued.
    if (group === undefined) return
    const began = performance.now()
    try {
      await context.sync?.()
      const apiUrl = config.alerts.apiUrl ?? config.api.publicUrl
      await evaluateGroup(group, { db, store, registry: context.registry, apiUrl, now: now(), onFired: announce })
    } catch (error) {
      metrics.evaluationFailed(group.kind)
      throw isTransient(error) ? error : new UnrecoverableError(redact(toReason(error)))
    } finally {
      metrics.evaluated(group.kind, (performance.now() - began) / 1000)
    }
  }

  const channels = (): Readonly<Record<string, Channel>> => followed.rules.channels
  const deliveryContext = {
    ...{ store, channels, publicUrl: config.api.publicUrl, log, redact, now, attempted: metrics.attempted },
    ...{ send: createSend(config.alerts.privateNetworks), smtpName: config.alerts.smtpName },
  }
  const takeover =
    context.takeover === undefined
      ? {}
      : { lockDuration: context.takeover.lockMs, stalledInterval: context.takeover.checkMs }
  const blocking = createRedis(config.redis.url, context.log, 'blocking')
  const toOptions = (name: string, concurrency: number) => ({
    ...{ connection: blocking, prefix: toQueuePrefix(prefix, name), concurrency, ...takeover },
    maxStalledCount: Number.MAX_SAFE_INTEGER,
  })
  const workers = [
    new Worker(evaluations.name, (job) => evaluate(job.data), toOptions(evaluations.name, 4)),
    new Worker(
      deliveries.name,
      async (job, token) => {
        followed.refresh()
        await context.sync?.()
        const attempt = await deliver(delivery.parse(job.data), deliveryContext, stopping.signal)
        if (attempt.state !== 'pending') return
        // A job waits by the clock of the system, which is not the worker's clock in tests.
        await job.moveToDelayed(Date.now() + attempt.retryAt - now(), token)
        throw new DelayedError()
      },
      toOptions(deliveries.name, DELIVERIES_AT_ONCE),
    ),
  ]
  for (const worker of workers) {
    const outage = createOutageLog(log, 'warn')
    worker.on('error', (error) => outage.failed(error.message, { reason: redact(error.message) }, 'alert queue'))
    worker.on('active', () => outage.works())
    worker.on('failed', (job, error) =>
      log.warn({ job: job?.name, data: job?.data, reason: redact(error.message) }, 'an alert job failed'),
    )
  }

  const outage = createOutageLog(log, 'error')
  const guard = async (what: string, work: () => Promise<void>) => {
    try {
      await work()
      outage.works(what)
    } catch (error) {
      outage.failed(what, { reason: redact(toReason(error)) }, what)
    }
  }
  const tick = async () => {
    followed.refresh()
    await guard('the clock cannot be compared', async () => context.sync?.())
    await guard('alert rules cannot be stored', async () => {
      const { isConfirmed, rules } = followed
      followed.compared(await storeInactive(rules.rules, { store, isConfirmed }))
    })
    await guard('alert rules cannot be enqueued', () => enqueueGroups([...followed.groups.values()]))
    await guard('due alerts cannot be found', async () => enqueueMessages(await findDue(store, now())))
  }
  const changeStream = followChangeStream(
    {
      waiting: createRedis(config.redis.url, context.log, 'reader'),
      asking: createRedis(config.redis.url, context.log, 'reader'),
    },
    prefix,
    context.log,
  )
  changeStream.follow({
    changed: (changeEvents) => {
      const changed = new Set(changeEvents.map(({ dataset }) => dataset))
      const groups = [...followed.groups.values()].filter(({ datasets }) => datasets.some((one) => changed.has(one)))
      void guard('alert rules cannot be enqueued', () => enqueueGroups(groups, Date.now()))
    },
    missed: () => void guard('alert rules cannot be enqueued', () => enqueueGroups([...followed.groups.values()])),
  })
  const ticks = startTicks(TICK, tick, log)
  const first = tick()
  await Promise.all(workers.map((worker) => worker.waitUntilReady()))
  return {
    tick,
    stop: async () => {
      changeStream.close()
      await Promise.all([ticks.stop(), first])
      stopping.abort(new DataError('storage', 'the worker is stopping'))
      const force = redis.status !== 'ready'
      await Promise.all(workers.map((worker) => worker.close(force)))
      await Promise.all([evaluations.close(), deliveries.close()])
      blocking.disconnect()
    },
  }
}
