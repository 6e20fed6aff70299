import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parseUnits } from 'viem'
import { type Chain, encodeV2Swap, FACTORIES } from './chain.ts'
import { createLoggedChain } from './logged-chain.ts'

const UNI = '0x1f9840a85d5af5bf1d1762f925bdaddc4201f984'
const WETH = '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2'

/** A recorded swap of UNI (token 0) against WETH (token 1) on Uniswap V2. Amounts in the smallest unit, net to the trader. */
export interface RecordedSwap {
  readonly hash: string
  readonly logIndex: number
  readonly block: number
  /** Unix seconds. */
  readonly at: number
  readonly pool: string
  readonly uni: bigint
  readonly ether: bigint
  readonly usd: number
}

/** The swaps on record, null without any. */
export function readSwaps(dir: string): readonly RecordedSwap[] | null {
  const file = join(dir, 'dex-swaps-uni-weth-univ2-2021', 'swaps.csv.gz')
  if (!existsSync(file)) return null
  const [header = '', ...lines] = gunzipSync(readFileSync(file)).toString().trimEnd().split('\n')
  const names = header.split(',')
  return lines.map((line) => toSwap(new Map(line.split(',').map((cell, at) => [names[at] ?? '', cell]))))
}

function toSwap(cells: ReadonlyMap<string, string>): RecordedSwap {
  const cell = (name: string) => cells.get(name) ?? ''
  const units = (name: string) => parseUnits(cell(name), 18)
  return {
    hash: cell('transaction.id'),
    logIndex: Number(cell('id').split('-')[1]),
    block: Number(cell('transaction.blockNumber')),
    at: Number(cell('timestamp')),
    pool: cell('pair.id'),
    uni: units('amount0Out') - units('amount0In'),
    ether: units('amount1Out') - units('amount1In'),
    usd: Number(cell('amountUSD')),
  }
}

/** A chain that has the recorded swaps as logs, rebuilt from their amounts. */
export function toRecordedChain(swaps: readonly RecordedSwap[]): Chain {
  return createLoggedChain({
    logs: swaps.map((swap) => ({
      address: swap.pool,
      ...encodeV2Swap(swap.uni, swap.ether),
      blockNumber: swap.block,
      transactionHash: swap.hash,
      transactionIndex: 0,
      logIndex: swap.logIndex,
    })),
    times: new Map(swaps.map(({ block, at }) => [block, at])),
    pools: swaps
      .slice(0, 1)
      .map(({ pool }) => ({ factory: FACTORIES.uniswapV2, tokens: [UNI, WETH], fee: null, address: pool })),
  })
}

/**
 * Ether's price in USD at the time of each swap, as the swaps tell it: [Unix milliseconds, price]. Swaps of the same second
 * give one price, weighted by their ether.
 */
export function toEtherPrices(swaps: readonly RecordedSwap[]): (readonly [number, number])[] {
  const sums = new Map<number, { usd: number; ether: number }>()
  for (const { at, usd, ether } of swaps) {
    const sum = sums.get(at) ?? { usd: 0, ether: 0 }
    sums.set(at, { usd: sum.usd + usd, ether: sum.ether + Math.abs(Number(ether)) / 1e18 })
  }
  return [...sums].sort(([a], [b]) => a - b).map(([at, sum]) => [at * 1000, sum.usd / sum.ether] as const)
}
