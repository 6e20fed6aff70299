import { DAY_MS } from '../../shared/intervals.ts'

/** The assets that a runway counts. */
export const RUNWAY_ASSETS = ['stable', 'withoutOwnToken', 'all'] as const
/** The outflow of a runway: all spending (`gross`), or spending minus income (`net`). */
export const RUNWAY_BURNS = ['gross', 'net'] as const
/** Days of flows that give the burn. */
export const RUNWAY_WINDOWS = [90, 365] as const
/** Why there are no years, in the order of their priority. */
export const RUNWAY_REASONS = [
  'no_addresses',
  'incomplete_window',
  'no_assets',
  'partial_assets',
  'unpriced',
  'no_burn',
] as const

export type RunwayReason = (typeof RUNWAY_REASONS)[number]

/** A runway is `assets` divided by `burn` per year, measured over the last `window` days. */
export interface RunwayDefinition {
  readonly assets: (typeof RUNWAY_ASSETS)[number]
  readonly burn: (typeof RUNWAY_BURNS)[number]
  readonly window: (typeof RUNWAY_WINDOWS)[number]
}

/** The newest holdings of a treasury by kind, in USD; null if they are unknown. */
export interface RunwayHoldings {
  /** Unix milliseconds. */
  readonly at: number
  readonly valueUsd: number
  readonly ownTokenUsd: number | null
  readonly stablecoinUsd: number | null
  readonly otherUsd: number | null
  /** Whether holdings could not be read. */
  readonly isPartial: boolean
}

/** Transfers of one direction in the window. `usd` is the value of those with a price, null if none has one. */
export interface RunwayFlow {
  readonly usd: number | null
  readonly transfers: number
  readonly withoutPrice: number
}

export interface RunwayFacts {
  readonly hasAddresses: boolean
  /** Symbols of the DAO's own tokens. */
  readonly ownSymbols: readonly string[]
  /** The last day of the window is before `to`; both are starts of UTC days in Unix milliseconds. */
  readonly window: { readonly from: number; readonly to: number; readonly isComplete: boolean }
  /** Undefined if no holdings are current. */
  readonly holdings: RunwayHoldings | undefined
  readonly spending: RunwayFlow
  readonly income: RunwayFlow
}

export interface Runway {
  /** Value of the counted assets in USD. */
  readonly assetsUsd: number | null
  readonly burn: {
    readonly inUsd: number | null
    readonly outUsd: number | null
    readonly netUsd: number | null
    readonly perYearUsd: number | null
    readonly transfers: number
    readonly transfersWithoutPrice: number
  }
  readonly years: number | null
  readonly reason: RunwayReason | null
  readonly text: string
}

/** Largest share of spending transfers without a price. */
const MOST_UNPRICED = 0.05
const DAYS_PER_YEAR = 365

/** Computes how long the assets of a DAO last at the spending of a window, with the definition in words. */
export function computeRunway(facts: RunwayFacts, definition: RunwayDefinition): Runway {
  const { spending, income } = facts
  const isNet = definition.burn === 'net'
  const assetsUsd = facts.holdings === undefined ? null : countAssets(facts.holdings, definition.assets)
  const { isComplete } = facts.window
  const [inUsd, outUsd] = [income, spending].map((flow) => (isComplete ? toKnown(flow) : null)) as [Usd, Usd]
  const netUsd = inUsd === null || outUsd === null ? null : inUsd - outUsd
  const burnUsd = isNet ? netUsd && -netUsd : outUsd
  const perYearUsd = burnUsd === null ? null : (burnUsd * DAYS_PER_YEAR) / definition.window
  const burn = {
    ...{ inUsd, outUsd, netUsd, perYearUsd },
    transfers: spending.transfers + (isNet ? income.transfers : 0),
    transfersWithoutPrice: spending.withoutPrice + (isNet ? income.withoutPrice : 0),
  }
  const reason = findReason(facts, assetsUsd, perYearUsd)
  const years = reason === null && assetsUsd !== null && perYearUsd !== null ? assetsUsd / perYearUsd : null
  return { assetsUsd, burn, years, reason, text: describe(facts, definition, { assetsUsd, burnUsd, years, reason }) }
}

type Usd = number | null

/** No transfers are a known 0; transfers of which none has a price are unknown. */
const toKnown = ({ usd, transfers }: RunwayFlow): number | null => (transfers === 0 ? 0 : usd)

function countAssets(
  { valueUsd, stablecoinUsd, otherUsd }: RunwayHoldings,
  assets: RunwayDefinition['assets'],
): number | null {
  if (assets === 'all') return valueUsd
  if (assets === 'stable') return stablecoinUsd
  return stablecoinUsd === null && otherUsd === null ? null : (stablecoinUsd ?? 0) + (otherUsd ?? 0)
}

function findReason(
  { hasAddresses, window, holdings, spending }: RunwayFacts,
  assetsUsd: number | null,
  perYearUsd: number | null,
): RunwayReason | null {
  if (!hasAddresses) return 'no_addresses'
  if (!window.isComplete) return 'incomplete_window'
  if (assetsUsd === null) return 'no_assets'
  if (holdings?.isPartial === true) return 'partial_assets'
  if (perYearUsd === null || spending.withoutPrice > MOST_UNPRICED * spending.transfers) return 'unpriced'
  return perYearUsd <= 0 ? 'no_burn' : null
}

const toDay = (ms: number) => new Date(ms).toISOString().slice(0, 10)

const SCALES = [
  [1e9, 'B'],
  [1e6, 'M'],
  [1e3, 'K'],
] as const

/** A value with two decimals in the largest unit below it: $115.00M. */
function formatUsd(usd: number): string {
  const size = Math.abs(usd)
  const sign = usd < 0 ? '-' : ''
  const [scale, unit] = SCALES.find(([least]) => size >= least) ?? [1, '']
  return `${sign}$${(size / scale).toFixed(2)}${unit}`
}

function nameAssets({ assets }: RunwayDefinition, ownSymbols: readonly string[]): string {
  if (assets === 'stable') return 'stablecoins'
  if (assets === 'all') return 'all assets'
  return ownSymbols.length === 0 ? 'all assets' : `all assets without ${ownSymbols.join(' and ')}`
}

function describe(
  { window, holdings, ownSymbols, spending }: RunwayFacts,
  definition: RunwayDefinition,
  { assetsUsd, burnUsd, years, reason }: Pick<Runway, 'assetsUsd' | 'years' | 'reason'> & { burnUsd: number | null },
): string {
  const days = `the ${definition.window} days from ${toDay(window.from)} to ${toDay(window.to - DAY_MS)}`
  const assets = nameAssets(definition, ownSymbols)
  const burn = definition.burn === 'gross' ? 'gross spending' : 'spending minus income'
  const [assetsText, burnText] = [formatUsd(assetsUsd ?? 0), formatUsd(burnUsd ?? 0)]
  if (reason === 'no_addresses') return 'No runway: no address of the treasury is known.'
  if (reason === 'incomplete_window') return `No runway: the transfers of ${days} are not completely stored.`
  if (reason === 'no_assets') return `No runway: the value of ${assets} is not known.`
  if (reason === 'partial_assets') return `No runway: some holdings on ${toDay(holdings?.at ?? 0)} could not be read.`
  if (reason === 'unpriced')
    return `No runway: ${spending.withoutPrice} of ${spending.transfers} payments of ${days} have no price.`
  if (reason === 'no_burn') return `No runway: ${burn} of ${days} is ${burnText}, so ${assets} do not decrease.`
  const yearly = definition.window === DAYS_PER_YEAR ? '' : `, scaled to ${DAYS_PER_YEAR} days`
  return `${years?.toFixed(1)} years: ${assets} (${assetsText} on ${toDay(holdings?.at ?? 0)}) divided by ${burn} of ${days} (${burnText}${yearly}), without swaps, investments and internal transfers.`
}
