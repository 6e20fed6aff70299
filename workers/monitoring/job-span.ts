import {
  type Context,
  context,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  trace,
} from '@opentelemetry/api'
import type { JobsOptions, Job as QueuedJob } from 'bullmq'
import type { JobPayload, JobReport } from '../../shared/queue/queues.ts'
import { recordFailure, toLogFields, toTraceparent, tracer } from '../../shared/telemetry/spans.ts'

type Queued = QueuedJob<JobPayload, JobReport>

/** BullMQ emits a job's events outside of its span, but with the same job object. */
const spans = new WeakMap<Queued, Span>()

/**
 * Adds a job to a queue and starts its trace. `add` gets the option that makes every attempt of the job part of the
 * trace.
 */
export async function inEnqueueSpan(
  queue: string,
  jobId: string,
  add: (options: Pick<JobsOptions, 'telemetry'>) => Promise<unknown>,
): Promise<void> {
  const attributes = { ...toMessaging('send', queue), 'messaging.message.id': jobId }
  const span = tracer.startSpan(`send ${queue}`, { kind: SpanKind.PRODUCER, attributes }, ROOT_CONTEXT)
  const isTraced = isSpanContextValid(span.spanContext())
  try {
    await add(isTraced ? { telemetry: { metadata: toTraceparent(span) } } : {})
  } catch (error) {
    recordFailure(span, error)
    throw error
  } finally {
    span.end()
  }
}

/** Returns the trace context in which the job was enqueued, or the root context if it was not traced. */
function toParent({ opts }: Queued): Context {
  const traceparent = opts.telemetry?.metadata
  return traceparent === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, { traceparent })
}

/**
 * Runs one attempt of a job in a span, in the trace of its enqueueing or else in a new trace. An attempt that ends
 * while `isHandedBack` returns true is not recorded as failed.
 */
export async function inJobSpan(
  queued: Queued,
  isHandedBack: () => boolean,
  work: () => Promise<JobReport>,
): Promise<JobReport> {
  const parent = toParent(queued)
  const span = tracer.startSpan(`process ${queued.queueName}`, describe(queued), parent)
  spans.set(queued, span)
  try {
    const report = await context.with(trace.setSpan(parent, span), work)
    const { rows, rejected, uncovered, providers } = report
    span.setAttributes({
      'dao_data.rows': rows,
      'dao_data.rejected': rejected,
      'dao_data.uncovered': uncovered,
      'dao_data.providers': providers,
    })
    return report
  } catch (error) {
    if (isHandedBack()) span.setAttribute('dao_data.handed_back', true)
    else recordFailure(span, error)
    throw error
  } finally {
    span.end()
  }
}

function describe(queued: Queued) {
  return {
    kind: SpanKind.CONSUMER,
    attributes: {
      ...toMessaging('process', queued.queueName),
      ...(queued.id === undefined ? {} : { 'messaging.message.id': queued.id }),
      'dao_data.dataset': queued.name,
      'dao_data.attempt': queued.attemptsStarted,
    },
  }
}

function toMessaging(operation: 'send' | 'process', queue: string) {
  return {
    'messaging.system': 'bullmq',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    'messaging.destination.name': queue,
  }
}

/** Adds the payload to the job's span. Times are ISO 8601. */
export function notePayload(payload: JobPayload): void {
  const iso = (ms: number) => new Date(ms).toISOString()
  trace.getActiveSpan()?.setAttributes(
    payload.kind === 'slot'
      ? { 'dao_data.slot': iso(payload.slot) }
      : {
          'dao_data.range.from': iso(payload.from),
          'dao_data.range.to': iso(payload.to),
          'dao_data.range.interval': payload.interval,
        },
  )
}

/** Returns the trace ids of a job's last attempt in this process, for log lines. */
export function toJobLogFields(queued: Queued | undefined) {
  return toLogFields(queued === undefined ? undefined : spans.get(queued))
}
