import { jsonReply, type Provider, type Reply } from '../exchange.ts'
import { type Asset, findAsset, type HolderList } from '../world.ts'

const MOST_HOLDERS = 100
const LIMIT_MESSAGE = 'Request limit is reached for your API key'

export const ethplorer = createExplorer('ethplorer', 'ethereum')
/** The same service for BNB Chain, on another host. */
export const binplorer = createExplorer('binplorer', 'bnb')

/** Ethplorer of one chain. Source: docs/providers.md, section 5. */
function createExplorer(name: string, chain: string): Provider {
  return {
    name,
    handle({ path, query, now }, world) {
      if (!query.get('apiKey')) return toError(1, 'Invalid API key', 401)
      const [, method, address = ''] = /^\/(getTopTokenHolders|getTokenInfo)\/(.+)$/.exec(path) ?? []
      if (method === undefined) return toError(404, 'Not found', 404)
      if (!/^0x[0-9a-f]{40}$/i.test(address)) return toError(104, 'Invalid address format', 400)
      const asset = findAsset(world, chain, address)
      const list = asset && world.holders(asset, now)
      if (!asset || !list) return toError(150, 'Address is not a token contract', 400)
      if (method === 'getTokenInfo') return jsonReply(toTokenInfo(asset, list, now))
      const limit = Math.min(MOST_HOLDERS, Number(query.get('limit') ?? 10))
      return jsonReply({ holders: list.holders.slice(0, limit).map(toHolder) })
    },
    failure: (status) => toError(status, status === 429 ? LIMIT_MESSAGE : 'Internal server error', status),
    empty: ({ path }) => jsonReply(path.startsWith('/getTopTokenHolders/') ? { holders: [] } : {}),
  }
}

function toError(code: number, message: string, status: number): Reply {
  return jsonReply({ error: { code, message } }, status)
}

/** A float in base units and a share of two decimals; older recordings lack the exact balance. */
function toHolder({ address, balance, share, recordedBalance }: HolderList['holders'][number]) {
  if (recordedBalance !== undefined) return { address, balance: recordedBalance, share }
  return { address, balance: Number(balance), rawBalance: String(balance), share: Math.round(share * 100) / 100 }
}

function toTokenInfo(asset: Asset, { count, totalSupply, price }: HolderList, now: number) {
  const seconds = Math.floor(now / 1000)
  return {
    address: asset.contractAddress.toLowerCase(),
    name: asset.name,
    decimals: String(asset.decimals),
    symbol: asset.symbol,
    totalSupply: String(totalSupply),
    owner: '',
    lastUpdated: seconds,
    issuancesCount: 0,
    price: price === null ? false : { rate: price, ts: seconds, currency: 'USD' },
    holdersCount: count,
    ethTransfersCount: 0,
  }
}
