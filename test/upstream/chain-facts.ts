import { FACTORIES, type NodeHabits } from './chain.ts'

/** A chain of the simulated world: the pace of its blocks, the limits of its node, and the pools of its tokens. */
export interface ChainFacts {
  readonly slug: string
  readonly chainId: number
  readonly secondsPerBlock: number
  /** A block and its time in Unix seconds; all other block times are computed from it. */
  readonly anchor: { readonly block: number; readonly seconds: number }
  readonly habits: NodeHabits
  /** Swaps per hour of the least traded pool; the busiest has twenty times as many. */
  readonly swapsPerHour: number
  /** Quote tokens of pools, by symbol. Ether has the same price on every chain. */
  readonly quotes: Readonly<Record<string, { readonly address: string; readonly decimals: number }>>
  /** `share` of the tokens have such a pool; `fee` is null for exchanges of the second version. */
  readonly offers: readonly {
    readonly quote: string
    readonly factory: string
    readonly fee: number | null
    readonly share: number
  }[]
  /** A pool of wrapped ether and USDC with permanent trades. */
  readonly reference?: { readonly address: string; readonly swapsPerHour: number }
}

const YEAR_2022 = Date.UTC(2022, 0, 1) / 1000
const ether = (address: string) => ({ address, decimals: 18 })
const usdc = (address: string) => ({ address, decimals: 6 })
/** Every token has a pool with ether, and some have one with dollars. */
const toV3Offers = (factory: string) => [
  { quote: 'WETH', factory, fee: 3000, share: 1 },
  { quote: 'USDC', factory, fee: 500, share: 0.6 },
]

export const ETHEREUM: ChainFacts = {
  slug: 'ethereum',
  chainId: 1,
  secondsPerBlock: 12,
  anchor: { block: 13_916_166, seconds: YEAR_2022 },
  habits: {},
  swapsPerHour: 0.15,
  quotes: {
    WETH: ether('0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2'),
    USDC: usdc('0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'),
  },
  offers: [
    { quote: 'WETH', factory: FACTORIES.uniswapV2, fee: null, share: 1 },
    { quote: 'WETH', factory: FACTORIES.uniswapV3, fee: 3000, share: 0.7 },
    { quote: 'USDC', factory: FACTORIES.uniswapV3, fee: 10_000, share: 0.3 },
    { quote: 'WETH', factory: FACTORIES.sushiswap, fee: null, share: 0.3 },
  ],
}

/** Layer-2 chains: each has its own blocks, limits and addresses. Only one has a pool with ether's price. */
export const LAYERS: readonly ChainFacts[] = [
  {
    slug: 'arbitrum',
    chainId: 42_161,
    secondsPerBlock: 0.25,
    anchor: { block: 4_200_000, seconds: YEAR_2022 },
    habits: { host: 'infura', mostBlocks: 10_000 },
    swapsPerHour: 2,
    quotes: {
      WETH: ether('0x82af49447d8a07e3bd95bd0d56f35241523fbab1'),
      USDC: usdc('0xaf88d065e77c8cc2239327c5edb3a432268e5831'),
    },
    offers: toV3Offers(FACTORIES.uniswapV3),
  },
  {
    slug: 'base',
    chainId: 8453,
    secondsPerBlock: 2,
    anchor: { block: 0, seconds: 1_686_789_347 },
    habits: { host: 'alchemy', mostBlocks: 10 },
    swapsPerHour: 2,
    quotes: {
      WETH: ether('0x4200000000000000000000000000000000000006'),
      USDC: usdc('0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'),
    },
    offers: toV3Offers(FACTORIES.uniswapV3OfBase),
    reference: { address: '0xd0b53d9277642d899df5c87a3966a349a798f224', swapsPerHour: 90 },
  },
  {
    slug: 'optimism',
    chainId: 10,
    secondsPerBlock: 2,
    anchor: { block: 105_235_063, seconds: 1_686_068_903 },
    habits: { host: 'drpc', mostBlocks: 1_000, logTimes: false, finalizedTag: false },
    swapsPerHour: 2,
    quotes: {
      WETH: ether('0x4200000000000000000000000000000000000006'),
      USDC: usdc('0x0b2c639c533813f4aa9d7837caf62653d097ff85'),
    },
    offers: toV3Offers(FACTORIES.uniswapV3),
  },
]
