import { jsonReply, type Provider, type Reply } from '../exchange.ts'
import { toNoiseKey, unit } from '../noise.ts'
import { DAY, type TreasuryHolding, type World } from '../world.ts'

/** Chains by EIP-155 number, which the provider accepts besides its own names. */
const CHAINS: Readonly<Record<string, string>> = {
  '1': 'ethereum',
  '10': 'optimism',
  '56': 'bnb',
  '137': 'polygon',
  '250': 'fantom',
  '8453': 'base',
  '42161': 'arbitrum',
  '43114': 'avalanche',
}
const DEFAULT_DAYS = 30
/** Above all requests of the demo. */
const MOST_DAYS = 400

/** GoldRush's balances of an address, now and day by day. Source: docs/providers.md, section 11. */
export const goldrush: Provider = {
  name: 'goldrush',
  handle({ path, query, headers, now }, world) {
    if (!/^Bearer \S+$/.test(headers.authorization ?? '')) return toError(401, 'No valid API key was provided.')
    const [, chainId = '', address = '', method] =
      /^\/v1\/([\w-]+)\/address\/([^/]+)\/(balances_v2|portfolio_v2)\/$/.exec(path) ?? []
    if (method === undefined) return toError(404, 'Not found')
    const chain = CHAINS[chainId]
    if (chain === undefined) return toError(400, `Chain ${chainId} is not supported`)
    if (!/^0x[0-9a-f]{40}$/i.test(address)) return toError(400, `Malformed address provided: ${address}`)
    const about = { chain, chainId, address: address.toLowerCase() }
    if (method === 'balances_v2') return toBalances(about, query.get('no-spam') === 'true', now, world)
    const days = Math.min(MOST_DAYS, Number(query.get('days') ?? DEFAULT_DAYS))
    return Number.isInteger(days) && days > 0 ? toPortfolio(about, days, now, world) : toError(400, 'Invalid days')
  },
  failure: (status) => toError(status, status === 402 ? 'Credit limit exceeded.' : 'The request could not be served.'),
  empty: () => toData({ items: [] }),
}

interface About {
  readonly chain: string
  readonly chainId: string
  readonly address: string
}

function toError(status: number, message: string): Reply {
  return jsonReply({ data: null, error: true, error_message: message, error_code: String(status) }, status)
}

function toData(data: object): Reply {
  return jsonReply({ data, error: false, error_message: null, error_code: null })
}

/** `no-spam` omits tokens that are surely spam; all other spam is included with a mark. */
function toBalances({ chain, chainId, address }: About, noSpam: boolean, now: number, world: World): Reply {
  const before = new Map(holdingsOf(world, chain, address, now - DAY).map((holding) => [holding.contract, holding]))
  const isSure = ({ isSpam, contract }: TreasuryHolding) => isSpam && Number.parseInt(contract.slice(-1), 16) % 2 === 0
  const items = holdingsOf(world, chain, address, now)
    .filter((holding) => !(noSpam && isSure(holding)))
    .map((holding) => toItem(holding, before.get(holding.contract)))
  return toData({
    address,
    updated_at: new Date(now).toISOString(),
    quote_currency: 'USD',
    chain_id: Number(chainId),
    chain_name: `${chain}-mainnet`,
    items,
  })
}

function toItem(holding: TreasuryHolding, before: TreasuryHolding | undefined) {
  return {
    ...toNames(holding),
    contract_display_name: holding.name,
    supports_erc: ['erc20'],
    last_transferred_at: null,
    is_native_token: holding.isNative,
    type: toType(holding),
    is_spam: holding.isSpam,
    balance: String(holding.balance),
    balance_24h: String(before?.balance ?? 0n),
    quote_rate: toRate(holding),
    quote_rate_24h: before ? toRate(before) : null,
    quote: toQuote(holding),
    quote_24h: before ? toQuote(before) : null,
    pretty_quote: toPretty(toQuote(holding)),
    pretty_quote_24h: before ? toPretty(toQuote(before)) : null,
  }
}

/** The provider classifies a token without a quote as dust, even if it is traded. */
const toType = (holding: TreasuryHolding): string => (toQuote(holding) === 0 ? 'dust' : holding.type)

/** Balances change only at midnight, so open and close of a day are equal. */
function toPortfolio({ chain, address, chainId }: About, days: number, now: number, world: World): Reply {
  const today = Math.floor(now / DAY) * DAY
  const byToken = new Map<string, { item: ReturnType<typeof toNames>; holdings: object[] }>()
  for (let day = 0; day < days; day += 1) {
    const at = today - day * DAY
    for (const holding of holdingsOf(world, chain, address, at)) {
      const token = byToken.get(holding.contract) ?? { item: toNames(holding), holdings: [] }
      byToken.set(holding.contract, token)
      const quote = toQuote(holding)
      const point = { balance: String(holding.balance), quote, pretty_quote: toPretty(quote) }
      const bar = { open: point, high: point, low: point, close: point }
      token.holdings.push({ timestamp: new Date(at).toISOString(), quote_rate: toRate(holding), ...bar })
    }
  }
  const items = [...byToken.values()].map(({ item, holdings }) => ({ ...item, holdings }))
  return toData({
    address,
    updated_at: new Date(now).toISOString(),
    quote_currency: 'USD',
    chain_id: Number(chainId),
    items,
  })
}

/** An address outside all treasuries has a zero balance of the native coin. */
function holdingsOf(world: World, chain: string, address: string, at: number): readonly TreasuryHolding[] {
  return world.treasury(chain, address, at) ?? [EMPTY_WALLET]
}

const EMPTY_WALLET: TreasuryHolding = {
  contract: `0x${'e'.repeat(40)}`,
  symbol: 'ETH',
  name: 'Ether',
  decimals: 18,
  type: 'cryptocurrency',
  isNative: true,
  isSpam: false,
  isOwn: false,
  balance: 0n,
  price: null,
}

function toNames({ contract, symbol, name, decimals }: TreasuryHolding) {
  return {
    contract_decimals: decimals,
    contract_name: name,
    contract_ticker_symbol: symbol,
    contract_address: contract,
  }
}

/** Spam has an invented price; one token in twelve has none although it is traded. */
function toRate({ contract, price, isSpam, isNative }: TreasuryHolding): number | null {
  if (isSpam) return 1_000
  return !isNative && unit(toNoiseKey(12, contract), 0) > 11 / 12 ? null : price
}

/** 0 without a price, as the provider sends it. */
function toQuote(holding: TreasuryHolding): number {
  return (Number(holding.balance) / 10 ** holding.decimals) * (toRate(holding) ?? 0)
}

const toPretty = (quote: number) => `$${quote.toFixed(2)}`
