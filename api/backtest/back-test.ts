import { DAY_MS } from '../../shared/intervals.ts'
import type { Exclusion, ExitReason, Market, Rebalance, Rule } from './rule.ts'
import { sum } from './sum.ts'
import { type Decision, decide } from './weights.ts'

/** A held token without a price for more than this number of days is paid out at its last price. */
const LONGEST_WITHOUT_PRICE = 7

/** The trades of one day. Times are starts of days in Unix milliseconds, tokens are indexes of candidates. */
export interface Trades {
  /** The due day of the rebalance. */
  readonly scheduledAt: number
  /** The first day, from the due day on, on which every held token has a price. */
  readonly executedAt: number
  /** The day whose prices and market caps determine the weights. */
  readonly decidedWith: number
  readonly members: readonly {
    readonly token: number
    readonly weight: number
    readonly units: number
    readonly price: number
  }[]
  readonly entered: readonly number[]
  readonly exited: readonly number[]
  readonly excluded: readonly { readonly token: number; readonly reason: Exclusion }[]
  /** The traded part of the basket, one way: a half of all that was bought and sold. */
  readonly turnover: number
  /** In the unit of the basket's value. */
  readonly cost: number
  /** Value after the cost. */
  readonly nav: number
}

/** The value of a basket on one day; null if a held token has no price. */
export interface BasketDay {
  readonly at: number
  readonly nav: number | null
  /** Change since the day before, as a fraction; null unless the values of both days are known. */
  readonly return: number | null
  readonly turnover: number
  readonly members: number
}

export interface BackTest {
  readonly days: readonly BasketDay[]
  readonly rebalances: readonly Trades[]
  /** Tokens that were paid out in cash between two rebalances. */
  readonly exits: readonly {
    readonly token: number
    readonly at: number
    readonly reason: ExitReason
    readonly price: number
  }[]
  readonly missingPriceDays: readonly { readonly day: number; readonly tokens: readonly number[] }[]
}

/** Whether a rule requires a rebalance on a day, by the day's start in UTC. */
export function isDue(rebalance: Rebalance, day: number): boolean {
  if (rebalance === 'never') return false
  const date = new Date(day)
  return date.getUTCDate() === 1 && (rebalance === 'monthly' || date.getUTCMonth() % 3 === 0)
}

/**
 * Computes the value of a basket by day, from the second day of the market on, and all its trades. The result of a day
 * depends only on that day and earlier ones.
 */
export function runBackTest(
  rule: Rule,
  market: Market,
  isScheduled: (day: number) => boolean = (day) => isDue(rule.rebalance, day),
): BackTest {
  const basket = openBasket(rule, market)
  const days: BasketDay[] = []
  const rebalances: Trades[] = []
  let due: number | undefined = 1
  for (let day = 1; day < market.days.length; day += 1) {
    const at = market.days[day] ?? Number.NaN
    if (day > 1 && isScheduled(at)) due = day
    basket.payOut(day)
    const before = basket.valueAt(day)
    const trades = due !== undefined && before !== null ? basket.rebalance({ due, day, before }) : undefined
    if (trades !== undefined) {
      rebalances.push(trades)
      due = undefined
    }
    const nav = trades?.nav ?? before
    const previous = days.at(-1)?.nav ?? null
    const change = nav === null || previous === null ? null : nav / previous - 1
    days.push({ at, nav, return: change, turnover: trades?.turnover ?? 0, members: basket.count() })
  }
  return { days, rebalances, exits: basket.exits, missingPriceDays: basket.missing }
}

/** Units of tokens and cash, which trades and ends of tokens change. */
function openBasket(rule: Rule, { days, candidates, prices, marketCaps }: Market) {
  const units = new Map<number, number>()
  const exits: { token: number; at: number; reason: ExitReason; price: number }[] = []
  const missing: { day: number; tokens: readonly number[] }[] = []
  const lastPriced = new Map<number, number>()
  let cash = 0
  let isOpen = false
  const timeOf = (day: number) => days[day] ?? Number.NaN
  const priceOf = (token: number, day: number) => prices[token * days.length + day] ?? Number.NaN
  /** Tokens in the order of their ids: sums depend on the order. */
  const held = () => [...units.keys()].sort((a, b) => a - b)

  const toExit = (token: number, day: number): ExitReason | undefined => {
    if ((candidates[token]?.until ?? Number.POSITIVE_INFINITY) <= timeOf(day)) return 'ended'
    const last = lastPriced.get(token) ?? day
    return timeOf(day) - timeOf(last) > LONGEST_WITHOUT_PRICE * DAY_MS ? 'unpriced' : undefined
  }
  return {
    exits,
    missing,
    count: () => units.size,
    /** Pays out the tokens that ended by a day, and notes the days of known prices. */
    payOut: (day: number) => {
      for (const token of held()) {
        if (!Number.isNaN(priceOf(token, day))) lastPriced.set(token, day)
        const reason = toExit(token, day)
        if (reason === undefined) continue
        const price = priceOf(token, reason === 'ended' ? findLast(token, day - 1) : (lastPriced.get(token) ?? day))
        cash += (units.get(token) ?? 0) * price
        units.delete(token)
        exits.push({ token, at: timeOf(day), reason, price })
      }
    },
    /** The value at prices of a day; null if one is unknown. */
    valueAt: (day: number): number | null => {
      if (!isOpen) return rule.base
      const unknown = held().filter((token) => Number.isNaN(priceOf(token, day)))
      if (unknown.length === 0)
        return sum([...held().map((token) => (units.get(token) ?? 0) * priceOf(token, day)), cash])
      missing.push({ day: timeOf(day), tokens: unknown })
      return null
    },
    rebalance: ({ due, day, before }: { due: number; day: number; before: number }): Trades => {
      const decision = decide(rule, { days, candidates, prices, marketCaps }, { known: due - 1, traded: day })
      const owned = held()
      const trades = trade(decision, { owned, day, before })
      for (const token of owned) units.delete(token)
      for (const member of trades.members) {
        units.set(member.token, member.units)
        lastPriced.set(member.token, day)
      }
      cash = trades.members.length === 0 ? trades.nav : 0
      isOpen = true
      return { scheduledAt: timeOf(due), executedAt: timeOf(day), decidedWith: timeOf(due - 1), ...trades }
    },
  }

  /** The last day up to `from` on which a token has a price. */
  function findLast(token: number, from: number): number {
    let day = from
    while (day > 0 && Number.isNaN(priceOf(token, day))) day -= 1
    return day
  }

  function trade({ weights, excluded }: Decision, at: { owned: readonly number[]; day: number; before: number }) {
    const { owned, day, before } = at
    const weightBefore = (token: number) => ((units.get(token) ?? 0) * priceOf(token, day)) / before
    const touched = [...new Set([...owned, ...weights.keys()])].sort((a, b) => a - b)
    const moved = isOpen ? sum(touched.map((token) => Math.abs((weights.get(token) ?? 0) - weightBefore(token)))) : 0
    // Cash counts as a position: its weight after the trade is 1 if no token is held, else 0.
    const cashMoved = isOpen ? Math.abs((weights.size === 0 ? 1 : 0) - cash / before) : 0
    const cost = (before * rule.costBps * moved) / 10_000
    const nav = before - cost
    return {
      members: touched
        .filter((token) => weights.has(token))
        .map((token) => {
          const [weight, price] = [weights.get(token) ?? 0, priceOf(token, day)]
          return { token, weight, price, units: (nav * weight) / price }
        }),
      entered: touched.filter((token) => weights.has(token) && !owned.includes(token)),
      exited: owned.filter((token) => !weights.has(token)),
      excluded: [...excluded].sort(([a], [b]) => a - b).map(([token, reason]) => ({ token, reason })),
      turnover: (moved + cashMoved) / 2,
      cost,
      nav,
    }
  }
}
