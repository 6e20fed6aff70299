import { count, declareProvider, text, url } from './declaration.ts'

export const goldrushDeclaration = declareProvider({
  title: 'GoldRush',
  about: "holdings of treasuries. Needs a key; without one, DefiLlama's treasuries are used, which are fewer.",
  settings: {
    GOLDRUSH_API_KEY: text.optional(),
    GOLDRUSH_BASE_URL: url.default('https://api.covalenthq.com'),
    GOLDRUSH_REQUESTS_PER_MINUTE: count.default(200),
  },
  toConfig: (s, limits) => ({
    goldrush: {
      ...limits,
      baseUrl: s.GOLDRUSH_BASE_URL,
      requestsPerMinute: s.GOLDRUSH_REQUESTS_PER_MINUTE,
      apiKey: s.GOLDRUSH_API_KEY,
    },
  }),
  cost: '0.5 credits a call and more',
  data: [{ data: 'treasuries', key: 'GOLDRUSH_API_KEY', withoutKey: "DefiLlama's treasuries, which are fewer" }],
  days: [
    {
      day: 'about 130 credits',
      plan: 'trial: 14 days with 25,000 in all; then Vibe Coding, $10 a month for 10,000',
    },
  ],
})
