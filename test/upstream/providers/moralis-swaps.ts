import { formatUnits } from 'viem/utils'
import { type Chain, type ChainLog, FACTORIES } from '../chain.ts'
import { jsonReply, type Reply, type UpstreamRequest } from '../exchange.ts'
import type { Asset, World } from '../world.ts'

const MOST_SWAPS = 100
const V3_FEES = [100, 500, 3000, 10_000]
const EXCHANGES = [
  { name: 'Uniswap v2', factory: FACTORIES.uniswapV2, fees: [null] },
  { name: 'SushiSwap', factory: FACTORIES.sushiswap, fees: [null] },
  { name: 'Uniswap v3', factory: FACTORIES.uniswapV3, fees: V3_FEES },
]

interface Pool {
  readonly address: string
  readonly exchange: string
  readonly factory: string
  readonly quote: Asset
}

/**
 * A page of a token's swaps against quote assets, from the same chain as the node. The cursor is an opaque text with
 * the start of the next page. `totalValueUsd` is 0 if the provider has no price. Source: docs/providers.md, section
 * 4.3.
 */
export function toSwaps(world: World, asset: Asset, { query, now }: UpstreamRequest): Reply {
  const limit = Number(query.get('limit') ?? MOST_SWAPS)
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST_SWAPS) {
    return jsonReply({ message: ['limit must be between 1 and 100'] }, 400)
  }
  const chain = world.chain(asset.chain)
  const transactionTypes = query.get('transactionTypes')?.split(',') ?? ['buy', 'sell']
  const swaps = chain === null ? [] : readSwaps(world, chain, asset, toTimes(query, now))
  const fitting = swaps.filter(({ transactionType }) => transactionTypes.includes(transactionType))
  const ordered = query.get('order') === 'ASC' ? fitting : fitting.reverse()
  const start = Number(Buffer.from(query.get('cursor') ?? '', 'base64url').toString() || 0)
  const next = start + limit
  return jsonReply({
    page: Math.floor(start / limit) + 1,
    pageSize: limit,
    cursor: next < ordered.length ? Buffer.from(String(next)).toString('base64url') : null,
    result: ordered.slice(start, next),
  })
}

function toTimes(query: URLSearchParams, now: number) {
  const [from, to] = [query.get('fromDate'), query.get('toDate')]
  return { from: from === null ? 0 : Date.parse(from), to: to === null ? now : Math.min(now, Date.parse(to)) }
}

function readSwaps(world: World, chain: Chain, asset: Asset, { from, to }: { from: number; to: number }) {
  const pools = new Map(findPools(world, chain, asset).map((pool) => [pool.address, pool]))
  const logs = chain.logs(chain.headAt(from), chain.headAt(to), new Set(pools.keys()))
  return logs.flatMap((log) => {
    const pool = pools.get(log.address)
    const at = (chain.timeOf(log.blockNumber) ?? Number.NaN) * 1000
    return pool === undefined || !(at >= from && at <= to) ? [] : [toSwap(world, chain, asset, pool, log, at)]
  })
}

function findPools(world: World, chain: Chain, asset: Asset): Pool[] {
  const quotes = world.assets.filter(({ dao, chain: of }) => dao === null && of === asset.chain)
  return EXCHANGES.flatMap(({ name, factory, fees }) =>
    quotes.flatMap((quote) =>
      fees.flatMap((fee) => {
        const address = chain.pool({ factory, tokens: [asset.contractAddress, quote.contractAddress], fee })
        return address === null ? [] : [{ address, exchange: name, factory, quote }]
      }),
    ),
  )
}

function toSwap(world: World, chain: Chain, asset: Asset, pool: Pool, log: ChainLog, at: number) {
  const isFirst = asset.contractAddress < pool.quote.contractAddress
  const [net0, net1] = toNets(log)
  const [own, paid] = isFirst ? [net0, net1] : [net1, net0]
  const usd = toAmount(paid, pool.quote) * priceOf(world, pool.quote, at)
  const ownSide = toSide(asset, own, usd)
  const quoteSide = toSide(pool.quote, paid, usd)
  return {
    transactionHash: log.transactionHash,
    transactionIndex: log.transactionIndex,
    transactionType: own > 0n ? ('buy' as const) : ('sell' as const),
    blockTimestamp: new Date(at).toISOString(),
    blockNumber: log.blockNumber,
    subCategory: null,
    walletAddress: chain.transaction(log.transactionHash)?.from ?? null,
    walletAddressLabel: null,
    entity: null,
    pairAddress: pool.address,
    pairLabel: `${asset.symbol}/${pool.quote.symbol}`,
    exchangeAddress: pool.factory,
    exchangeName: pool.exchange,
    exchangeLogo: null,
    bought: own > 0n ? ownSide : quoteSide,
    sold: own > 0n ? quoteSide : ownSide,
    baseQuotePrice: String(toAmount(paid, pool.quote) / toAmount(own, asset)),
    totalValueUsd: usd,
  }
}

/**
 * The trader's net amount of each token; a negative amount is paid. Logs of V2 have four words of data, those of V3
 * five.
 */
function toNets({ data }: ChainLog): [bigint, bigint] {
  const words = (data.slice(2).match(/.{64}/g) ?? []).map((hex) => BigInt.asIntN(256, BigInt(`0x${hex}`)))
  const [a = 0n, b = 0n, c = 0n, d = 0n] = words
  return words.length === 4 ? [c - a, d - b] : [-a, -b]
}

const positive = (net: bigint) => (net < 0n ? -net : net)
const toAmount = (net: bigint, { decimals }: Asset) => Number(formatUnits(positive(net), decimals))

/** Wrapped ether has ether's price; 0 for an asset without a price. */
function priceOf(world: World, quote: Asset, at: number): number {
  const coin = quote.symbol === 'WETH' ? world.assets.find(({ coingeckoId }) => coingeckoId === 'ethereum') : quote
  return (coin && world.history(coin)?.lastAt(at)?.price) ?? 0
}

function toSide({ contractAddress, name, symbol, decimals }: Asset, net: bigint, usd: number) {
  const amount = formatUnits(positive(net), decimals)
  return {
    address: contractAddress,
    name,
    symbol,
    logo: null,
    amount,
    usdPrice: usd / Number(amount),
    usdAmount: usd,
  }
}
