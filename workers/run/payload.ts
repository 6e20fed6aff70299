import { DataError } from '../../shared/errors.ts'
import { type JobPayload, jobPayload, type SlotPiece } from '../../shared/queue/queues.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Entity, Job } from '../job/define-job.ts'

/** @throws DataError `payload` that names the job and what is wrong. */
export function parsePayload(job: Job, data: unknown): JobPayload {
  const payload = jobPayload.safeParse(data)
  if (payload.success) return payload.data
  throw new DataError('payload', `${job.name}: ${payload.error.message}`)
}

/** A slot that is not cut. */
const WHOLE: SlotPiece = { index: 0, of: 1 }

/**
 * Whom a payload is about: those that it names, else all of the job's or of its piece of them; of these, those that are still there when it begins,
 * which may be nobody. Those that have left the registry since, or are not in this worker's yet, are left out.
 * @throws DataError `payload` when it names nobody that the job knows.
 */
export function toEntities(job: Job, registry: Registry, payload: JobPayload): readonly Entity[] {
  const at = payload.kind === 'slot' ? payload.slot : payload.from
  const ids = new Set(payload.entities)
  const { index, of } = (payload.kind === 'slot' ? payload.piece : undefined) ?? WHOLE
  const named = job
    .entities(registry)
    .filter(({ id, key }) => key % of === index && (payload.entities === undefined || ids.has(id)))
  if (named.length > 0 || payload.entities === undefined) return named.filter((entity) => isThereAt(entity, at))
  throw new DataError('payload', `${job.name}: no live entity has any of the ids ${payload.entities.join(', ')}`)
}
