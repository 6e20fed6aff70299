import { count, declareProvider, text, url } from './declaration.ts'

export const discordDeclaration = declareProvider({
  title: 'Discord',
  about: 'member counts from invites. Works without a bot token. Requests name PUBLIC_URL as their sender.',
  settings: {
    DISCORD_BOT_TOKEN: text.optional(),
    DISCORD_BASE_URL: url.default('https://discord.com/api/v10'),
    DISCORD_REQUESTS_PER_MINUTE: count.default(30),
  },
  toConfig: (s, limits) => ({
    discord: {
      ...limits,
      baseUrl: s.DISCORD_BASE_URL,
      requestsPerMinute: s.DISCORD_REQUESTS_PER_MINUTE,
      botToken: s.DISCORD_BOT_TOKEN,
    },
  }),
  cost: 'free',
  data: [{ data: 'members', key: 'DISCORD_BOT_TOKEN', withoutKey: 'works' }],
  days: [{ day: 'free', plan: '' }],
})
