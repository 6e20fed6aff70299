import { DataError } from '../../shared/errors.ts'
import { type JobPayload, jobPayload } from '../../shared/queue/queues.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Entity, Job } from '../job/define-job.ts'

/** @throws DataError `payload` that names the job and what is wrong. */
export function parsePayload(job: Job, data: unknown): JobPayload {
  const payload = jobPayload.safeParse(data)
  if (payload.success) return payload.data
  throw new DataError('payload', `${job.name}: ${payload.error.message}`)
}

/**
 * Whom a payload is about: those that it names, else all of the job's.
 * @throws DataError `payload` for an id that no live entity has.
 */
export function toEntities(job: Job, registry: Registry, payload: JobPayload): readonly Entity[] {
  const all = job.entities(registry)
  if (payload.entities === undefined) return all
  const byId = new Map(all.map((entity) => [entity.id, entity]))
  return payload.entities.map((id) => {
    const entity = byId.get(id)
    if (entity === undefined) throw new DataError('payload', `${job.name}: no live entity has the id ${id}`)
    return entity
  })
}
