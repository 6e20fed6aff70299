import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parseUnits } from 'viem/utils'
import { type Chain, type ChainLog, encodeV2Swap, encodeV3Swap, FACTORIES } from './chain.ts'
import { createLoggedChain } from './logged-chain.ts'

const UNI = '0x1f9840a85d5af5bf1d1762f925bdaddc4201f984'
const WETH = '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2'

/** Uniswap V3's pool of USDC (token 0) and WETH with a fee of 0.05 %. */
const REFERENCE_POOL = '0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640'

/**
 * A recorded swap of UNI (token 0) against WETH (token 1) on Uniswap V2. Amounts in the smallest unit, net to the
 * trader.
 */
export interface RecordedSwap {
  readonly hash: string
  /** Invented, because the recording lacks log indexes. The indexes are odd, so that other logs fit in between. */
  readonly logIndex: number
  readonly block: number
  /** Unix seconds. */
  readonly at: number
  readonly pool: string
  readonly uni: bigint
  readonly ether: bigint
  readonly usd: number
}

/** The recorded swaps, null without any. */
export function readSwaps(dir: string): readonly RecordedSwap[] | null {
  const file = join(dir, 'dex-swaps-uni-weth-univ2-2021', 'swaps.csv.gz')
  if (!existsSync(file)) return null
  const [header = '', ...lines] = gunzipSync(readFileSync(file)).toString().trimEnd().split('\n')
  const names = header.split(',')
  const inBlock = new Map<number, number>()
  return lines.map((line) => {
    const swap = toSwap(new Map(line.split(',').map((cell, at) => [names[at] ?? '', cell])))
    const place = inBlock.get(swap.block) ?? 0
    inBlock.set(swap.block, place + 1)
    return { ...swap, logIndex: 2 * place + 1 }
  })
}

function toSwap(cells: ReadonlyMap<string, string>): Omit<RecordedSwap, 'logIndex'> {
  const cell = (name: string) => cells.get(name) ?? ''
  const units = (name: string) => parseUnits(cell(name), 18)
  return {
    hash: cell('transaction.id'),
    block: Number(cell('transaction.blockNumber')),
    at: Number(cell('timestamp')),
    pool: cell('pair.id'),
    uni: units('amount0Out') - units('amount0In'),
    ether: units('amount1Out') - units('amount1In'),
    usd: Number(cell('amountUSD')),
  }
}

/**
 * A chain with the recorded swaps as logs, rebuilt from their amounts. The recording values each swap by ether's price
 * in dollar pools at that log, which also changes within a block. So each swap is preceded by a swap of the reference
 * pool that results in this price.
 */
export function toRecordedChain(swaps: readonly RecordedSwap[]): Chain {
  return createLoggedChain({
    logs: swaps.flatMap((swap) => [toReferenceLog(swap), toLog(swap)]),
    times: new Map(swaps.map(({ block, at }) => [block, at])),
    pools: swaps
      .slice(0, 1)
      .map(({ pool }) => ({ factory: FACTORIES.uniswapV2, tokens: [UNI, WETH], fee: null, address: pool })),
  })
}

function toLog(swap: RecordedSwap): ChainLog {
  return {
    address: swap.pool,
    ...encodeV2Swap(swap.uni, swap.ether),
    blockNumber: swap.block,
    transactionHash: swap.hash,
    transactionIndex: swap.logIndex,
    logIndex: swap.logIndex,
  }
}

/** A swap of a thousand ether for dollars at the price that valued the recorded swap. */
function toReferenceLog(swap: RecordedSwap): ChainLog {
  const dollars = (swap.usd / toEther(swap)) * 1_000
  return {
    address: REFERENCE_POOL,
    ...encodeV3Swap(BigInt(Math.round(dollars * 1e6)), -(10n ** 21n)),
    blockNumber: swap.block,
    transactionHash: `0x${createHash('sha256').update(`reference ${swap.hash}`).digest('hex')}`,
    transactionIndex: swap.logIndex - 1,
    logIndex: swap.logIndex - 1,
  }
}

const toEther = ({ ether }: RecordedSwap) => Math.abs(Number(ether)) / 1e18

/**
 * Ether's price in USD at the time of each swap, derived from the swaps: [Unix milliseconds, price]. Swaps of the same
 * second give one price, weighted by their ether.
 */
export function toEtherPrices(swaps: readonly RecordedSwap[]): (readonly [number, number])[] {
  const sums = new Map<number, { usd: number; ether: number }>()
  for (const swap of swaps) {
    const sum = sums.get(swap.at) ?? { usd: 0, ether: 0 }
    sums.set(swap.at, { usd: sum.usd + swap.usd, ether: sum.ether + toEther(swap) })
  }
  return [...sums].sort(([a], [b]) => a - b).map(([at, sum]) => [at * 1000, sum.usd / sum.ether] as const)
}
