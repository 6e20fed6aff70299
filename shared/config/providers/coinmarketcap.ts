import { count, declareProvider, text, url } from './declaration.ts'

export const coinmarketcapDeclaration = declareProvider({
  title: 'CoinMarketCap',
  about: 'prices. Without a key only the latest quotes are available, no history.',
  settings: {
    COINMARKETCAP_API_KEY: text.optional(),
    COINMARKETCAP_BASE_URL: url.default('https://pro-api.coinmarketcap.com'),
    COINMARKETCAP_REQUESTS_PER_MINUTE: count.default(30),
    COINMARKETCAP_CREDITS_PER_MONTH: count.default(15_000).meta({
      help: "Monthly credits of the key's plan: 15,000 on the free plan. A hundred tokens or points cost one. They are spread over days and slots: first the newest prices of the largest tokens, then history. CoinGecko serves the prices of the other tokens.",
    }),
  },
  toConfig: (s, limits) => ({
    coinmarketcap: {
      ...limits,
      baseUrl: s.COINMARKETCAP_BASE_URL,
      requestsPerMinute: s.COINMARKETCAP_REQUESTS_PER_MINUTE,
      apiKey: s.COINMARKETCAP_API_KEY,
      creditsPerMonth: s.COINMARKETCAP_API_KEY === undefined ? undefined : s.COINMARKETCAP_CREDITS_PER_MONTH,
    },
  }),
  // With a plan, the result of a check would depend on the tokens that the slot can afford.
  check: { coinmarketcap: { creditsPerMonth: undefined } },
  cost: '1 credit per 100 tokens or points, with a key up to COINMARKETCAP_CREDITS_PER_MONTH',
  data: [{ data: 'prices', key: 'COINMARKETCAP_API_KEY', withoutKey: 'the latest prices work, history does not' }],
  days: [
    {
      day: '578 credits for all tokens: one per hundred in each slot',
      plan: 'Basic, free: 15,000 a month, of which a day is 483. `COINMARKETCAP_CREDITS_PER_MONTH` is the budget: the largest tokens come first, a hundred in one slot and two hundred in the next. CoinGecko serves the others, and 23 a day remain for history',
    },
  ],
})
