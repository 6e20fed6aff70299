import type { Dao, Treasury } from '../../shared/registry/entities.ts'
import { createMarketProcess, type MarketProcess, SIMULATION_START } from './market-process.ts'
import { noise, toNoiseKey, unit } from './noise.ts'
import { toWorth } from './token-facts.ts'
import { type Asset, DAY, type TreasuryHolding, type WorldRegistry } from './world.ts'

/** USDC by chain, with its contract and decimals; that of BNB Chain has other decimals. */
const USDC: Readonly<Record<string, readonly [contract: string, decimals: number]>> = {
  ethereum: ['0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48', 6],
  arbitrum: ['0xaf88d065e77c8cc2239327c5edb3a432268e5831', 6],
  optimism: ['0x0b2c639c533813f4aa9d7837caf62653d097ff85', 6],
  polygon: ['0x3c499c542cef5e3811e1192ce70d8cc03d5c3359', 6],
  base: ['0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', 6],
  bnb: ['0x8ac76a51cc950d9822d68b83fe1ad97b32cd580d', 18],
}
const COINS: Readonly<Record<string, string>> = { polygon: 'POL', avalanche: 'AVAX', bnb: 'BNB', fantom: 'FTM' }
const COIN_CONTRACT = `0x${'e'.repeat(40)}`
const REFERENCE_DAY = Date.UTC(2024, 0, 1)
/** Balances are random in millionths of a token, so that small ones differ too. */
const PARTS = 1_000_000

/** The treasuries of the simulated world. Holdings change from day to day and are constant within a day. */
export interface SimulatedTreasuries {
  holdings(chain: string, address: string, at: number): readonly TreasuryHolding[] | null
  ofSlug(defillama: string): readonly Treasury[]
}

interface Line {
  readonly token: Omit<TreasuryHolding, 'balance' | 'price'>
  /** Null if no provider has a price. */
  readonly process: MarketProcess | null
  /** The price that converts the weight into tokens. */
  readonly reference: number
  readonly key: number
  /** Part of the wallet's size. */
  readonly weight: number
  /** First day of the DAO's quarters, in days. */
  readonly phase: number
}

const QUARTER = 90
/** Stablecoins are spent once a month: this part of a quarter's start each time. */
const MONTHLY_EXPENSE = 0.1
/** At the start of a quarter, this part of the own tokens is sold for stablecoins. Vesting brings them back. */
const QUARTERLY_SALE = 0.04

/**
 * A wallet contains its chain's coin, USDC, the DAO's token, an unrelated token, a pool share without a price, and
 * spam.
 */
export function createSimulatedTreasuries(
  registry: WorldRegistry,
  seed: number,
  processes: ReadonlyMap<string, MarketProcess>,
): SimulatedTreasuries {
  const owners = new Map<string, Dao>(
    registry.daos.flatMap((dao) => toWallets(dao).map(({ chain, address }) => [`${chain}:${address}`, dao] as const)),
  )
  const slugs = new Map(registry.daos.map((dao) => [dao.defillamaSlug ?? dao.defillama, dao]))
  const linesByWallet = new Map<string, readonly Line[]>()

  function linesOf(chain: string, address: string): readonly Line[] | null {
    const name = `${chain}:${address}`
    const dao = owners.get(name)
    if (dao === undefined) return null
    const lines = linesByWallet.get(name) ?? toLines(chain, toNoiseKey(seed, `treasury ${name}`), dao)
    linesByWallet.set(name, lines)
    return lines
  }

  function toLines(chain: string, key: number, dao: Dao): readonly Line[] {
    const onChain = registry.tokens.filter((token) => token.chain === chain)
    const own = onChain.find(({ id }) => id === dao.token)
    const stranger = onChain[Math.floor(unit(key, -1) * onChain.length)]
    const [usdc, decimals] = USDC[chain] ?? []
    // The wallets of a DAO together have about a fiftieth to a tenth of the value of its tokens.
    const worth = toWorth(registry.tokens.find(({ id }) => id === dao.token)?.symbol)
    const size = (worth * 0.02 * 5 ** unit(key, -2)) / toWallets(dao).length
    const phase = Math.floor(QUARTER * unit(toNoiseKey(seed, `quarter of ${dao.slug}`), 1))
    const line = (token: Line['token'], process: MarketProcess | null, weight: number, index: number): Line => {
      const reference = process?.price(Math.max(REFERENCE_DAY, process.launch)) ?? 1
      return { token, process, reference, weight: weight * size, key: key ^ (index * 0x9e37), phase }
    }
    return [
      line(toCoin(chain), coinProcess(chain, seed, processes), 0.2, 1),
      ...(usdc === undefined ? [] : [line(toUsdc(usdc, decimals ?? 6), usdcProcess(processes), 0.25, 2)]),
      ...(own === undefined ? [] : [line(toToken(own, true), processes.get(own.id) ?? null, 0.5, 3)]),
      ...(stranger === undefined || stranger === own
        ? []
        : [line(toToken(stranger, false), processes.get(stranger.id) ?? null, 0.05, 4)]),
      line(invented(key, 5, 'UNI-V2', 'cryptocurrency'), null, 0.001, 5),
      ...(unit(key, -3) < 0.5 ? [line({ ...invented(key, 6, 'GIFT', 'dust'), isSpam: true }, null, 50, 6)] : []),
    ]
  }

  return {
    holdings: (chain, address, at) => {
      const day = Math.floor(at / DAY) * DAY
      return linesOf(chain, address.toLowerCase())?.map((line) => toHolding(line, day)) ?? null
    },
    ofSlug: (slug) => {
      const dao = slugs.get(slug)
      return dao === undefined ? [] : toWallets(dao)
    },
  }
}

/** DefiLlama also has treasuries without addresses in the registry. */
function toWallets({ treasuries, slug, defillama }: Dao): readonly Treasury[] {
  if (treasuries.length > 0 || defillama === null) return treasuries
  return [{ chain: 'ethereum', address: `treasury of ${slug}` }]
}

/**
 * Balances drift slowly, so that a treasury's value mostly follows its prices. Stablecoins change by expenses and sales
 * instead, in steps.
 */
function toHolding({ token, process, reference, key, weight, phase }: Line, day: number): TreasuryHolding {
  const price = process === null ? null : process.price(day)
  const isThere = process === null || price !== null
  const dayNumber = (day - SIMULATION_START) / DAY
  const flow = toFlow(token, (dayNumber + phase) % QUARTER)
  const drift = token.type === 'stablecoin' ? 0 : 0.1 * noise(key, dayNumber / 25)
  const tokens = isThere ? (weight / reference) * flow * Math.exp(drift) : 0
  const units = BigInt(Math.round(tokens * PARTS)) * 10n ** BigInt(token.decimals)
  // Digits beyond the precision of a float, as in real balances.
  const crumbs = isThere && token.decimals > 6 ? BigInt(Math.floor(unit(key, -9) * 1e9)) : 0n
  return { ...token, balance: units / BigInt(PARTS) + crumbs, price }
}

/** The part of the typical balance on a day of a quarter, after transfers. */
function toFlow({ type, isOwn }: Line['token'], day: number): number {
  if (type === 'stablecoin') return 1 - MONTHLY_EXPENSE * Math.floor(day / 30)
  return isOwn ? 1 - QUARTERLY_SALE * (1 - day / QUARTER) : 1
}

function toToken(asset: Asset, isOwn: boolean): Line['token'] {
  const { contractAddress, symbol, name, decimals } = asset
  return {
    contract: contractAddress,
    symbol,
    name,
    decimals,
    type: 'cryptocurrency',
    isNative: false,
    isSpam: false,
    isOwn,
  }
}

function toUsdc(contract: string, decimals: number): Line['token'] {
  return {
    contract,
    symbol: 'USDC',
    name: 'USD Coin',
    decimals,
    type: 'stablecoin',
    isNative: false,
    isSpam: false,
    isOwn: false,
  }
}

function toCoin(chain: string): Line['token'] {
  const symbol = COINS[chain] ?? 'ETH'
  const facts = { symbol, name: symbol, decimals: 18, type: 'cryptocurrency', isSpam: false, isOwn: false } as const
  return { contract: COIN_CONTRACT, isNative: true, ...facts }
}

function invented(key: number, index: number, symbol: string, type: TreasuryHolding['type']): Line['token'] {
  const words = [0, 1, 2, 3, 4].map((word) => Math.floor(unit(key ^ 0x7ea5, index * 5 + word) * 0x1_0000_0000))
  const contract = `0x${words.map((word) => word.toString(16).padStart(8, '0')).join('')}`
  return { contract, symbol, name: symbol, decimals: 18, type, isNative: false, isSpam: false, isOwn: false }
}

function coinProcess(chain: string, seed: number, processes: ReadonlyMap<string, MarketProcess>): MarketProcess | null {
  const symbol = COINS[chain]
  if (symbol === undefined) return processes.get('quote-asset-eth') ?? null
  const names = { id: `coin-${symbol}`, symbol, name: symbol, chain, contractAddress: COIN_CONTRACT, decimals: 18 }
  return createMarketProcess(seed, { ...names, cmcId: null, coingeckoId: null, dao: null })
}

function usdcProcess(processes: ReadonlyMap<string, MarketProcess>): MarketProcess | null {
  return processes.get('quote-asset-usdc') ?? null
}
