import { toId } from '../../shared/ids.ts'
import { type Cadence, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Entity, Run } from './define-job.ts'

/**
 * Returns the items that are due in a slot (Unix milliseconds) of the cadence, at most `perSlot`, which is at least 1.
 * The rotation depends only on the slot. A slot that is collected again has the same items, and no cursor is stored.
 */
export function toTurn<T>(items: readonly T[], perSlot: number, slot: number, cadence: Cadence): T[] {
  const turns = Math.max(1, Math.ceil(items.length / perSlot))
  const turn = Math.floor(slot / (INTERVAL_SECONDS[cadence] * 1000)) % turns
  return items.filter((_, index) => index % turns === turn)
}

/**
 * Returns the due entities of a run, at most `perSlot` over all pieces of its slot, as if the slot were one job. If an
 * earlier provider has answered a due entity, its turn goes to an entity that was passed on, chosen by a hash of the
 * slot and its id.
 */
export function toTurnOfRun<E extends Entity>(
  { entities, peers, passedOn, slot }: Pick<Run<unknown, E>, 'entities' | 'peers' | 'passedOn' | 'slot'>,
  perSlot: number,
  cadence: Cadence,
): E[] {
  const due = new Set(toTurn(peers.all, perSlot, slot, cadence).map(({ key }) => key))
  const isDue = ({ key }: E) => due.has(key)
  const turn = entities.filter(isDue)
  const free = peers.own.filter(isDue).length - turn.length
  const lots = passedOn.filter((entity) => !isDue(entity)).map((entity) => ({ entity, lot: toId(slot, entity.id) }))
  const drawn = lots.sort((one, other) => (one.lot < other.lot ? -1 : 1)).slice(0, free)
  return [...turn, ...drawn.map(({ entity }) => entity)]
}
