import type { Config } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { type JobPayload, jobPayload, type SlotPiece } from '../../shared/queue/queues.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Entity, Job, Peers } from '../job/define-job.ts'

/** @throws DataError `payload` that names the job and what is wrong. */
export function parsePayload(job: Job, data: unknown): JobPayload {
  const payload = jobPayload.safeParse(data)
  if (payload.success) return payload.data
  throw new DataError('payload', `${job.name}: ${payload.error.message}`)
}

/** What says whom a payload is about. */
interface Known {
  readonly registry: Registry
  readonly config: Config
}

/** A slot that is not cut. */
const WHOLE: SlotPiece = { index: 0, of: 1 }

/**
 * Whom a payload is about: those that it names, else all of the job's or of its piece of them; of these, those that are still there when it begins,
 * which may be nobody. Those that have left the registry since, or are not in this worker's yet, are left out.
 * @throws DataError `payload` when it names nobody that the job knows.
 */
export function toEntities(job: Job, { registry, config }: Known, payload: JobPayload): readonly Entity[] {
  const at = payload.kind === 'slot' ? payload.slot : payload.from
  const ids = new Set(payload.entities)
  const { index, of } = (payload.kind === 'slot' ? payload.piece : undefined) ?? WHOLE
  const named = job
    .entities(registry)
    .filter((entity) => of === 1 || job.pieceKey(entity, config) % of === index)
    .filter(({ id }) => payload.entities === undefined || ids.has(id))
  if (named.length > 0 || payload.entities === undefined) return named.filter((entity) => isThereAt(entity, at))
  throw new DataError('payload', `${job.name}: no live entity has any of the ids ${payload.entities.join(', ')}`)
}

/**
 * Everybody in a payload's slot, and in its piece, also when it is tried again and names those that are left.
 * @throws DataError `payload` as `toEntities` does.
 */
export function toPeers(job: Job, known: Known, payload: JobPayload): Peers<Entity> {
  const own = toEntities(job, known, payload.kind === 'slot' ? { ...payload, entities: undefined } : payload)
  if (payload.kind === 'range' || payload.piece === undefined) return { all: own, own }
  return { all: toEntities(job, known, { kind: 'slot', slot: payload.slot }), own }
}
