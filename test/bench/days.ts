import { DAY_MS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { toNoiseKey, unit } from '../upstream/noise.ts'

const STEP = 300_000

/** A day of 5-minute prices of a token, from a time in Unix milliseconds. */
export interface Day {
  readonly token: Token
  readonly from: number
}

export const toDayPath = (day: Day): string => toPath(day, day.from + DAY_MS)

/** A longer series of the same token. */
export const toPath = ({ token, from }: Day, until: number): string => {
  const [start, end] = [from, until].map((at) => new Date(at).toISOString())
  return `/data/tokens/historic-financial?id=${token.id}&interval=5m&start=${start}&end=${end}`
}

/** Days of 5-minute prices that are stored: the last `days` days before `until` of some tokens. */
export interface StoredDays {
  readonly tokens: readonly Token[]
  readonly until: number
  readonly days: number
}

/** Draws stored days at random: any time, and tokens uniformly or by a Zipf distribution. Each run draws the same ones. */
export function createDayDraws({ tokens, until, days }: StoredDays) {
  const key = toNoiseKey(1, 'days')
  let draws = 0
  const draw = () => unit(key, draws++)
  const totals: number[] = []
  for (const index of tokens.keys()) totals.push((totals.at(-1) ?? 0) + 1 / (index + 1))
  const drawZipf = () => {
    const place = draw() * (totals.at(-1) ?? 0)
    return tokens[totals.findIndex((total) => place < total)]
  }
  /** `step`: the day begins at a multiple of this many buckets. */
  return ({ step = 1, zipf = false } = {}): Day => {
    const start = Math.floor(draw() * (((days - 1) * 288) / step + 1)) * step
    const token = zipf ? drawZipf() : tokens[Math.floor(draw() * tokens.length)]
    return { token: token as Token, from: until - days * DAY_MS + start * STEP }
  }
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
