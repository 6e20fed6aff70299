import { z } from 'zod'
import { toBucketStart } from '../../../shared/intervals.ts'
import type { Range } from '../../job/define-job.ts'
import { asSent, isTime, listOf, toNumber } from '../answer.ts'
import type { Wallet } from '../contracts/treasury-daos.ts'
import { toTokenUnits } from '../token-units.ts'
import { heldToken, type Position, toContract, toDecimals, toQuoted, toSymbol } from './balances.ts'

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
 * it. A token without a readable balance on a day, or without the day between two of its days, has no quantity there.
 */
export function toDailyPositions(
  { items }: z.infer<typeof portfolioData>,
  current: readonly Position[],
  { chain, address }: Wallet,
  range: Range,
): Map<number, Position[]> {
  const byContract = new Map(current.map((position) => [position.contract, position]))
  const days = new Map<number, Position[]>()
  const isInside = (day: number) => day >= range.from && day < range.to
  const unread: { readonly position: Position; readonly isMissing: (day: number) => boolean }[] = []
  const seen = new Set<string>()
  for (const item of items) {
    const contract = toContract(item.contract_address)
    const dated = toDated(item, range)
    for (const day of dated.keys()) if (isInside(day) && !days.has(day)) days.set(day, [])
    const now = contract === null ? undefined : byContract.get(contract)
    const decimals = toDecimals(item.contract_decimals) ?? now?.decimals ?? null
    const asset = { chain, address, contract, symbol: contract === null ? '' : toSymbol(item), decimals }
    const unknown = { ...asset, quantity: null, valueUsd: null, priceSource: null }
    if (contract === null || seen.has(contract)) {
      const isMissing = (day: number) => dated.size === 0 || dated.has(day)
      unread.push({ position: { ...unknown, fault: UNREADABLE }, isMissing })
      continue
    }
    seen.add(contract)
    const isSold = now === undefined && wasTransferred(item)
    if (now === undefined && !isSold) continue
    for (const [day, { quote_rate, open }] of dated) {
      const quoted = toQuoted(open?.quote, quote_rate)
      // Its value distinguishes a token that is no longer held from spam.
      if (!isInside(day) || (isSold && open && quoted.valueUsd === null && quoted.fault === undefined)) continue
      const quantity = decimals === null ? null : toTokenUnits(open?.balance, decimals)
      const isOdd = decimals === null && quoted.valueUsd === null
      days.get(day)?.push({ ...asset, quantity, ...quoted, ...(isOdd ? { isOdd } : {}) })
    }
    const [first, last] = [Math.min(...dated.keys()), Math.max(...dated.keys())]
    const isMissing = (day: number) => day > first && day < last && !dated.has(day)
    unread.push({ position: { ...unknown, fault: 'items.*.holdings: a day is missing' }, isMissing })
  }
  for (const [day, positions] of days)
    positions.push(...unread.flatMap(({ position, isMissing }) => (isMissing(day) ? [position] : [])))
  return days
}

const UNREADABLE = 'items.*: expected a contract that is listed once'

type Dated = NonNullable<Item['holdings']>[number]

/** Returns the first entry of each day. */
function toDated({ holdings = [] }: Item, { interval }: Range): Map<number, Dated> {
  const dated = new Map<number, Dated>()
  for (const one of holdings) {
    const at = toTime(one.timestamp)
    const day = toBucketStart(at, interval)
    if (isTime(at) && !dated.has(day)) dated.set(day, one)
  }
  return dated
}

/** Returns whether a token that `current` lacks was transferred away. Otherwise it is still held, and is spam. */
function wasTransferred({ holdings = [] }: Item): boolean {
  const dated = holdings.filter(({ timestamp }) => isTime(toTime(timestamp)))
  const newest = dated.reduce<(typeof dated)[number] | undefined>(
    (best, each) => (best === undefined || toTime(each.timestamp) > toTime(best.timestamp) ? each : best),
    undefined,
  )
  return toNumber((newest?.close ?? newest?.open)?.balance) === 0
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
