import { DataError } from '../../shared/errors.ts'
import { type JobPayload, jobPayload } from '../../shared/queue/queues.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Entity, Job } from '../job/define-job.ts'

/** @throws DataError `payload` that names the job and what is wrong. */
export function parsePayload(job: Job, data: unknown): JobPayload {
  const payload = jobPayload.safeParse(data)
  if (payload.success) return payload.data
  throw new DataError('payload', `${job.name}: ${payload.error.message}`)
}

/**
 * Whom a payload is about: those that it names, else all of the job's; of these, those that are still there when it begins,
 * which may be nobody. Those that have left the registry since, or are not in this worker's yet, are left out.
 * @throws DataError `payload` when it names nobody that the job knows.
 */
export function toEntities(job: Job, registry: Registry, payload: JobPayload): readonly Entity[] {
  const at = payload.kind === 'slot' ? payload.slot : payload.from
  const ids = new Set(payload.entities)
  const named = job.entities(registry).filter(({ id }) => payload.entities === undefined || ids.has(id))
  if (named.length > 0 || payload.entities === undefined) return named.filter((entity) => isThereAt(entity, at))
  throw new DataError('payload', `${job.name}: no live entity has any of the ids ${payload.entities.join(', ')}`)
}
