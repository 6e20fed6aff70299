import { type Chain, type ChainLog, encodeV2Swap, FACTORIES, type NodeHabits } from './chain.ts'
import { createLoggedChain } from './logged-chain.ts'

export const UNI = '0x1f9840a85d5af5bf1d1762f925bdaddc4201f984'
export const WETH = '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2'
export const ONE = 10n ** 18n
/** The time of the first block in Unix seconds. */
export const START = Date.parse('2024-05-06T00:00:00Z') / 1000
export const FIRST_BLOCK = 19_800_000
/** The only pool, of UNI and WETH. */
export const POOL = `0x${'5'.repeat(40)}`

export const hashOf = (n: number) => `0x${n.toString(16).padStart(64, '0')}`

/** A swap of UNI for ether in the n-th block after the first; a block takes 12 seconds. */
export function swapAt(n: number, more: Partial<ChainLog> = {}): ChainLog {
  return {
    address: POOL,
    ...encodeV2Swap(BigInt(n) * ONE, -ONE / 100n),
    blockNumber: FIRST_BLOCK + n,
    transactionHash: hashOf(n),
    transactionIndex: 0,
    logIndex: 5,
    ...more,
  }
}

/** A chain with one pool and these logs. */
export function toChain(
  logs: readonly ChainLog[],
  more: { habits?: NodeHabits; missing?: ReadonlySet<number> } = {},
): Chain {
  const times = new Map([0, 1_000_000].map((n) => [FIRST_BLOCK + n, START + n * 12]))
  const pools = [{ factory: FACTORIES.uniswapV2, tokens: [UNI, WETH], fee: null, address: POOL } as const]
  return createLoggedChain({ logs, times, pools, ...more })
}

/** The clock in Unix milliseconds when the n-th block is the newest. */
export const nowAt = (n: number) => (START + n * 12 + 1) * 1000
