import { toNoiseKey, unit } from './noise.ts'
import { toTotalSupply, toWorth } from './token-facts.ts'

/** Addresses that vote in many DAOs, as professional delegates and funds do. */
const DELEGATES = 1_200
/** A DAO of this value has FEWEST_VOTERS voters; the number grows with its value. */
const SMALL_WORTH = 5e7
const FEWEST_VOTERS = 24
const MOST_VOTERS = 1_400
/** Exponent of the power law of voting power by rank. */
const STEEPNESS = 1.15
/** Powers are multiples of a 64th, so that sums of them are exact in any order. */
const PARTS = 64

/** A voter of a DAO, on Snapshot and on its governors. */
export interface Elector {
  /** In lower case. */
  readonly address: string
  /** Typical voting power in tokens. */
  readonly power: number
}

/** The voters of a DAO, the most powerful first. */
export type Electorate = readonly Elector[]

/**
 * Invents the voters of a DAO by the symbol of its token. Their number depends on the value of the token, and their power
 * follows a power law. Some of them are delegates that other DAOs have too.
 */
export function inventElectorate(seed: number, slug: string, symbol: string | undefined): Electorate {
  const key = toNoiseKey(seed, `electorate ${slug}`)
  const size = (0.6 + 0.8 * unit(key, -1)) * FEWEST_VOTERS * Math.max(1, toWorth(symbol) / SMALL_WORTH) ** 0.75
  const count = Math.round(Math.min(MOST_VOTERS, size))
  const delegates = Array.from({ length: DELEGATES }, (_, index) => index)
    .filter((index) => unit(key ^ 0xde1e, index) < 0.9 * (index + 1) ** -0.25)
    .slice(0, Math.floor(count * 0.4))
    .map((index) => ({ address: toAddress(toNoiseKey(seed, `delegate ${index}`)), place: 0.5 * unit(key, index) }))
  const others = Array.from({ length: count - delegates.length }, (_, index) => ({
    address: toAddress(toNoiseKey(key, `voter ${index}`)),
    place: unit(key ^ 0x0fe5, index),
  }))
  const most = toTotalSupply(symbol) * (0.001 + 0.006 * unit(key, -2))
  return [...delegates, ...others]
    .sort((a, b) => a.place - b.place)
    .map(({ address }, rank) => {
      const power = most * (rank + 1) ** -STEEPNESS * (0.7 + 0.6 * unit(key ^ 0x90e4, rank))
      return { address, power: toPower(power) }
    })
}

export const toPower = (tokens: number): number => Math.max(1, Math.round(tokens * PARTS)) / PARTS

/** Hex digits of a key without prefix: `words` groups of eight. */
export function toHex(key: number, words: number): string {
  let text = ''
  for (let word = 0; word < words; word += 1)
    text += Math.floor(unit(key, word) * 0x1_0000_0000)
      .toString(16)
      .padStart(8, '0')
  return text
}

const toAddress = (key: number) => `0x${toHex(key, 5)}`
