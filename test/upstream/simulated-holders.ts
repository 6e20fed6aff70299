import type { MarketProcess } from './market-process.ts'
import { noise, toNoiseKey, unit } from './noise.ts'
import { type Asset, HOUR, type HolderList } from './world.ts'

/** More than a request returns, so that a next page exists. */
const LISTED = 130
/** Denominator of shares. */
const PARTS = 1_000_000_000_000

/** A burn address and an exchange's address, which hold a part of many tokens. */
const FAMILIAR = ['0x000000000000000000000000000000000000dead', '0xf977814e90da44bfa03b6295a0616a897441acec']

/**
 * Holders of a token: balances follow a power law of the rank with a random exponent per token, and drift by the hour,
 * so that neighbours swap ranks sometimes. The listed holders have between half and nine tenths of the supply.
 */
export function createSimulatedHolders(seed: number, asset: Asset, process: MarketProcess): (at: number) => HolderList {
  const key = toNoiseKey(seed, `holders ${asset.id}`)
  const steepness = 0.8 + 0.7 * unit(key, -1)
  const held = 0.5 + 0.4 * unit(key, -2)
  const crowd = Math.floor(400 * 1_000 ** unit(key, -3))
  const supply = BigInt(process.totalSupply) * 10n ** BigInt(asset.decimals)
  const addresses = Array.from({ length: LISTED }, (_, index) => toAddress(key, index))
  const ranks = addresses.map((_, index) => (index + 1) ** -steepness)

  return (at) => {
    const hours = Math.floor(at / HOUR)
    const weights = ranks.map((rank, index) => rank * Math.exp(0.05 * noise(key ^ (index * 0x9e37), hours / 40)))
    const total = weights.reduce((sum, weight) => sum + weight, 0)
    const holders = weights.map((weight, index) => {
      const parts = Math.floor((held * weight * PARTS) / total)
      // Digits below a millionth of a token, as in real balances.
      const dust = BigInt(Math.floor(unit(key, index) * 1e9))
      const balance = (supply * BigInt(parts)) / BigInt(PARTS) + dust
      return { address: addresses[index] ?? '', balance, share: (Number(balance) / Number(supply)) * 100 }
    })
    holders.sort((a, b) => (a.balance === b.balance ? 0 : a.balance < b.balance ? 1 : -1))
    const price = unit(key, -4) < 0.9 ? process.price(at) : null
    const count = LISTED + crowd + Math.floor(crowd * 0.01 * (1 + noise(key, hours / 24)))
    return { count, totalSupply: supply, price, holders }
  }
}

function toAddress(key: number, index: number): string {
  const familiar = FAMILIAR[index - 3]
  if (familiar !== undefined) return familiar
  const words = [0, 1, 2, 3, 4].map((word) => Math.floor(unit(key ^ 0x5eed, index * 5 + word) * 0x1_0000_0000))
  return `0x${words.map((word) => word.toString(16).padStart(8, '0')).join('')}`
}
