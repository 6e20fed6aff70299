import type { FlowKind } from '../../shared/datasets/treasury-flows.ts'
import { DAY_MS, MONDAY_SHIFT_MS, type TimeRange } from '../../shared/intervals.ts'

export const FLOW_INTERVALS = ['1d', '7d', '1M'] as const
export type FlowInterval = (typeof FLOW_INTERVALS)[number]
export const FLOW_GROUPS = ['total', 'kind', 'asset'] as const
export type FlowGroup = (typeof FLOW_GROUPS)[number]

/** The sides of a transfer, as the treasury sees it. */
export const FLOW_SIDES = ['in', 'out', 'internal'] as const

/** Transfers of one asset on one day with the same kind and side. */
export interface DayFlow {
  /** Start of the UTC day in Unix milliseconds. */
  readonly day: number
  readonly kind: FlowKind
  readonly side: (typeof FLOW_SIDES)[number]
  /** Whether its transaction also moved another asset the other way: a swap, a wrap or a stake. */
  readonly isSwapped: boolean
  /** Sum of the quantities in base units. */
  readonly units: bigint
  readonly transfers: number
  /** Null if the asset has no price on that day. */
  readonly priceUsd: number | null
}

/** An asset is identified by its chain and contract; the contract of a native coin is empty. */
export interface AssetKey {
  /** Slug of the chain. */
  readonly chain: string
  readonly contract: string
}

export interface AssetFlows extends AssetKey {
  readonly symbol: string
  /** Null if the contract has none: its quantities are unknown. */
  readonly decimals: number | null
  readonly days: readonly DayFlow[]
}

/** Sums of the transfers that start in a bucket. */
export interface FlowSum {
  /** Start of the bucket in Unix milliseconds. */
  readonly at: number
  readonly kind: FlowKind | null
  readonly asset: Pick<AssetFlows, 'chain' | 'contract' | 'symbol'> | null
  readonly inQuantity: number | null
  readonly outQuantity: number | null
  readonly netQuantity: number | null
  readonly inUsd: number | null
  readonly outUsd: number | null
  readonly netUsd: number | null
  readonly transfers: number
  readonly transfersWithoutPrice: number
}

/** The start of the UTC day, of the week from Monday on, or of the UTC month that contains a time. */
export function toFlowBucket(ms: number, interval: FlowInterval): number {
  if (interval === '1M') {
    const date = new Date(ms)
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth())
  }
  const [step, shift] = interval === '7d' ? [7 * DAY_MS, MONDAY_SHIFT_MS] : [DAY_MS, 0]
  return Math.floor((ms - shift) / step) * step + shift
}

/** The end of the bucket that starts at a time. */
export function toFlowBucketEnd(start: number, interval: FlowInterval): number {
  if (interval !== '1M') return start + (interval === '7d' ? 7 * DAY_MS : DAY_MS)
  const date = new Date(start)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}

/** The complete buckets that start in a range. */
export function toFlowRange({ from, to }: TimeRange, interval: FlowInterval): TimeRange {
  const next = (ms: number) => {
    const start = toFlowBucket(ms, interval)
    return start === ms ? ms : toFlowBucketEnd(start, interval)
  }
  return { from: next(from), to: next(to) }
}

/** An integer in base units as the nearest number of whole tokens. */
export const toTokens = (units: bigint, decimals: number): number => Number(`${units}e-${decimals}`)

export const toAssetKey = ({ chain, contract }: AssetKey): string => `${chain}/${contract}`

/** Transfers between own addresses change no total, and the parts of a swap or a wrap replace one asset by another. */
const isCounted = ({ kind, isSwapped }: DayFlow, by: FlowGroup): boolean => {
  if (kind === 'spam') return false
  if (kind === 'internal') return by === 'kind'
  return by !== 'total' || !(isSwapped || kind === 'swap')
}

/** The values of one side. `usd` is that of the transfers with a price. */
interface Side {
  units: bigint
  usd: number
  transfers: number
  withoutPrice: number
}

interface Group {
  readonly at: number
  readonly kind: FlowKind | null
  readonly asset: AssetFlows | null
  readonly in: Side
  readonly out: Side
}

const createSide = (): Side => ({ units: 0n, usd: 0, transfers: 0, withoutPrice: 0 })

function addTo(side: Side, { units, transfers, priceUsd }: DayFlow, decimals: number | null): void {
  side.units += units
  side.transfers += transfers
  if (priceUsd === null || decimals === null) side.withoutPrice += transfers
  else side.usd += toTokens(units, decimals) * priceUsd
}

/** The sums by bucket and by kind or asset, oldest bucket first. `range` has starts of buckets. */
export function sumFlows(
  assets: readonly AssetFlows[],
  { by, interval, range }: { readonly by: FlowGroup; readonly interval: FlowInterval; readonly range: TimeRange },
): FlowSum[] {
  const groups = new Map<string, Group>()
  for (const asset of assets)
    for (const flow of asset.days) {
      const at = toFlowBucket(flow.day, interval)
      if (at < range.from || at >= range.to || !isCounted(flow, by)) continue
      const key = `${at} ${by === 'kind' ? flow.kind : by === 'asset' ? toAssetKey(asset) : ''}`
      let group = groups.get(key)
      if (group === undefined) {
        const [kind, of] = [by === 'kind' ? flow.kind : null, by === 'asset' ? asset : null]
        group = { at, kind, asset: of, in: createSide(), out: createSide() }
        groups.set(key, group)
      }
      if (flow.side !== 'out') addTo(group.in, flow, asset.decimals)
      if (flow.side !== 'in') addTo(group.out, flow, asset.decimals)
    }
  const rank = ({ kind, asset }: Group) => kind ?? (asset === null ? '' : toAssetKey(asset))
  return [...groups.values()].sort((a, b) => a.at - b.at || (rank(a) < rank(b) ? -1 : 1)).map(toSum)
}

function toSum({ at, kind, asset, in: received, out: spent }: Group): FlowSum {
  const decimals = asset?.decimals ?? null
  const toQuantity = (units: bigint) => (decimals === null ? null : toTokens(units, decimals))
  // A transfer between own addresses is on both sides.
  const isOnBoth = kind === 'internal'
  const count = (member: 'transfers' | 'withoutPrice') =>
    isOnBoth ? received[member] : received[member] + spent[member]
  const [transfers, transfersWithoutPrice] = [count('transfers'), count('withoutPrice')]
  const isUnpriced = transfers === transfersWithoutPrice
  const toUsd = (side: Side) =>
    isUnpriced || (side.transfers > 0 && side.transfers === side.withoutPrice) ? null : side.usd
  const [inUsd, outUsd] = [toUsd(received), toUsd(spent)]
  return {
    ...{ at, kind, asset },
    inQuantity: toQuantity(received.units),
    outQuantity: toQuantity(spent.units),
    netQuantity: toQuantity(received.units - spent.units),
    ...{ inUsd, outUsd, netUsd: inUsd === null || outUsd === null ? null : inUsd - outUsd },
    ...{ transfers, transfersWithoutPrice },
  }
}
