import type { Config } from '../../../shared/config/config.ts'

/** Billed units of each call used here: owners, holders and a page of swaps. */
const UNITS_PER_CALL = 50

/** Shares of a day's calls for the hourly datasets; history gets the rest. */
const SHARES = { holders: 0.6, swaps: 0.3 }

const SLOTS_PER_DAY = 24

/** Returns how many calls a day's units allow. */
export function toCallsPerDay({ providers }: Config): number {
  return Math.max(1, Math.floor(providers.moralis.unitsPerDay / UNITS_PER_CALL))
}

/** Returns how many calls a dataset may make in one hourly slot, so that a day's units last until its end. */
export function toCallsPerSlot(config: Config, use: keyof typeof SHARES): number {
  return Math.max(1, Math.floor((toCallsPerDay(config) * SHARES[use]) / SLOTS_PER_DAY))
}

/** Returns how many calls of a day history may make without using those that the remaining hours need. */
export function toHistoryCallsPerDay(config: Config): number {
  const perSlot = toCallsPerSlot(config, 'holders') + toCallsPerSlot(config, 'swaps')
  return Math.max(1, toCallsPerDay(config) - SLOTS_PER_DAY * perSlot)
}
