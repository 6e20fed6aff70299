import { jsonReply, type Provider, type Reply, type UpstreamRequest } from '../exchange.ts'
import { type Asset, findAsset, type Holder, type HolderList } from '../world.ts'
import { toSwaps } from './moralis-swaps.ts'

/** The provider's names of the registry's chains. */
const CHAINS: Readonly<Record<string, string>> = {
  eth: 'ethereum',
  bsc: 'bnb',
  polygon: 'polygon',
  arbitrum: 'arbitrum',
  optimism: 'optimism',
  base: 'base',
  avalanche: 'avalanche',
  gnosis: 'gnosis',
  linea: 'linea',
}
const USED_UP =
  'Validation service blocked: Your plan: free-plan-daily total included usage has been consumed, please upgrade your plan'
const MOST_OWNERS = 100
const PERIODS = ['5min', '1h', '6h', '24h', '3d', '7d', '30d']
const TIERS = [10, 25, 50, 100, 250, 500]

/**
 * Moralis' holders, owners and swaps of a token, mounted with its version prefix. Source: docs/providers.md, section 4.
 */
export const moralis: Provider = {
  name: 'moralis',
  handle(request, world) {
    if (!request.headers['x-api-key']) return jsonReply({ message: 'Invalid key' }, 401)
    const [, address, route] =
      /^\/api\/v2\.2\/erc20\/(0x[0-9a-fA-F]{40})\/(holders|owners|swaps)$/.exec(request.path) ?? []
    const chain = CHAINS[request.query.get('chain') ?? 'eth']
    if (address === undefined) return jsonReply({ message: 'Not Found' }, 404)
    if (chain === undefined) return jsonReply({ message: ['chain must be a valid enum value'], statusCode: 400 }, 400)
    const asset = findAsset(world, chain, address)
    if (asset && route === 'swaps') return toSwaps(world, asset, request)
    const list = asset && world.holders(asset, request.now)
    if (!asset || !list) return jsonReply({ message: 'No token found', statusCode: 404 }, 404)
    return route === 'holders' ? jsonReply(toSummary(list)) : toOwners(asset, list, request)
  },
  failure: (status) => jsonReply({ message: status === 429 ? 'Too Many Requests' : 'Internal server error' }, status),
  exhausted: () => jsonReply({ message: USED_UP }, 401),
  empty: ({ path }) =>
    jsonReply(
      path.endsWith('/holders') ? { totalHolders: 0 } : { cursor: null, page: 1, page_size: MOST_OWNERS, result: [] },
    ),
}

function toSummary({ count, holders, totalSupply }: HolderList) {
  const tiers = TIERS.map((size) => {
    const supply = holders.slice(0, size).reduce((sum, { balance }) => sum + balance, 0n)
    return [`top${size}`, { supply: String(supply), supplyPercent: (Number(supply) / Number(totalSupply)) * 100 }]
  })
  return {
    totalHolders: count,
    holderSupply: Object.fromEntries(tiers),
    holderChange: Object.fromEntries(PERIODS.map((period) => [period, { change: 0, changePercent: 0 }])),
    holdersByAcquisition: { swap: 0, transfer: 0, airdrop: 0 },
    holderDistribution: { whales: 0, sharks: 0, dolphins: 0, fish: 0, octopus: 0, crabs: 0, shrimps: 0 },
  }
}

/** A page of owners; the cursor is an opaque text with the start of the next page. */
function toOwners(asset: Asset, list: HolderList, { query }: UpstreamRequest): Reply {
  const limit = Number(query.get('limit') ?? MOST_OWNERS)
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST_OWNERS) {
    return jsonReply({ message: ['limit must be between 1 and 100'] }, 400)
  }
  const start = Number(Buffer.from(query.get('cursor') ?? '', 'base64url').toString() || 0)
  const ordered = query.get('order') === 'ASC' ? [...list.holders].reverse() : list.holders
  const result = ordered.slice(start, start + limit).map((holder) => toOwner(asset, list, holder))
  const next = start + limit
  return jsonReply({
    cursor: next < ordered.length ? Buffer.from(String(next)).toString('base64url') : null,
    page: Math.floor(start / limit) + 1,
    page_size: limit,
    total_supply: String(list.totalSupply),
    result,
  })
}

function toOwner({ decimals }: Asset, { price }: HolderList, { address, balance, share }: Holder) {
  const formatted = toDecimal(balance, decimals)
  return {
    owner_address: address,
    owner_address_label: null,
    entity: null,
    entity_logo: null,
    balance: String(balance),
    balance_formatted: formatted,
    is_contract: false,
    usd_value: price === null ? null : String(Number(formatted) * price),
    percentage_relative_to_total_supply: share,
  }
}

function toDecimal(balance: bigint, decimals: number): string {
  const digits = String(balance).padStart(decimals + 1, '0')
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}
