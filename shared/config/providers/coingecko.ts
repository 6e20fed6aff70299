import { count, declareProvider, text, url } from './declaration.ts'

/** Whether the host is that of paid plans. */
export const isPaidCoinGecko = (baseUrl: string): boolean => new URL(baseUrl).hostname.startsWith('pro-api.')

/** Without a key, all clients of an IP address share a limit of about five requests per minute. */
const RATES = { withKey: 25, withoutKey: 5 }
/** Monthly calls of the smallest plan of each host. */
const CALLS = { paid: 100_000, free: 10_000 }

export const coingeckoDeclaration = declareProvider({
  title: 'CoinGecko',
  about: `prices that CoinMarketCap does not have. Without a key it has 365 days of history, and a default of ${RATES.withoutKey} requests per minute, because all clients of an address share a limit; with a key the default is ${RATES.withKey}.`,
  settings: {
    COINGECKO_API_KEY: text.optional(),
    COINGECKO_BASE_URL: url.default('https://api.coingecko.com/api/v3'),
    COINGECKO_REQUESTS_PER_MINUTE: count.optional().meta({ default: String(RATES.withKey) }),
    COINGECKO_CALLS_PER_MONTH: count.optional().meta({
      default: String(CALLS.free),
      help: "Monthly calls of the key's plan, spread likewise. The default is 10,000 of the free plan, and 100,000 on the host of paid plans, https://pro-api.coingecko.com/api/v3. No limit without a key.",
    }),
  },
  toConfig: (s, limits) => {
    const hasKey = s.COINGECKO_API_KEY !== undefined
    const callsOfPlan = isPaidCoinGecko(s.COINGECKO_BASE_URL) ? CALLS.paid : CALLS.free
    return {
      coingecko: {
        ...limits,
        baseUrl: s.COINGECKO_BASE_URL,
        requestsPerMinute: s.COINGECKO_REQUESTS_PER_MINUTE ?? (hasKey ? RATES.withKey : RATES.withoutKey),
        apiKey: s.COINGECKO_API_KEY,
        callsPerMonth: hasKey ? (s.COINGECKO_CALLS_PER_MONTH ?? callsOfPlan) : undefined,
      },
    }
  },
  // With a plan, the result of a check would depend on the tokens that the slot can afford.
  check: { coingecko: { callsPerMonth: undefined } },
  cost: 'free; with a key each call counts, up to COINGECKO_CALLS_PER_MONTH',
  data: [
    {
      data: 'prices',
      key: 'COINGECKO_API_KEY',
      withoutKey: `works at ${RATES.withoutKey} requests a minute, not ${RATES.withKey}; 365 days`,
    },
  ],
  days: [
    {
      day: 'in each slot the tokens that CoinMarketCap leaves out; 24 calls compare all prices, and each slot with a price in doubt has one more, at most 288',
      plan: 'without a key 5 requests a minute, with a free one 10,000 a month, of which a day is 322: `COINGECKO_CALLS_PER_MONTH`',
    },
  ],
})
