import { toId } from '../../shared/ids.ts'
import { type Cadence, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Entity, Run } from './define-job.ts'

/**
 * Those whose turn it is in a slot (Unix milliseconds) of the cadence, at most `perSlot`, which is at least 1. Only the slot
 * decides, so a slot that is collected again has the same ones, and no cursor has to be stored.
 */
export function toTurn<T>(items: readonly T[], perSlot: number, slot: number, cadence: Cadence): T[] {
  const turns = Math.max(1, Math.ceil(items.length / perSlot))
  const turn = Math.floor(slot / (INTERVAL_SECONDS[cadence] * 1000)) % turns
  return items.filter((_, index) => index % turns === turn)
}

/**
 * The entities of a run whose turn it is, of at most `perSlot` in all pieces of its slot: the same as if the slot were one
 * job. A turn of an entity that another provider has answered goes to one that was passed on; the slot draws lots among
 * these.
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
