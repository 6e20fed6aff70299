import { z } from 'zod'
import type { DexTradeRow } from '../../../shared/datasets/dex-trades.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate } from '../../job/define-job.ts'
import { asSent, toIso } from '../answer.ts'

const side = z.object({ amount: asSent, usdAmount: asSent }).nullish().catch(null)

const swap = z.object({
  transactionHash: asSent,
  transactionType: asSent,
  blockTimestamp: asSent,
  blockNumber: asSent,
  walletAddress: asSent,
  pairAddress: asSent,
  exchangeName: asSent,
  bought: side,
  sold: side,
  totalValueUsd: asSent,
})

export type MoralisSwap = z.infer<typeof swap>

/**
 * erc20/{address}/swaps: a page, with a cursor if another page follows (docs/providers.md, section 4.3). An unreadable
 * swap is null.
 */
export const swapsAnswer = z.object({ cursor: z.string().nullish(), result: z.array(swap.nullable().catch(null)) })

/** The provider has no log indexes. Numbers from here on replace them, because no block has that many logs. */
const ORDINALS_FROM = 2 ** 31

/** Returns rows without values for unreadable swaps, so that the row check counts them. */
export const toUnreadTrades = (count: number, { key, chain }: Token): Candidate<DexTradeRow>[] =>
  Array.from({ length: count }, () => ({
    ...{ token: key, chain, traded_at: null, block_number: null, transaction_hash: null, log_index: null },
    ...{ pool: null, exchange: null, taker: null, side: null, amount: null, amount_usd: null, price: null },
  }))

/**
 * Returns a trade for each swap. The swaps of one transaction are numbered by pool, side and amount, so that the same
 * swaps get the same numbers in any order and on any page. A swap that is sent twice, because pages shift, is one
 * trade.
 */
export function toMoralisTrades(swaps: readonly MoralisSwap[], token: Token): Candidate<DexTradeRow>[] {
  const byTransaction = new Map<string, Map<string, MoralisSwap>>()
  for (const swap of swaps) {
    const hash = toText(swap.transactionHash)
    const own = byTransaction.get(hash) ?? new Map<string, MoralisSwap>()
    own.set(toSortKey(swap), swap)
    byTransaction.set(hash, own)
  }
  return [...byTransaction].flatMap(([hash, own]) =>
    [...own]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, swap], ordinal) => toRow(swap, hash, ORDINALS_FROM + ordinal, token)),
  )
}

function toSortKey({ pairAddress, transactionType, bought, sold }: MoralisSwap): string {
  return [toText(pairAddress), transactionType, bought?.amount, sold?.amount].join(' ')
}

/** Returns the text in lower case. Other values become empty, which the row check rejects. */
const toText = (value: unknown): string => (typeof value === 'string' ? value.toLowerCase() : '')

function toRow(swap: MoralisSwap, hash: string, logIndex: number, token: Token): Candidate<DexTradeRow> {
  const isBuy = swap.transactionType === 'buy'
  const own = isBuy ? swap.bought : swap.sold
  const amount = Math.abs(Number(own?.amount ?? Number.NaN))
  const usd = toUsd(swap.totalValueUsd)
  return {
    token: token.key,
    traded_at: toIso(swap.blockTimestamp),
    chain: token.chain,
    block_number: Number(swap.blockNumber ?? Number.NaN),
    transaction_hash: hash,
    log_index: logIndex,
    pool: toText(swap.pairAddress),
    exchange: toLabel(swap.exchangeName),
    taker: toText(swap.walletAddress),
    // Values other than buy and sell are rejected by the row check.
    side: toText(swap.transactionType).toUpperCase(),
    amount,
    amount_usd: usd,
    price: usd === null ? null : usd / amount,
  }
}

/** Numbers may arrive as texts. 0 means unknown: the provider sends it if it does not know the value. */
function toUsd(value: unknown): number | null {
  const usd = Math.abs(Number(value ?? Number.NaN))
  return Number.isFinite(usd) && usd > 0 ? usd : null
}

/** Turns "Uniswap v2" into `uniswap-v2`, the label of trades read from the chain. */
function toLabel(name: unknown): unknown {
  return typeof name === 'string' ? name.trim().toLowerCase().replace(/\s+/g, '-') : null
}
