import { z } from 'zod'
import { toBucketStart } from '../../../shared/intervals.ts'
import type { Range } from '../../job/define-job.ts'
import { asSent, isTime, listOf, toNumber } from '../answer.ts'
import type { Wallet } from '../contracts/treasury-daos.ts'
import { toTokenUnits } from '../token-units.ts'
import { heldToken, type Position, toQuoted, toSymbol } from './balances.ts'

/** portfolio_v2: holdings of an address by token and day (docs/providers.md, section 11). */
const edge = z.object({ balance: asSent, quote: asSent }).nullish().catch(null)
export const portfolioData = z.object({
  items: listOf(
    heldToken.extend({
      holdings: listOf(z.object({ timestamp: asSent, quote_rate: asSent, open: edge, close: edge })).optional(),
    }),
  ),
})

type Item = z.infer<typeof portfolioData>['items'][number]

/**
 * Returns the positions of an address at the start of each day inside the range. The portfolio does not mark spam. A
 * token that is still held therefore counts only if `current` contains it, which also has the decimals if the portfolio
 * lacks them. A token that is no longer held counts if it has decimals and a value. A day is present if any token has
 * it.
 */
export function toDailyPositions(
  { items }: z.infer<typeof portfolioData>,
  current: readonly Position[],
  { chain, address }: Wallet,
  range: Range,
): Map<number, Position[]> {
  const byContract = new Map(current.map((position) => [position.contract, position]))
  const days = new Map<number, Position[]>()
  for (const item of items) {
    const contract = String(item.contract_address).toLowerCase()
    const now = byContract.get(contract)
    const decimals = toNumber(item.contract_decimals) ?? now?.decimals
    for (const { timestamp, quote_rate, open } of item.holdings ?? []) {
      const day = toBucketStart(toTime(timestamp), range.interval)
      if (!(day >= range.from && day < range.to)) continue
      const positions = days.get(day) ?? []
      if (positions.some((existing) => existing.contract === contract)) continue
      days.set(day, positions)
      const quoted = toQuoted(open?.quote, quote_rate)
      if (typeof decimals !== 'number' || !open || (now === undefined && !wasTransferred(item, quoted.valueUsd)))
        continue
      const symbol = toSymbol(item)
      const quantity = toTokenUnits(open.balance, decimals)
      positions.push({ chain, address, contract, symbol, decimals, quantity, ...quoted })
    }
  }
  return days
}

/** Returns whether a token that `current` lacks was transferred away. Otherwise it is still held, and is spam. */
function wasTransferred({ holdings = [] }: Item, valueUsd: number | null): boolean {
  const dated = holdings.filter(({ timestamp }) => isTime(toTime(timestamp)))
  const newest = dated.reduce<(typeof dated)[number] | undefined>(
    (best, each) => (best === undefined || toTime(each.timestamp) > toTime(best.timestamp) ? each : best),
    undefined,
  )
  return valueUsd !== null && toNumber((newest?.close ?? newest?.open)?.balance) === 0
}

/** Lists parts without a contract or a time, which cannot be assigned to a day. */
export function listUndated({ items }: z.infer<typeof portfolioData>): string[] {
  const nameless = items.filter(({ contract_address }) => typeof contract_address !== 'string')
  const timeless = items.flatMap(({ holdings = [] }) => holdings).filter(({ timestamp }) => !isTime(toTime(timestamp)))
  return [
    ...nameless.map(() => 'items.*: expected a contract'),
    ...timeless.map(() => 'items.*.holdings.*.timestamp: no time that can be'),
  ]
}

const toTime = (timestamp: unknown): number => (typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN)
