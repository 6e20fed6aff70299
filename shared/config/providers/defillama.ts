import { count, declareProvider, url } from './declaration.ts'

export const defillamaDeclaration = declareProvider({
  title: 'DefiLlama',
  about: 'total value locked, fees and revenue, treasuries, token prices. No key.',
  settings: {
    DEFILLAMA_BASE_URL: url.default('https://api.llama.fi'),
    DEFILLAMA_REQUESTS_PER_MINUTE: count.default(60),
    DEFILLAMA_COINS_BASE_URL: url.default('https://coins.llama.fi').meta({
      help: 'Host of the prices of ether and tokens, for the USD values of trades and holdings. No key; the same limit as above, counted separately.',
    }),
  },
  toConfig: (s, limits) => {
    const requestsPerMinute = s.DEFILLAMA_REQUESTS_PER_MINUTE
    return {
      defillama: { ...limits, baseUrl: s.DEFILLAMA_BASE_URL, requestsPerMinute },
      defillamaCoins: { ...limits, baseUrl: s.DEFILLAMA_COINS_BASE_URL, requestsPerMinute },
    }
  },
  cost: 'free',
  data: [{ data: 'value locked, fees, treasuries, prices of coins' }],
  days: [{ day: 'free', plan: '' }],
})
