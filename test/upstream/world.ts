import type { Dao, Token, Treasury } from '../../shared/registry/entities.ts'
import type { BasketIndex } from '../../shared/registry/index-records.ts'
import type { Chain } from './chain.ts'
import type { TransfersOf } from './simulated-transfers.ts'
import type { Socials } from './socials.ts'

export const MINUTE = 60_000
export const FIVE_MINUTES = 5 * MINUTE
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/** The newest datum of a market-data provider is about a minute old. */
export const PUBLICATION_LAG = 60 * 1_000

/** The part of the registry that the stand-in needs. */
export interface WorldRegistry {
  readonly tokens: readonly Token[]
  readonly daos: readonly Dao[]
  /** Without an index no chain has an Index Token. */
  readonly index?: BasketIndex
}

/** A token of the world: registry tokens, and the quote assets of DEX pools. */
export type Asset = Pick<
  Token,
  'id' | 'symbol' | 'name' | 'chain' | 'contractAddress' | 'decimals' | 'cmcId' | 'coingeckoId'
> & { readonly dao: string | null }

/** The state of a token's market now. Percents: 1.5 means +1.5 %. Times in Unix milliseconds, money in USD. */
export interface Listing {
  readonly at: number
  readonly rank: number
  readonly slug: string
  readonly dateAdded: number
  readonly marketPairs: number
  readonly tags: readonly string[]
  readonly price: number
  readonly volume24h: number | null
  readonly volumeChange24h: number | null
  readonly change1h: number | null
  readonly change24h: number | null
  readonly change7d: number | null
  readonly change30d: number | null
  readonly change60d: number | null
  readonly change90d: number | null
  readonly marketCap: number | null
  readonly dominance: number | null
  readonly fullyDilutedMarketCap: number | null
  readonly circulatingSupply: number | null
  readonly totalSupply: number | null
  readonly maxSupply: number | null
  readonly tvl: number | null
  readonly tvlRatio: number | null
}

/** A historical observation of a token. */
export interface Quote {
  readonly at: number
  readonly price: number
  readonly volume24h: number | null
  readonly marketCap: number | null
  readonly circulatingSupply: number | null
  readonly totalSupply: number | null
  readonly change1h: number | null
  readonly change24h: number | null
  readonly change7d: number | null
  readonly change30d: number | null
}

export interface History {
  /** Time of the first observation. */
  readonly first: number
  /** The first observation at or after `from` and before `to`; null if there is none. */
  firstIn(from: number, to: number): Quote | null
  /** The last observation at or before `at`; null if there is none. */
  lastAt(at: number): Quote | null
}

export interface TvlPoint {
  /** Unix seconds. */
  readonly date: number
  readonly totalLiquidityUSD: number
}

/** A protocol in DefiLlama's list. */
export interface Protocol {
  readonly id: string
  readonly name: string
  readonly slug: string
  readonly symbol: string
  readonly address: string | null
  /** The address's chain, null without an address. */
  readonly addressChain: string | null
  readonly url: string
  readonly category: string
  readonly chains: readonly string[]
  readonly geckoId: string | null
  readonly cmcId: string | null
  /** Id of the parent protocol, without the "parent#" prefix. */
  readonly parent: string | null
  /** The slug of the parent's name, which differs from the id after a rename. */
  readonly parentSlug: string | null
  readonly listedAt: number
  readonly tvl: number | null
  readonly change1h: number | null
  readonly change1d: number | null
  readonly change7d: number | null
  readonly marketCap: number | null
}

/** Points of CoinGecko's market_chart: [Unix milliseconds, value]. */
export interface MarketChart {
  readonly prices: readonly (readonly [number, number])[]
  readonly market_caps: readonly (readonly [number, number])[]
  readonly total_volumes: readonly (readonly [number, number])[]
}

export interface Holder {
  readonly address: string
  /** In base units. */
  readonly balance: bigint
  /** The recorded balance, if the recording has floats. */
  readonly recordedBalance?: number
  /** Percent of the total supply. */
  readonly share: number
}

/** The holders of a token, the largest first, and their total number. */
export interface HolderList {
  readonly count: number
  /** In base units. */
  readonly totalSupply: bigint
  /** USD, null if the provider has no price. */
  readonly price: number | null
  readonly holders: readonly Holder[]
}

/** The public profile of a token's project; null if unknown. */
export interface Profile {
  readonly slug: string
  readonly website: string | null
  /** Without the @. */
  readonly twitter: string | null
  readonly discord: string | null
  /** The channel's name. */
  readonly telegram: string | null
  readonly whitepaper: string | null
  readonly logo: string | null
}

/** A proposal in a space; times in Unix seconds. */
export interface SpaceProposal {
  readonly id: string
  readonly title: string
  readonly author: string
  readonly created: number
  readonly start: number
  readonly end: number
  readonly type: string
  readonly choices: readonly string[]
  /** Current scores by choice, their sum, and the number of votes. */
  readonly scores: readonly number[]
  readonly scoresTotal: number
  readonly votes: number
  readonly quorum: number
  /** Markdown; unknown in a recording. */
  readonly body?: string
  /** Time of the last edit. */
  readonly updated?: number
  /** Whether the scores are final; unknown in a recording. */
  readonly scoresState?: 'pending' | 'final' | 'invalid'
  readonly flagged?: boolean
  /** By default the page of the proposal on Snapshot. */
  readonly link?: string
}

/** A vote in a space; `created` in Unix seconds. The form of `choice` depends on the proposal's type. */
export interface SpaceVote {
  readonly id: string
  readonly voter: string
  readonly created: number
  readonly proposal: string
  readonly choice: unknown
  readonly power: number
}

/** A DAO's space with everything up to now. */
export interface Space {
  readonly id: string
  readonly name: string
  readonly proposals: readonly SpaceProposal[]
  readonly votes: readonly SpaceVote[]
}

/** The holding of one token at one address of a treasury. */
export interface TreasuryHolding {
  readonly contract: string
  readonly symbol: string
  readonly name: string
  readonly decimals: number
  readonly type: 'cryptocurrency' | 'stablecoin' | 'dust'
  /** The chain's native coin. */
  readonly isNative: boolean
  readonly isSpam: boolean
  /** The token of the DAO that owns the treasury. */
  readonly isOwn: boolean
  /** In base units. */
  readonly balance: bigint
  /** USD, null without a price. */
  readonly price: number | null
}

/** The true market, the same for all providers; each provider only converts it to its own format. */
export interface World {
  readonly assets: readonly Asset[]
  readonly socials: Socials
  /** Null for a token without current data. */
  listing(asset: Asset, now: number): Listing | null
  /** Null for a token without history. */
  history(asset: Asset): History | null
  /** Points between `from` and `to` (both inclusive, milliseconds), one for each `step`; null for an unknown coin. */
  chart(asset: Asset, from: number, to: number, step: number, now: number): MarketChart | null
  /** Null for a token without known holders. */
  holders(asset: Asset, now: number): HolderList | null
  /** Null for a token without a known project. */
  profile(asset: Asset): Profile | null
  /** Null for a space that does not exist. */
  space(id: string, now: number): Space | null
  /** Null for an address outside all treasuries. */
  treasury(chain: string, address: string, at: number): readonly TreasuryHolding[] | null
  /** The transfers of an address; times in Unix seconds. */
  readonly transfers: TransfersOf
  /** The treasury addresses of the DAO with this DefiLlama slug. */
  treasuries(defillama: string): readonly Treasury[]
  protocols(now: number): readonly Protocol[]
  /** Daily TVL of a protocol of the list, oldest first; the last point is at `now`. */
  tvlSeries(protocol: Protocol, now: number): readonly TvlPoint[]
  /** Null for a chain without a node. */
  chain(slug: string): Chain | null
}

/** Assets that are not governance tokens, but for which prices are requested. */
const QUOTE_ASSETS: readonly Asset[] = [
  quoteAsset('WETH', 'WETH', '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2', 18, '2396', 'weth'),
  quoteAsset('ETH', 'Ethereum', '0x0000000000000000000000000000000000000000', 18, '1027', 'ethereum'),
  quoteAsset('USDC', 'USDC', '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48', 6, '3408', 'usd-coin'),
  quoteAsset('USDT', 'Tether USDt', '0xdac17f958d2ee523a2206206994597c13d831ec7', 6, '825', 'tether'),
  quoteAsset('DAI', 'Dai', '0x6b175474e89094c44da98b954eedeac495271d0f', 18, '4943', 'dai'),
]

function quoteAsset(
  symbol: string,
  name: string,
  contractAddress: string,
  decimals: number,
  cmcId: string,
  coingeckoId: string,
): Asset {
  const id = `quote-asset-${symbol.toLowerCase()}`
  return { id, symbol, name, chain: 'ethereum', contractAddress, decimals, cmcId, coingeckoId, dao: null }
}

/** The registry's tokens first; a quote asset that the registry has as a token is not repeated. */
export function toAssets(registry: WorldRegistry): readonly Asset[] {
  const addresses = new Set(registry.tokens.map((token) => `${token.chain}:${token.contractAddress}`))
  const extra = QUOTE_ASSETS.filter((asset) => !addresses.has(`${asset.chain}:${asset.contractAddress}`))
  return [...registry.tokens, ...extra]
}

/** The asset of a contract; addresses are case-insensitive. */
export function findAsset({ assets }: World, chain: string, address: string): Asset | undefined {
  const lowerCaseAddress = address.toLowerCase()
  return assets.find((asset) => asset.chain === chain && asset.contractAddress.toLowerCase() === lowerCaseAddress)
}

/** Lower-case words joined by hyphens, as providers derive slugs from names. */
export function toSlug(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}

/** Change in percent with eight decimals; null if either side is unknown. */
export function percentChange(now: number | null, before: number | null): number | null {
  if (now === null || before === null || before === 0) return null
  return Math.round((now / before - 1) * 1e10) / 1e8
}
