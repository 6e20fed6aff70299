import type { Market, Rule } from '../../api/backtest/rule.ts'

/** Values of a back-test that another implementation must reach. */
export interface PlainBackTest {
  readonly nav: (number | null)[]
  readonly turnover: number[]
  readonly cost: number
  readonly weights: Record<string, number>[]
  readonly reasons: Record<string, string>[]
}

/**
 * A back-test written day by day over records of the tokens' ids, without any code of the product. The code follows the
 * rules word by word, so it is slow.
 */
export function plainBackTest(rule: Rule, market: Market): PlainBackTest {
  const count = market.days.length
  const tokens = market.candidates.map((candidate, place) => {
    const pick = (values: Float64Array) => Array.from(values.slice(place * count, (place + 1) * count))
    return { ...candidate, prices: pick(market.prices), caps: pick(market.marketCaps), quiet: 0, last: Number.NaN }
  })
  const result: PlainBackTest = { nav: [], turnover: [], cost: 0, weights: [], reasons: [] }
  let cost = 0
  let cash = 0
  let units: Record<string, number> = {}
  let started = false
  let scheduled = 1
  for (let day = 1; day < count; day += 1) {
    const start = market.days[day] as number
    const [year, month, date] = new Date(start).toISOString().slice(0, 10).split('-').map(Number) as number[]
    const isFirst = date === 1 && year !== 0
    const isQuarter = isFirst && [1, 4, 7, 10].includes(month as number)
    if (day > 1 && ((rule.rebalance === 'monthly' && isFirst) || (rule.rebalance === 'quarterly' && isQuarter)))
      scheduled = day
    for (const token of tokens) {
      const price = token.prices[day] as number
      if (units[token.id] === undefined) continue
      if (token.until !== undefined && token.until <= start) {
        cash += (units[token.id] as number) * token.last
        delete units[token.id]
        continue
      }
      if (Number.isNaN(price)) token.quiet += 1
      else [token.quiet, token.last] = [0, price]
      if (token.quiet > 7) {
        cash += (units[token.id] as number) * token.last
        delete units[token.id]
      }
    }
    const held = tokens.filter(({ id }) => units[id] !== undefined)
    let nav: number | null = started ? cash : rule.base
    for (const { id, prices } of held) nav = (nav as number) + (units[id] as number) * (prices[day] as number)
    if (Number.isNaN(nav)) nav = null
    let turnover = 0
    if (scheduled > 0 && nav !== null) {
      const known = scheduled - 1
      scheduled = 0
      const reasons: Record<string, string> = {}
      const possible = tokens.filter((token) => {
        const ranked = rule.weights === 'marketCap' || rule.top !== undefined
        const seen = token.prices.slice(0, known + 1).some((price) => !Number.isNaN(price))
        if (token.until !== undefined && token.until <= start) reasons[token.id] = 'ended'
        else if (!seen) reasons[token.id] = 'notYetListed'
        else if (rule.top !== undefined && token.kind !== undefined) reasons[token.id] = token.kind
        else if (Number.isNaN(token.prices[known]) || Number.isNaN(token.prices[day])) reasons[token.id] = 'noPrice'
        else if (ranked && Number.isNaN(token.caps[known])) reasons[token.id] = 'noMarketCap'
        return reasons[token.id] === undefined
      })
      const ranked = [...possible].sort(
        (a, b) => (b.caps[known] as number) - (a.caps[known] as number) || (a.id < b.id ? -1 : 1),
      )
      const chosen = rule.top === undefined ? possible : ranked.slice(0, rule.top)
      for (const { id } of possible) if (!chosen.some((one) => one.id === id)) reasons[id] = 'belowTop'
      const size = (token: (typeof tokens)[number]) =>
        rule.weights === 'fixed'
          ? (token.share as number)
          : rule.weights === 'equal'
            ? 1
            : (token.caps[known] as number)
      const weights: Record<string, number> = {}
      const total = chosen.reduce((all, token) => all + size(token), 0)
      for (const token of chosen) weights[token.id] = size(token) / total
      if (rule.cap !== undefined && chosen.length > 0) {
        const most = Math.max(rule.cap, 1 / chosen.length)
        const full: string[] = []
        while (Object.entries(weights).some(([id, weight]) => !full.includes(id) && weight > most)) {
          for (const [id, weight] of Object.entries(weights)) if (!full.includes(id) && weight > most) full.push(id)
          const open = chosen.filter(({ id }) => !full.includes(id))
          const all = open.reduce((whole, token) => whole + size(token), 0)
          for (const id of full) weights[id] = most
          for (const token of open) weights[token.id] = ((1 - full.length * most) * size(token)) / all
        }
      }
      let moved = 0
      for (const { id, prices } of tokens) {
        const before = units[id] === undefined ? 0 : ((units[id] as number) * (prices[day] as number)) / nav
        moved += Math.abs((weights[id] ?? 0) - before)
      }
      const isEmpty = chosen.length === 0
      if (started) {
        turnover = (moved + Math.abs((isEmpty ? 1 : 0) - cash / nav)) / 2
        const paid = (nav * rule.costBps * moved) / 10_000
        cost += paid
        nav -= paid
      }
      units = {}
      for (const token of chosen) {
        units[token.id] = (nav * (weights[token.id] as number)) / (token.prices[day] as number)
        ;[token.quiet, token.last] = [0, token.prices[day] as number]
      }
      cash = isEmpty ? nav : 0
      started = true
      result.weights.push(weights)
      result.reasons.push(reasons)
    }
    result.nav.push(nav)
    result.turnover.push(turnover)
  }
  return { ...result, cost }
}
