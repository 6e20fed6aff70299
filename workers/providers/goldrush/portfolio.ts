import { z } from 'zod'
import { toBucketStart } from '../../../shared/intervals.ts'
import type { Range } from '../../job/define-job.ts'
import { asSent, toNumber } from '../answer.ts'
import type { Wallet } from '../contracts/treasury-daos.ts'
import { toLowerCase } from '../holder-values.ts'
import { toWholeTokens } from '../whole-tokens.ts'
import { heldToken, type Position, toQuoted } from './balances.ts'

/** Portfolio_v2: what an address held, token by token and day by day (providers document, section 11). */
export const portfolioData = z.object({
  items: z.array(
    heldToken.extend({
      holdings: z.array(
        z.object({
          timestamp: z.string(),
          quote_rate: asSent,
          open: z.object({ balance: asSent, quote: asSent }).nullish(),
          close: z.object({ balance: asSent }).nullish(),
        }),
      ),
    }),
  ),
})

type Item = z.infer<typeof portfolioData>['items'][number]

/**
 * The positions of an address at the beginning of each day inside the range, as a snapshot of that day has them. The
 * portfolio does not mark spam. So a token that is still held counts only if `current` has it, which also has the
 * decimals where the portfolio lacks them. A token that is no longer held counts if it has decimals and a value. A day
 * is there as soon as one token has it.
 */
export function toDailyPositions(
  { items }: z.infer<typeof portfolioData>,
  current: readonly Position[],
  { chain, address }: Wallet,
  range: Range,
): Map<number, Position[]> {
  const known = new Map(current.map((position) => [position.contract, position]))
  const days = new Map<number, Position[]>()
  for (const item of items) {
    const contract = String(toLowerCase(item.contract_address))
    const now = known.get(contract)
    const decimals = toNumber(item.contract_decimals) ?? now?.decimals
    for (const { timestamp, quote_rate, open } of item.holdings) {
      const day = toBucketStart(Date.parse(timestamp), range.interval)
      if (!(day >= range.from && day < range.to)) continue
      const positions = days.get(day) ?? []
      days.set(day, positions)
      const quoted = toQuoted(open?.quote, quote_rate)
      if (typeof decimals !== 'number' || !open || (now === undefined && !wasLeft(item, quoted.valueUsd))) continue
      const symbol = item.contract_ticker_symbol || item.contract_name || item.contract_address
      const quantity = toWholeTokens(open.balance, decimals)
      positions.push({ chain, address, contract, symbol, decimals, quantity, ...quoted })
    }
  }
  return days
}

/** Whether a token that `current` lacks was given away since. Otherwise it is still there, and is spam. */
function wasLeft({ holdings }: Item, valueUsd: number | null): boolean {
  const newest = holdings.reduce((best, each) => (each.timestamp > best.timestamp ? each : best))
  return valueUsd !== null && toNumber((newest.close ?? newest.open)?.balance) === 0
}
