import { type Cadence, INTERVAL_SECONDS } from '../../shared/intervals.ts'

/**
 * Those whose turn it is in a slot (Unix milliseconds) of the cadence, at most `perSlot`, which is at least 1. Only the slot
 * decides, so a slot that is collected again has the same ones, and no cursor has to be stored.
 */
export function toTurn<T>(items: readonly T[], perSlot: number, slot: number, cadence: Cadence): T[] {
  const turns = Math.max(1, Math.ceil(items.length / perSlot))
  const turn = Math.floor(slot / (INTERVAL_SECONDS[cadence] * 1000)) % turns
  return items.filter((_, index) => index % turns === turn)
}
