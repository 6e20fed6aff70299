import { count, declareProvider, text, url } from './declaration.ts'

export const ethplorerDeclaration = declareProvider({
  title: 'Ethplorer',
  about:
    'token holders that Moralis does not have. The free key allows 20 calls a minute and 3,000 a week, so tokens are collected in rotation. With a personal key raise both limits; each token is then collected every hour.',
  settings: {
    ETHPLORER_API_KEY: text.default('freekey'),
    ETHPLORER_BASE_URL: url.default('https://api.ethplorer.io'),
    ETHPLORER_BNB_BASE_URL: url.default('https://api.binplorer.com'),
    ETHPLORER_REQUESTS_PER_MINUTE: count.default(20),
    ETHPLORER_REQUESTS_PER_HOUR: count.default(16),
  },
  toConfig: (s, limits) => ({
    ethplorer: {
      ...limits,
      baseUrl: s.ETHPLORER_BASE_URL,
      requestsPerMinute: s.ETHPLORER_REQUESTS_PER_MINUTE,
      bnbBaseUrl: s.ETHPLORER_BNB_BASE_URL,
      apiKey: s.ETHPLORER_API_KEY,
      requestsPerHour: s.ETHPLORER_REQUESTS_PER_HOUR,
    },
  }),
  cost: 'free',
  data: [
    { data: 'holders', key: 'ETHPLORER_API_KEY', withoutKey: '`freekey`: tokens take turns, each every 12 hours' },
  ],
  days: [
    {
      day: 'at most 384 requests, 16 an hour, without a key of Moralis',
      plan: '`freekey`: 3,000 requests a week; 8 tokens an hour take turns',
    },
  ],
})
