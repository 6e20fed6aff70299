import { noise, toNoiseKey, unit } from './noise.ts'
import { type Asset, DAY, FIVE_MINUTES } from './world.ts'

/** Nothing in the simulation is older than this. */
export const SIMULATION_START = Date.UTC(2022, 0, 1)

/** Typical price in USD, maximum supply (null: unlimited), first day of trading. */
const KNOWN: Readonly<Record<string, readonly [price: number, maxSupply: number | null, launch?: string]>> = {
  UNI: [7, 1e9],
  AAVE: [95, 16e6],
  MKR: [1400, 1_005_577],
  CRV: [0.8, 3_303_030_299],
  LDO: [1.8, 1e9],
  ENS: [14, 1e8],
  '1INCH': [0.5, 1.5e9],
  DYDX: [2, 1e9],
  COMP: [55, 1e7],
  SNX: [2.6, null],
  BAL: [6, 96_150_704],
  YFI: [8000, 36_666],
  SUSHI: [1.3, 287e6],
  GRT: [0.15, null],
  APE: [3, 1e9, '2022-03-17'],
  ARB: [1, 1e10, '2023-03-23'],
  OP: [1.7, 4_294_967_296, '2022-05-31'],
  LRC: [0.3, 1_374_513_896],
  GMX: [40, 13_250_000],
  CVX: [4, 1e8],
  GTC: [1.4, 1e8],
  UMA: [2.5, null],
  CAKE: [3, 45e7],
  ETH: [2300, null],
  WETH: [2300, null],
  USDC: [1, null],
  USDT: [1, null],
  DAI: [1, null],
}
/** Wrapped ether trades as ether does. */
const NAMESAKES: Readonly<Record<string, string>> = { 'quote-asset-weth': 'quote-asset-eth' }
const STABLE = new Set(['USDC', 'USDT', 'DAI'])

/** [cell length in five-minute slots, amplitude of the price's logarithm, whether the whole market shares it]. */
const OCTAVES: readonly (readonly [number, number, boolean])[] = [
  [1, 0.0015, false],
  [7, 0.004, false],
  [49, 0.011, false],
  [293, 0.027, false],
  [2_017, 0.07, true],
  [8_641, 0.13, false],
  [52_561, 0.3, true],
  [210_241, 0.45, false],
]

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
  const [base, maxSupply, launchDay] = KNOWN[asset.symbol.toUpperCase()] ?? inventedFacts(key)
  const launch = launchDay === undefined ? SIMULATION_START : Date.parse(launchDay)
  const scale = STABLE.has(asset.symbol) ? 0.002 : 1
  const octaves = OCTAVES.map(([length, amplitude, shared], index) => {
    const octaveKey = toNoiseKey(index + 1, shared ? `market ${seed}` : `token ${key}`)
    return { length, amplitude: amplitude * scale, key: octaveKey }
  })
  const totalSupply = Math.round((maxSupply ?? 1e7 * 100 ** unit(key, -1)) * (0.8 + 0.2 * unit(key, -2)))
  const floated = 0.3 + 0.4 * unit(key, -3)

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

/** Facts of a token that is not in the list above: one in four has no maximum, one in six came later than 2022. */
function inventedFacts(key: number): readonly [number, number | null, string?] {
  const price = 0.01 * 50_000 ** unit(key, -4)
  const worth = 2e6 * 1_000 ** unit(key, -5)
  const maxSupply = unit(key, -6) < 0.25 ? null : Math.round(worth / price)
  if (unit(key, -7) > 1 / 6) return [price, maxSupply]
  const day = SIMULATION_START + (60 + Math.floor(unit(key, -8) * 600)) * DAY
  return [price, maxSupply, new Date(day).toISOString()]
}
