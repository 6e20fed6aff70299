import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import {
  type Decided,
  decidePrice,
  isUsable,
  type LastPrice,
  type Memory,
  NO_MEMORY,
  type Quote,
  type Suspect,
} from '../../workers/prices/rule.ts'

export const SLOT_MS = INTERVAL_SECONDS['5m'] * 1000

/** The prices of the providers of one token in a slot, in order; null if a provider has none. */
export type Prices = Readonly<Record<string, number | null>>

export interface SlotResult {
  readonly slot: number
  readonly decided: Decided
  /** The providers that were asked. */
  readonly asked: readonly string[]
}

/** Decides the slots of one token one after the other; stored prices and state stay in memory between them. */
export interface PriceSlots {
  decide(slot: number, prices: Prices): SlotResult
  /** Every stored price by time; at one time the last one stored. */
  readonly stored: ReadonlyMap<number, Quote>
  readonly suspects: readonly Suspect[]
  readonly memory: Memory
}

const WITNESSES = ['third']

/** A quote is observed a minute before its slot. */
export function createPriceSlots(): PriceSlots {
  const stored = new Map<number, Quote>()
  let memory = NO_MEMORY
  let suspects: readonly Suspect[] = []
  let last: LastPrice | undefined
  const store = (quote: Quote) => {
    stored.set(quote.at, quote)
    if (last !== undefined && quote.at < last.at) return
    last = { ...quote, unchangedSince: last?.price === quote.price ? last.unchangedSince : quote.at }
  }
  return {
    stored,
    get suspects() {
      return suspects
    },
    get memory() {
      return memory
    },
    decide(slot, prices) {
      const providers = Object.keys(prices)
      const asked: { provider: string; quote: Quote | undefined }[] = []
      const remaining = () => providers.slice(asked.length)
      for (;;) {
        const decision = decidePrice({
          slot,
          last,
          memory,
          suspects,
          asked,
          remaining: remaining(),
          witnesses: WITNESSES,
        })
        if (decision.kind === 'decided') {
          for (const { suspect, trusted } of decision.released) {
            store(trusted.quote)
            suspects = suspects.filter((one) => one !== suspect)
          }
          if (decision.stored !== undefined) store(decision.stored.quote)
          suspects = [...suspects, ...decision.suspects].filter((one) => slot - one.slot <= 25 * 3_600_000)
          memory = decision.memory
          return { slot, decided: decision, asked: asked.map(({ provider }) => provider) }
        }
        const provider = decision.next
        const price = prices[provider]
        asked.push({ provider, quote: isUsable(price) ? { provider, price, at: slot - 60_000 } : undefined })
      }
    },
  }
}
