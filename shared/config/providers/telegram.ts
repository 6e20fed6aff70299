import { count, declareProvider, text, url } from './declaration.ts'

export const telegramDeclaration = declareProvider({
  title: 'Telegram',
  about:
    'member counts from the public preview pages, without a key. With a bot token, counts that are missing on a page come from the Bot API (totals only).',
  settings: {
    TELEGRAM_BASE_URL: url.default('https://t.me'),
    TELEGRAM_BOT_TOKEN: text.optional(),
    TELEGRAM_BOT_BASE_URL: url.default('https://api.telegram.org'),
    TELEGRAM_REQUESTS_PER_MINUTE: count.default(20),
  },
  toConfig: (s, limits) => {
    const requestsPerMinute = s.TELEGRAM_REQUESTS_PER_MINUTE
    return {
      telegram: { ...limits, baseUrl: s.TELEGRAM_BASE_URL, requestsPerMinute },
      telegramBot: {
        ...limits,
        baseUrl: s.TELEGRAM_BOT_BASE_URL,
        requestsPerMinute,
        botToken: s.TELEGRAM_BOT_TOKEN,
      },
    }
  },
  cost: 'free',
  data: [{ data: 'members', key: 'TELEGRAM_BOT_TOKEN', withoutKey: 'works; the bot is the second source' }],
  days: [{ day: 'free', plan: '' }],
})
