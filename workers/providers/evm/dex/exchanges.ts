/** A token in which pools quote. `usd` defines its value: one dollar, or the price of a coin by DefiLlama's id. */
export interface QuoteToken {
  readonly symbol: string
  /** Lower-case. */
  readonly address: string
  readonly decimals: number
  readonly usd: 'dollar' | `coingecko:${string}`
}

/** An exchange by its factory; `label` is stored with its trades. */
export interface Exchange {
  readonly label: string
  readonly kind: 'v2' | 'v3'
  readonly factory: `0x${string}`
}

/** Facts needed to find the pools of a chain's tokens. */
export interface DexChain {
  readonly quotes: readonly QuoteToken[]
  readonly exchanges: readonly Exchange[]
  readonly reference?: ReferencePool
}

/**
 * A continuously traded Uniswap V3 pool, deep enough that its price is the market's. Its price at a log is closer to
 * the trade than a chart's price. A chain without such a pool uses only the chart.
 */
export interface ReferencePool {
  readonly address: string
  readonly dollar: QuoteToken
  readonly coin: QuoteToken
  /** Number of blocks after which its price is too old. */
  readonly maxAgeBlocks: number
}

/** Uniswap V3's fee tiers, in millionths (docs/providers.md, section 6.2). */
export const V3_FEES = [100, 500, 3000, 10_000] as const

const ether = (address: string): QuoteToken => ({ symbol: 'WETH', address, decimals: 18, usd: 'coingecko:ethereum' })
const dollar = (symbol: string, address: string, decimals: number): QuoteToken => ({
  symbol,
  address,
  decimals,
  usd: 'dollar',
})
const uniswapV3 = (factory: `0x${string}`): Exchange => ({ label: 'uniswap-v3', kind: 'v3', factory })

/** Uniswap V3 has the same address on its first chains (docs/providers.md, section 6.1). */
const FIRST_V3 = uniswapV3('0x1f98431c8ad98523631ae4a59f267346ea31f984')

const ETHEREUM_ETHER = ether('0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2')
const ETHEREUM_USDC = dollar('USDC', '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48', 6)

const BASE_ETHER = ether('0x4200000000000000000000000000000000000006')
const BASE_USDC = dollar('USDC', '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', 6)

/**
 * Chains whose trades can be read from a node, by slug. Contains only verified addresses: a wrong factory finds no
 * pools, and a wrong quote token gives wrong dollar values.
 */
export const DEX_CHAINS: Readonly<Record<string, DexChain>> = {
  ethereum: {
    quotes: [
      ETHEREUM_ETHER,
      ETHEREUM_USDC,
      dollar('USDT', '0xdac17f958d2ee523a2206206994597c13d831ec7', 6),
      dollar('DAI', '0x6b175474e89094c44da98b954eedeac495271d0f', 18),
    ],
    exchanges: [
      { label: 'uniswap-v2', kind: 'v2', factory: '0x5c69bee701ef814a2b6a3edd4b1652cb9cc5aa6f' },
      { label: 'sushiswap', kind: 'v2', factory: '0xc0aee478e3658e2610c5f7a4a2e1777ce9e4f2ac' },
      FIRST_V3,
    ],
    // The factory's USDC/WETH pool with a fee of 0.05 %; 25 blocks are five minutes, a step of the chart.
    reference: {
      address: '0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640',
      dollar: ETHEREUM_USDC,
      coin: ETHEREUM_ETHER,
      maxAgeBlocks: 25,
    },
  },
  arbitrum: {
    quotes: [
      ether('0x82af49447d8a07e3bd95bd0d56f35241523fbab1'),
      dollar('USDC', '0xaf88d065e77c8cc2239327c5edb3a432268e5831', 6),
      dollar('USDC.e', '0xff970a61a04b1ca14834a43f5de4533ebddb5cc8', 6),
      dollar('USDT', '0xfd086bc7cd5c481dcc9c85ebe478a1c0b69fcbb9', 6),
    ],
    exchanges: [FIRST_V3],
  },
  base: {
    quotes: [BASE_ETHER, BASE_USDC],
    exchanges: [uniswapV3('0x33128a8fc17869897dce68ed026d694621f6fdfd')],
    // The factory's WETH/USDC pool with a fee of 0.05 %; 150 blocks are five minutes.
    reference: {
      address: '0xd0b53d9277642d899df5c87a3966a349a798f224',
      dollar: BASE_USDC,
      coin: BASE_ETHER,
      maxAgeBlocks: 150,
    },
  },
  optimism: {
    quotes: [
      ether('0x4200000000000000000000000000000000000006'),
      dollar('USDC', '0x0b2c639c533813f4aa9d7837caf62653d097ff85', 6),
      dollar('USDC.e', '0x7f5c764cbc14f9669b88837ca1490cca17c31607', 6),
    ],
    exchanges: [FIRST_V3],
  },
}
