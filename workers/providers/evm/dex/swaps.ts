import { parseAbi } from 'viem/utils'
import { DataError } from '../../../../shared/errors.ts'
import { createEventDecoder } from '../logs/events.ts'
import type { RpcLog } from '../logs/node.ts'
import type { Gap } from '../logs/turns.ts'

/** One swap: what the trader received of each pool token, in smallest units; negative amounts were paid. */
export interface Swap {
  readonly log: RpcLog
  readonly net0: bigint
  readonly net1: bigint
}

export type SkipReason = 'removed' | 'unknown pool' | 'undecodable' | 'zero amount'

export type SkipCounts = Map<SkipReason, number>

const swapEvents = createEventDecoder(
  parseAbi([
    'event Swap(address indexed sender, uint256 amount0In, uint256 amount1In, uint256 amount0Out, uint256 amount1Out, address indexed to)',
    'event Swap(address indexed sender, address indexed recipient, int256 amount0, int256 amount1, uint160 sqrtPriceX96, uint128 liquidity, int24 tick)',
  ]),
)

/** The events' first topics (docs/providers.md, section 6.1). */
export const SWAP_TOPICS = swapEvents.topics

/**
 * Returns what the trader received (docs/providers.md, section 6.2). A V2 event has the amounts in and out, a V3 event
 * the changes of the pool's balances. Undefined for any other log, even if its first topic matches.
 */
export function decodeSwap(log: Pick<RpcLog, 'topics' | 'data'>): Pick<Swap, 'net0' | 'net1'> | undefined {
  const event = swapEvents.decode(log)?.args
  if (event === undefined) return undefined
  if ('amount0In' in event) {
    return { net0: event.amount0Out - event.amount0In, net1: event.amount1Out - event.amount1In }
  }
  return { net0: -event.amount0, net1: -event.amount1 }
}

/**
 * Returns the square root of the price after a V3 swap, times 2^96, token 1 per token 0. Undefined for any other log.
 */
export function decodeRootPrice(log: Pick<RpcLog, 'topics' | 'data'>): bigint | undefined {
  const event = swapEvents.decode(log)?.args
  return event !== undefined && 'sqrtPriceX96' in event ? event.sqrtPriceX96 : undefined
}

/** Decodes the logs of known pools. Every log without a swap becomes a gap or is counted by its reason. */
export function toSwaps(
  logs: readonly RpcLog[],
  pools: ReadonlyMap<string, unknown>,
): { swaps: Swap[]; gaps: Gap[]; skipped: SkipCounts } {
  const swaps: Swap[] = []
  const gaps: Gap[] = []
  const skipped: SkipCounts = new Map()
  for (const log of logs) {
    const reason = log.removed ? 'removed' : pools.has(log.address) ? undefined : 'unknown pool'
    const net = reason === undefined ? decodeSwap(log) : undefined
    const fault = reason === undefined ? toSwapFault(log) : undefined
    if (net !== undefined) swaps.push({ log, ...net })
    else if (fault !== undefined) gaps.push({ log, reason: new DataError('provider_malformed', fault) })
    else countSkip(skipped, reason ?? 'undecodable')
  }
  return { swaps, gaps, skipped }
}

/** Returns why a log of a swap cannot be read; undefined for any other log. */
export function toSwapFault(log: RpcLog): string | undefined {
  const fault = swapEvents.faultOf(log)
  return log.fault ?? (fault && `log ${log.logIndex} of ${log.transactionHash}: ${fault}`)
}

export function countSkip(skipped: SkipCounts, reason: SkipReason): void {
  skipped.set(reason, (skipped.get(reason) ?? 0) + 1)
}
