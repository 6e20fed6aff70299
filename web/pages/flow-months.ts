import type { Drawing } from '../parts/drawing.ts'

/** A record of `flows/historic` by kind. */
interface KindSum {
  readonly recordedAt: string
  readonly kind: string | null
  readonly inUsd: number | null
  readonly outUsd: number | null
}

/** Income above zero, spending below it, and their sum; a month without transfers of a kind has 0. */
export function toMonths(sums: readonly KindSum[]): Drawing {
  const months = [...new Set(sums.map(({ recordedAt }) => recordedAt))].sort()
  const findValue = (month: string, kind: 'income' | 'spending', member: 'inUsd' | 'outUsd') => {
    const sum = sums.find((one) => one.recordedAt === month && one.kind === kind)
    return sum === undefined ? 0 : sum[member]
  }
  const income = months.map((month) => findValue(month, 'income', 'inUsd'))
  const spending = months.map((month) => {
    const value = findValue(month, 'spending', 'outUsd')
    return value === null ? null : 0 - value
  })
  const net = months.map((_, at) => {
    const [received, spent] = [income[at] ?? null, spending[at] ?? null]
    return received === null || spent === null ? null : received + spent
  })
  return {
    ...{ kind: 'flows', as: 'usd', times: months.map((month) => Date.parse(month) / 1000) },
    lines: [
      { name: 'income', values: income },
      { name: 'spending', values: spending },
      { name: 'net', values: net },
    ],
  }
}
