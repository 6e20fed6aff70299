import { count, declareProvider, text, url } from './declaration.ts'

export const moralisDeclaration = declareProvider({
  title: 'Moralis',
  about: 'token holders, and DEX trades of chains without a node. Needs a key.',
  settings: {
    MORALIS_API_KEY: text.optional(),
    MORALIS_BASE_URL: url.default('https://deep-index.moralis.io/api/v2.2'),
    MORALIS_REQUESTS_PER_MINUTE: count.default(300),
    MORALIS_UNITS_PER_DAY: count.default(40_000).meta({
      help: "Daily units of the plan, 50 per call: the free plan's 40,000 are the holders of 10 tokens and 10 pages of trades an hour, and 80 calls for history. Holders are collected in rotation over the tokens, trades of the largest tokens first. Data beyond the units is reported as missing for this reason.",
    }),
  },
  toConfig: (s, limits) => ({
    moralis: {
      ...limits,
      baseUrl: s.MORALIS_BASE_URL,
      requestsPerMinute: s.MORALIS_REQUESTS_PER_MINUTE,
      apiKey: s.MORALIS_API_KEY,
      unitsPerDay: s.MORALIS_UNITS_PER_DAY,
    },
  }),
  cost: '50 compute units a call, up to MORALIS_UNITS_PER_DAY',
  data: [
    {
      data: 'holders; trades of chains without a node',
      key: 'MORALIS_API_KEY',
      withoutKey: 'only Ethplorer serves holders',
    },
  ],
  days: [
    {
      day: 'at most 40,000 units: 800 calls of 50',
      plan: 'free. `MORALIS_UNITS_PER_DAY` is the budget: holders take turns, trades of the largest tokens come first',
    },
  ],
})
