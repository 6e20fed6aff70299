import { z } from 'zod'
import { integer, share } from './numbers.ts'
import { chainUrls } from './rpc-urls.ts'

const text = z.string().trim().min(1)
const optionalText = text.optional()
const url = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' })
const count = integer(1)

/** Settings per provider: hosts, keys, rates. Hosts are settings so that a local server can replace each provider. */
export const providerSettings = {
  COINMARKETCAP_BASE_URL: url.default('https://pro-api.coinmarketcap.com'),
  COINMARKETCAP_API_KEY: optionalText,
  COINMARKETCAP_REQUESTS_PER_MINUTE: count.default(30),
  COINMARKETCAP_CREDITS_PER_MONTH: count.default(15_000),
  COINGECKO_BASE_URL: url.default('https://api.coingecko.com/api/v3'),
  COINGECKO_API_KEY: optionalText,
  COINGECKO_REQUESTS_PER_MINUTE: count.optional(),
  COINGECKO_CALLS_PER_MONTH: count.optional(),
  DEFILLAMA_BASE_URL: url.default('https://api.llama.fi'),
  DEFILLAMA_REQUESTS_PER_MINUTE: count.default(60),
  DEFILLAMA_COINS_BASE_URL: url.default('https://coins.llama.fi'),
  MORALIS_BASE_URL: url.default('https://deep-index.moralis.io/api/v2.2'),
  MORALIS_API_KEY: optionalText,
  MORALIS_REQUESTS_PER_MINUTE: count.default(300),
  MORALIS_UNITS_PER_DAY: count.default(40_000),
  ETHPLORER_BASE_URL: url.default('https://api.ethplorer.io'),
  ETHPLORER_BNB_BASE_URL: url.default('https://api.binplorer.com'),
  ETHPLORER_API_KEY: text.default('freekey'),
  ETHPLORER_REQUESTS_PER_MINUTE: count.default(20),
  ETHPLORER_REQUESTS_PER_HOUR: count.default(16),
  X_BASE_URL: url.default('https://api.x.com'),
  X_BEARER_TOKEN: optionalText,
  X_REQUESTS_PER_MINUTE: count.default(20),
  X_POST_FIELDS_PARAMETER: z.enum(['tweet.fields', 'post.fields']).default('tweet.fields'),
  SENTIMENT_SAMPLE_SIZE: integer(10, 1000).default(10),
  DISCORD_BASE_URL: url.default('https://discord.com/api/v10'),
  DISCORD_BOT_TOKEN: optionalText,
  DISCORD_REQUESTS_PER_MINUTE: count.default(30),
  TELEGRAM_BASE_URL: url.default('https://t.me'),
  TELEGRAM_REQUESTS_PER_MINUTE: count.default(20),
  TELEGRAM_BOT_BASE_URL: url.default('https://api.telegram.org'),
  TELEGRAM_BOT_TOKEN: optionalText,
  SNAPSHOT_BASE_URL: url.default('https://hub.snapshot.org'),
  SNAPSHOT_API_KEY: optionalText,
  SNAPSHOT_REQUESTS_PER_MINUTE: count.default(60),
  GOLDRUSH_BASE_URL: url.default('https://api.covalenthq.com'),
  GOLDRUSH_API_KEY: optionalText,
  GOLDRUSH_REQUESTS_PER_MINUTE: count.default(200),
  RATINGS_SOURCE: optionalText,
  RPC_URLS: z.string().default('').pipe(chainUrls),
  RPC_REQUESTS_PER_MINUTE: count.default(300),
  RPC_BATCH_SIZE: count.default(100),
  DEX_FIRST_RUN_HOURS: count.default(24),
  PROVIDER_HISTORY_SHARE: share.default(0.5),
  PROVIDER_TIMEOUT_MS: count.default(30_000),
  PROVIDER_MAX_BYTES: count.default(64 * 1024 * 1024),
}

type ProviderSettings = z.infer<z.ZodObject<typeof providerSettings>>

/** Without a key, all clients of an IP address share a limit of about five requests per minute. */
function toCoinGeckoRate(s: ProviderSettings): number {
  return s.COINGECKO_REQUESTS_PER_MINUTE ?? (s.COINGECKO_API_KEY === undefined ? 5 : 25)
}

/** Whether the host is that of paid plans. */
export const isPaidCoinGecko = (baseUrl: string): boolean => new URL(baseUrl).hostname.startsWith('pro-api.')

/** The monthly quota: by default that of the host's smallest plan. Without a key there is no monthly quota. */
function toCoinGeckoMonth(s: ProviderSettings): number | undefined {
  if (s.COINGECKO_API_KEY === undefined) return undefined
  return s.COINGECKO_CALLS_PER_MONTH ?? (isPaidCoinGecko(s.COINGECKO_BASE_URL) ? 100_000 : 10_000)
}

/** The settings of each provider, by its name. */
export function toProviders(s: ProviderSettings) {
  const http = { timeoutMs: s.PROVIDER_TIMEOUT_MS, maxBytes: s.PROVIDER_MAX_BYTES }
  const toHost = (baseUrl: string, requestsPerMinute: number) => ({ ...http, baseUrl, requestsPerMinute })
  return {
    coinmarketcap: {
      ...toHost(s.COINMARKETCAP_BASE_URL, s.COINMARKETCAP_REQUESTS_PER_MINUTE),
      apiKey: s.COINMARKETCAP_API_KEY,
      creditsPerMonth: s.COINMARKETCAP_API_KEY === undefined ? undefined : s.COINMARKETCAP_CREDITS_PER_MONTH,
    },
    coingecko: {
      ...toHost(s.COINGECKO_BASE_URL, toCoinGeckoRate(s)),
      apiKey: s.COINGECKO_API_KEY,
      callsPerMonth: toCoinGeckoMonth(s),
    },
    defillama: toHost(s.DEFILLAMA_BASE_URL, s.DEFILLAMA_REQUESTS_PER_MINUTE),
    defillamaCoins: toHost(s.DEFILLAMA_COINS_BASE_URL, s.DEFILLAMA_REQUESTS_PER_MINUTE),
    moralis: {
      ...toHost(s.MORALIS_BASE_URL, s.MORALIS_REQUESTS_PER_MINUTE),
      apiKey: s.MORALIS_API_KEY,
      unitsPerDay: s.MORALIS_UNITS_PER_DAY,
    },
    ethplorer: {
      ...toHost(s.ETHPLORER_BASE_URL, s.ETHPLORER_REQUESTS_PER_MINUTE),
      bnbBaseUrl: s.ETHPLORER_BNB_BASE_URL,
      apiKey: s.ETHPLORER_API_KEY,
      requestsPerHour: s.ETHPLORER_REQUESTS_PER_HOUR,
    },
    x: {
      ...toHost(s.X_BASE_URL, s.X_REQUESTS_PER_MINUTE),
      bearerToken: s.X_BEARER_TOKEN,
      postFieldsParameter: s.X_POST_FIELDS_PARAMETER,
      postsPerDao: s.SENTIMENT_SAMPLE_SIZE,
    },
    discord: { ...toHost(s.DISCORD_BASE_URL, s.DISCORD_REQUESTS_PER_MINUTE), botToken: s.DISCORD_BOT_TOKEN },
    telegram: toHost(s.TELEGRAM_BASE_URL, s.TELEGRAM_REQUESTS_PER_MINUTE),
    telegramBot: { ...toHost(s.TELEGRAM_BOT_BASE_URL, s.TELEGRAM_REQUESTS_PER_MINUTE), botToken: s.TELEGRAM_BOT_TOKEN },
    snapshot: { ...toHost(s.SNAPSHOT_BASE_URL, s.SNAPSHOT_REQUESTS_PER_MINUTE), apiKey: s.SNAPSHOT_API_KEY },
    goldrush: { ...toHost(s.GOLDRUSH_BASE_URL, s.GOLDRUSH_REQUESTS_PER_MINUTE), apiKey: s.GOLDRUSH_API_KEY },
    ratings: { ...http, source: s.RATINGS_SOURCE },
    rpc: { ...http, urls: s.RPC_URLS, requestsPerMinute: s.RPC_REQUESTS_PER_MINUTE, batchSize: s.RPC_BATCH_SIZE },
  }
}
