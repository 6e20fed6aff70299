import { context, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api'
import type { Job as QueuedJob } from 'bullmq'
import type { JobPayload, JobReport } from '../shared/queues.ts'
import { recordFailure, toLogFields, tracer } from '../shared/spans.ts'

type Queued = QueuedJob<JobPayload, JobReport>

/** The queue's events about a job come outside of its span, with the same object. */
const spans = new WeakMap<Queued, Span>()

/** Runs one attempt of a job as a trace of its own. Work that `isHandedBack` when it ends is no failure. */
export async function inJobSpan(
  queued: Queued,
  isHandedBack: () => boolean,
  work: () => Promise<JobReport>,
): Promise<JobReport> {
  const span = tracer.startSpan(`process ${queued.queueName}`, describe(queued), ROOT_CONTEXT)
  spans.set(queued, span)
  try {
    const report = await context.with(trace.setSpan(ROOT_CONTEXT, span), work)
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
      'messaging.system': 'bullmq',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': queued.queueName,
      ...(queued.id === undefined ? {} : { 'messaging.message.id': queued.id }),
      'dao_data.dataset': queued.name,
      'dao_data.attempt': queued.attemptsStarted,
    },
  }
}

/** Says in the job's span what is to be collected, as ISO 8601 times. */
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

/** The ids of the trace of a job's last attempt in this process, for log lines about it. */
export function toJobLogFields(queued: Queued | undefined) {
  return toLogFields(queued === undefined ? undefined : spans.get(queued))
}
