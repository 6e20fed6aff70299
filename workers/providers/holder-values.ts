import type { z } from 'zod'
import { TOP_HOLDERS, type TokenHoldersRow, tokenHolder } from '../../shared/datasets/holders.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { type Candidate, OMITTED } from '../job/define-job.ts'
import { orNull, toIso, toNumber } from './answer.ts'

/**
 * Shares have two decimals or are floats. Their sum is rounded to this precision, so that no rounding error is stored.
 */
const SUM_DECIMALS = 1e10

/** An unvalidated holder of a provider; each value is checked here. */
type HolderCandidate = { readonly [K in keyof z.infer<typeof tokenHolder>]: unknown }

/**
 * Builds the snapshot of the largest holders. Repeated addresses are left out and reported. An impossible value in USD
 * counts as unknown. `top100_share` is the sum of the listed shares. An unreadable holder among the hundred largest
 * stays in the list, so the check rejects the snapshot: without that holder, its share would count as zero.
 */
export function toHoldersRow(
  candidates: readonly HolderCandidate[],
  totalHolders: unknown,
  token: Token,
  slot: number,
): Candidate<TokenHoldersRow> {
  const faults: string[] = []
  const byAddress = new Map<string, z.infer<typeof tokenHolder>>()
  const unreadable: HolderCandidate[] = []
  // Providers list the largest first.
  for (const [rank, candidate] of candidates.entries()) {
    const amount_usd = orNull(tokenHolder.shape.amount_usd, candidate.amount_usd)
    if (amount_usd === null && (candidate.amount_usd ?? null) !== null)
      faults.push('holders.*.amount_usd: no value that can be')
    const { data: holder, error } = tokenHolder.safeParse({ ...candidate, amount_usd })
    if (holder === undefined && rank < TOP_HOLDERS) unreadable.push({ ...candidate, amount_usd })
    else if (holder === undefined)
      faults.push(...error.issues.slice(0, 1).map(({ path, message }) => `holders.*.${path.join('.')}: ${message}`))
    else if (byAddress.has(holder.address)) faults.push('holders.*.address: is listed twice')
    else byAddress.set(holder.address, holder)
  }
  const holders = [...byAddress.values()].sort((a, b) => b.amount - a.amount)
  const listed = holders.slice(0, TOP_HOLDERS - unreadable.length)
  return {
    token: token.key,
    observed_at: toIso(slot),
    total_holders: toNumber(totalHolders),
    top100_share: sumShares(listed),
    holders: [...unreadable, ...listed],
    ...(faults.length === 0 ? {} : { [OMITTED]: faults }),
  }
}

/** Sums the shares in percent. */
export function sumShares(holders: readonly { readonly share: number }[]): number {
  return Math.round(holders.reduce((sum, { share }) => sum + share, 0) * SUM_DECIMALS) / SUM_DECIMALS
}

/** Providers write addresses in mixed case. */
export function toLowerCase(address: unknown): unknown {
  return typeof address === 'string' ? address.toLowerCase() : address
}
