import { DAY_MS } from '../../shared/intervals.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import { Problem } from '../problem/problem.ts'
import { type BackTest, runBackTest } from './back-test.ts'
import { DEFAULT_DAYS, readMarket, type StoredMarket } from './market.ts'
import { type Basket, type BasketQuery, toBasket } from './question.ts'

/** A basket with its market and its back-test. */
export interface Computed extends Basket, StoredMarket {
  readonly test: BackTest
}

const MOST_NAMED = 20

/** The number of daily values behind a basket. */
export function countValues({ of, start, end }: BasketQuery, { tokens }: Registry, now: number): number {
  const until = end ?? now
  const days = start === undefined ? DEFAULT_DAYS : Math.max(0, until - start) / DAY_MS
  return Math.ceil(days) * (of?.length ?? tokens.length)
}

/**
 * Runs the back-test of a query.
 * @throws DataError `storage`; Problem as `toBasket` and `readMarket`, and `invalid_parameter` if nothing can be held on the
 * first day.
 */
export async function computeBasket(
  { db, registry, now }: { readonly db: Database; readonly registry: Registry; readonly now: () => number },
  query: BasketQuery,
): Promise<Computed> {
  const basket = toBasket(query, registry)
  const stored = await readMarket(db, basket.candidates, query, now())
  const test = runBackTest(basket.rule, stored.market)
  const [first] = test.rebalances
  if (first !== undefined && first.members.length > 0) return { ...basket, ...stored, test }
  const reasons = (first?.excluded ?? []).map(({ token, reason }) => `${basket.candidates[token]?.symbol} ${reason}`)
  const named = reasons.slice(0, MOST_NAMED).join(', ')
  const more = reasons.length > MOST_NAMED ? ` and ${reasons.length - MOST_NAMED} more` : ''
  throw new Problem('invalid_parameter', `There is nothing to hold on the first day: ${named}${more}.`, {
    param: 'start',
  })
}
