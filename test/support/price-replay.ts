import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { createPriceSlots, type Prices, SLOT_MS } from './price-slots.ts'
import { createRandom } from './random.ts'

const dataDir = resolve(process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data'))
export const CANDLES = join(dataDir, 'prices-5m-binance-2024-genetrader', '5m')
export const hasCandles = existsSync(CANDLES) && statSync(CANDLES).isDirectory()

/** Closing prices of 5-minute candles by symbol, within a range of times. */
export function readCloses(from: number, to: number): ReadonlyMap<string, readonly number[]> {
  const files = readdirSync(CANDLES).filter((name) => name.endsWith('.csv.gz'))
  return new Map(
    files.map((name) => {
      const lines = gunzipSync(readFileSync(join(CANDLES, name)))
        .toString()
        .trim()
        .split('\n')
        .slice(1)
      const closes = lines.flatMap((line) => {
        const [at = '', , , , close] = line.split(',')
        const ms = Date.parse(at)
        return ms >= from && ms < to ? [Number(close)] : []
      })
      return [name.split('_')[0] ?? name, closes]
    }),
  )
}

/** The result of a replay. Times are counted in slots. */
export interface ReplayResult {
  readonly slots: number
  /** Slots without a price. */
  readonly withheld: number
  /** The longest time without a price. */
  readonly longest: number
  /** Requests of the second and third provider, beyond those of audits, if all tokens share the calls of a slot. */
  readonly calls: number
  readonly audits: number
  readonly faults: number
  /** Faults whose wrong price was not stored from the second slot on. */
  readonly caught: number
  /** Wrong prices that were stored. */
  readonly wrong: number
}

const FACTORS = [2, 10, 0.1, 75, 1e6, 1e-12]
/** How long a fault lasts: one slot, or up to three hours. */
const LONGEST_FAULT = 36

interface Options {
  readonly seed: number
  /** The share of slots in which a fault of the first provider begins. */
  readonly faults?: number
  readonly hasOthers?: boolean
}

/**
 * Replays real closing prices as the first provider. The others have the same prices, up to 0.3 % apart, each at random
 * one slot late. Faults of the first provider multiply its price.
 */
export function replay(
  closesOf: ReadonlyMap<string, readonly number[]>,
  { seed, faults = 0, hasOthers = true }: Options,
): ReplayResult {
  const { next: random } = createRandom(seed)
  const result = { slots: 0, withheld: 0, longest: 0, faults: 0, caught: 0, wrong: 0 }
  const [asking, auditing] = [new Set<string>(), new Set<number>()]
  const start = Date.parse('2024-01-01T00:05:00Z')
  for (const closes of closesOf.values()) {
    const token = createPriceSlots()
    let [gap, left, factor, age, isCaught] = [0, 0, 1, 0, true]
    const near = () => 1 + (random() - 0.5) * 0.006
    const [second, third] = [near(), near()]
    closes.forEach((close, index) => {
      const slot = start + index * SLOT_MS
      const late = () => (random() < 0.5 ? close : (closes[index - 1] ?? close))
      if (left === 0 && index > 0 && random() < faults) {
        factor = FACTORS[Math.floor(random() * FACTORS.length)] ?? 2
        left = random() < 0.5 ? 1 : Math.ceil(random() * LONGEST_FAULT)
        ;[age, isCaught] = [0, true]
        result.faults += 1
      }
      const isFaulty = left > 0
      const first = isFaulty ? close * factor : close
      const prices: Prices = hasOthers ? { first, second: late() * second, third: late() * third } : { first }
      const { decided, asked } = token.decide(slot, prices)
      result.slots += 1
      for (const provider of asked.slice(1)) {
        if (slot % 3_600_000 === 0) auditing.add(slot)
        else asking.add(`${provider} ${slot}`)
      }
      const { stored } = decided
      gap = stored === undefined ? gap + 1 : 0
      if (stored === undefined) result.withheld += 1
      result.longest = Math.max(result.longest, gap)
      const isWrong = stored !== undefined && Math.abs(Math.log(stored.quote.price / close)) > 0.5
      if (isWrong) result.wrong += 1
      if (isFaulty) {
        age += 1
        left -= 1
        if (isWrong && age > 1) isCaught = false
        if (left === 0 && isCaught) result.caught += 1
      }
    })
    if (left > 0 && isCaught) result.caught += 1
  }
  return { ...result, calls: asking.size, audits: auditing.size }
}

/** The figures of a replay as a line. */
export function describeReplay(name: string, { slots, ...result }: ReplayResult, tokens: number): string {
  const days = slots / tokens / 288
  const perDay = (calls: number) => (calls / days).toFixed(1)
  return (
    `price rule, ${name}: ${slots} prices of ${tokens} tokens, ${result.withheld} withheld, longest ${result.longest * 5} minutes, ` +
    `${perDay(result.calls)} calls and ${perDay(result.audits)} audits a day, ${result.caught} of ${result.faults} faults caught, ` +
    `${result.wrong} wrong prices stored`
  )
}
