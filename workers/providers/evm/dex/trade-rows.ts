import { formatUnits } from 'viem/utils'
import type { DexTradeRow } from '../../../../shared/datasets/dex-trades.ts'
import type { Token } from '../../../../shared/registry/entities.ts'
import { type Candidate, OMITTED } from '../../../job/define-job.ts'
import type { UsdAt } from './dollars.ts'
import type { QuoteToken } from './exchanges.ts'
import type { Pool } from './pools.ts'
import { countSkip, type SkipCounts, type Swap } from './swaps.ts'

/** Facts that turn the swaps of a chain into trades. Addresses and hashes are lower-case, times are Unix seconds. */
export interface TradeFacts {
  readonly chain: string
  /** The collected tokens, by address. */
  readonly tokens: ReadonlyMap<string, Token>
  readonly quotes: ReadonlyMap<string, QuoteToken>
  readonly pools: ReadonlyMap<string, Pool>
  /** In Unix seconds. */
  readonly timeOf: (block: number) => number
  readonly senderOf: (transactionHash: string) => string
  readonly usdAt: UsdAt
}

/**
 * Returns a trade for each token of the registry in each swap (docs/providers.md, section 6.2). Amounts are converted
 * from integers to exact decimals before they become numbers.
 */
export function toTrades(swaps: readonly Swap[], facts: TradeFacts, skipped: SkipCounts): Candidate<DexTradeRow>[] {
  return swaps.flatMap((swap) => {
    const pool = facts.pools.get(swap.log.address)
    return pool === undefined ? [] : toTradesOfSwap(swap, pool, facts, skipped)
  })
}

function toTradesOfSwap(swap: Swap, pool: Pool, facts: TradeFacts, skipped: SkipCounts): Candidate<DexTradeRow>[] {
  const { log } = swap
  const seconds = facts.timeOf(log.blockNumber)
  const usd = toUsd(swap, pool, facts)
  const quote = facts.quotes.get(pool.quote)
  const fault = usd === undefined && quote !== undefined ? facts.usdAt.faultOf?.(quote) : undefined
  return [pool.token, pool.quote].flatMap((address) => {
    const token = facts.tokens.get(address)
    if (token === undefined) return []
    const net = toNet(swap, pool, address)
    if (net === 0n) {
      countSkip(skipped, 'zero amount')
      return []
    }
    const amount = toAmount(net, token.decimals)
    const row: Candidate<DexTradeRow> = {
      token: token.key,
      traded_at: new Date(seconds * 1000).toISOString(),
      chain: facts.chain,
      block_number: log.blockNumber,
      transaction_hash: log.transactionHash,
      log_index: log.logIndex,
      pool: pool.address,
      exchange: pool.exchange,
      taker: facts.senderOf(log.transactionHash),
      side: net > 0n ? 'BUY' : 'SELL',
      amount,
      amount_usd: usd ?? null,
      price: usd === undefined ? null : usd / amount,
      ...(fault === undefined ? {} : { [OMITTED]: [fault] }),
    }
    return [row]
  })
}

/** Returns the net amount of one token. A pool's tokens are ordered by address. */
function toNet(swap: Swap, pool: Pool, address: string): bigint {
  const counterToken = address === pool.token ? pool.quote : pool.token
  return address < counterToken ? swap.net0 : swap.net1
}

/**
 * Returns the value of the swap in USD, from its quote side. Undefined if the quote token has no price, or if both
 * sides have the same sign: the quote token did not pay for the other token then.
 */
function toUsd(swap: Swap, pool: Pool, facts: TradeFacts): number | undefined {
  const quote = facts.quotes.get(pool.quote)
  const paid = toNet(swap, pool, pool.quote)
  const isExchange = paid !== 0n && paid > 0n !== toNet(swap, pool, pool.token) > 0n
  if (quote === undefined || !isExchange) return undefined
  const usd = facts.usdAt(quote, swap.log)
  return usd === undefined ? undefined : toAmount(paid, quote.decimals) * usd
}

function toAmount(net: bigint, decimals: number): number {
  return Number(formatUnits(net < 0n ? -net : net, decimals))
}
