import type { Config } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { type JobPayload, jobPayload, type SlotPiece } from '../../shared/queue/queues.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Entity, Job, Peers } from '../job/define-job.ts'

/** @throws DataError `payload` with the job name and the validation error. */
export function parsePayload(job: Job, data: unknown): JobPayload {
  const payload = jobPayload.safeParse(data)
  if (payload.success) return payload.data
  throw new DataError('payload', `${job.name}: ${payload.error.message}`)
}

/** Sources that resolve a payload to entities. */
interface Known {
  readonly registry: Registry
  readonly config: Config
}

/** A slot that is not split into pieces. */
const WHOLE: SlotPiece = { index: 0, of: 1 }

/**
 * Returns the entities of a payload: the named ids, or else all entities of the job or of its piece. Entities that have
 * ended before the payload starts are dropped, so the result may be empty. Ids that the registry of this worker does
 * not contain are ignored.
 * @throws DataError `payload` if ids are named and the job has none of them.
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
 * Returns all entities of the payload's slot and of its piece, also on a retry that names only the remaining entities.
 * @throws DataError `payload`, see `toEntities`.
 */
export function toPeers(job: Job, known: Known, payload: JobPayload): Peers<Entity> {
  const own = toEntities(job, known, payload.kind === 'slot' ? { ...payload, entities: undefined } : payload)
  if (payload.kind === 'range' || payload.piece === undefined) return { all: own, own }
  return { all: toEntities(job, known, { kind: 'slot', slot: payload.slot }), own }
}
