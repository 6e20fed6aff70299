/**
 * How each provider bills what was asked of it, by its own documents (providers document; where a plan has a limit, the
 * free one's). Of those that are not here every call is free.
 */
const COSTS: Readonly<Record<string, string>> = {
  coinmarketcap: '1 credit per 100 tokens or points, with a key up to COINMARKETCAP_CREDITS_PER_MONTH',
  coingecko: 'free; with a key each call counts, up to COINGECKO_CALLS_PER_MONTH',
  moralis: '50 compute units a call, up to MORALIS_UNITS_PER_DAY',
  'moralis-swaps': '50 compute units a call, up to MORALIS_UNITS_PER_DAY',
  goldrush: '0.5 credits a call and more',
  x: '$0.010 a user, $0.005 a post',
  ethereum: 'as the node bills: each call of a batch counts',
  'index-token-contract': 'as the node bills: each call of a batch counts',
}

export const toCost = (provider: string): string => COSTS[provider] ?? 'free'
