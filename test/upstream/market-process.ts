import { noise, toNoiseKey, unit } from './noise.ts'
import { TOKEN_FACTS, type TokenFacts } from './token-facts.ts'
import { type Asset, DAY, FIVE_MINUTES } from './world.ts'

/** Start of all simulated data. */
export const SIMULATION_START = Date.UTC(2022, 0, 1)

/** Wrapped ether has ether's price. */
const NAMESAKES: Readonly<Record<string, string>> = { 'quote-asset-weth': 'quote-asset-eth' }
const STABLE = new Set(['USDC', 'USDT', 'DAI'])

/** Movement of the price's logarithm: length of each cell in five-minute slots, and amplitude within it. */
type Octaves = readonly (readonly [length: number, amplitude: number])[]

/** Movement shared by all tokens, scaled by a factor per token. */
const MARKET: Octaves = [
  [49, 0.006],
  [293, 0.017],
  [2_017, 0.045],
  [8_641, 0.09],
  [52_561, 0.3],
]
/** Movement of a single token. */
const OWN: Octaves = [
  [1, 0.0012],
  [7, 0.003],
  [49, 0.006],
  [293, 0.014],
  [2_017, 0.035],
  [8_641, 0.07],
  [210_241, 0.4],
]
/** Range of a token's factors: of the market's movement, and of its own. */
const BETA = [0.7, 1.5] as const
const RESTLESSNESS = [0.6, 1.7] as const

const within = ([least, most]: readonly [number, number], share: number) => least + (most - least) * share

/** A token's market as functions of time, each O(1). */
export interface MarketProcess {
  readonly launch: number
  readonly totalSupply: number
  readonly maxSupply: number | null
  /** Null before the launch. Times are rounded down to the five-minute slot. */
  price(at: number): number | null
  /** USD traded in the 24 hours before `at`. */
  volume24h(at: number): number
  /** Whole tokens, growing by the day, never above the total supply. */
  circulatingSupply(at: number): number
}

export function createMarketProcess(seed: number, asset: Asset): MarketProcess {
  const key = toNoiseKey(seed, NAMESAKES[asset.id] ?? asset.id)
  const {
    price: base,
    totalSupply,
    maxSupply,
    launch: day,
  } = TOKEN_FACTS[asset.symbol.toUpperCase()] ?? inventFacts(key)
  const launch = day === undefined ? SIMULATION_START : Date.parse(day)
  const scale = STABLE.has(asset.symbol) ? 0.002 : 1
  const toOctaves = (octaves: Octaves, name: string, factor: number) =>
    octaves.map(([length, amplitude], index) => {
      return { length, amplitude: amplitude * factor * scale, key: toNoiseKey(index + 1, name) }
    })
  const octaves = [
    ...toOctaves(MARKET, `market ${seed}`, within(BETA, unit(key, -10))),
    ...toOctaves(OWN, `token ${key}`, within(RESTLESSNESS, unit(key, -11))),
  ]
  const floated = 0.5 + 0.3 * unit(key, -3)

  function priceOfSlot(slot: number): number {
    let logarithm = 0
    for (const octave of octaves) logarithm += octave.amplitude * noise(octave.key, slot / octave.length)
    return base * Math.exp(logarithm)
  }
  function circulatingSupply(at: number): number {
    const years = (Math.floor(at / DAY) - SIMULATION_START / DAY) / 365
    return Math.floor(totalSupply * Math.min(1, floated + Math.max(0, years) * 0.04))
  }
  return {
    launch,
    totalSupply,
    maxSupply,
    price: (at) => (at < launch ? null : priceOfSlot(Math.floor(at / FIVE_MINUTES))),
    volume24h(at) {
      const slot = Math.floor(at / FIVE_MINUTES)
      const turnover = 0.06 * Math.exp(0.5 * noise(key, slot / 97) + 0.6 * noise(key ^ 0x5bd1, slot / 1_153))
      return turnover * priceOfSlot(slot) * circulatingSupply(at)
    },
    circulatingSupply,
  }
}

/**
 * Facts of a small token that is not in the list. One in four has no maximum supply, one in six launches during the
 * simulation.
 */
function inventFacts(key: number): TokenFacts {
  const price = 0.01 * 5_000 ** unit(key, -4)
  const worth = 2e6 * 100 ** unit(key, -5)
  const totalSupply = Math.round(worth / price)
  const facts = { price, totalSupply, maxSupply: unit(key, -6) < 0.25 ? null : totalSupply }
  if (unit(key, -7) > 1 / 6) return facts
  const day = SIMULATION_START + (60 + Math.floor(unit(key, -8) * 600)) * DAY
  return { ...facts, launch: new Date(day).toISOString() }
}
