import { DAY_MS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'

/** A day of 5-minute prices of a token, from a time in Unix milliseconds. */
export interface Day {
  readonly token: Token
  readonly from: number
}

export const toDayPath = ({ token, from }: Day): string => {
  const [start, end] = [from, from + DAY_MS].map((at) => new Date(at).toISOString())
  return `/data/tokens/historic-financial?id=${token.id}&interval=5m&start=${start}&end=${end}`
}

/** The numbers below `count`, each once and without adjacent neighbours, and then again. */
export function* toShuffled(count: number): Generator<number> {
  let stride = Math.floor(count * 0.618) | 1
  // A stride with a common divisor would repeat numbers before it has reached all.
  while (toDivisor(stride, count) > 1) stride += 2
  for (let turn = 0; ; turn++) yield (turn * stride) % count
}

/** The greatest common divisor. */
const toDivisor = (a: number, b: number): number => (b === 0 ? a : toDivisor(b, a % b))
