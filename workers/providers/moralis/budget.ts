import type { Config } from '../../../shared/config/config.ts'

/** What the provider bills for each call that is made here: owners, holders and a page of swaps. */
const UNITS_PER_CALL = 50

/** Parts of a day's calls for what is collected every hour; history has what they leave. */
const SHARES = { holders: 0.6, swaps: 0.3 }

const SLOTS_PER_DAY = 24

/** How many calls a day's units are good for. */
export function toCallsPerDay({ providers }: Config): number {
  return Math.max(1, Math.floor(providers.moralis.unitsPerDay / UNITS_PER_CALL))
}

/** How many calls one hour's slot may make for a dataset, so that a day's units last until its end. */
export function toCallsPerSlot(config: Config, use: keyof typeof SHARES): number {
  return Math.max(1, Math.floor((toCallsPerDay(config) * SHARES[use]) / SLOTS_PER_DAY))
}

/** How many calls of a day history may make, so that it takes none that the hours to come are going to need. */
export function toHistoryCallsPerDay(config: Config): number {
  const perSlot = toCallsPerSlot(config, 'holders') + toCallsPerSlot(config, 'swaps')
  return Math.max(1, toCallsPerDay(config) - SLOTS_PER_DAY * perSlot)
}
