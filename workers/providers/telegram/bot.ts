import { z } from 'zod'
import { telegramDeclaration } from '../../../shared/config/providers/telegram.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { ErrorReading } from '../../http/client.ts'
import type { Provider } from '../../job/define-job.ts'
import { asSent, checkAnswer, toJsonValue } from '../answer.ts'
import { type MembersSource, toMembers } from '../contracts/members.ts'
import { toChatName } from './members.ts'

/** 400: the chat is unknown, or was migrated. 403: the bot was removed. */
const ABOUT_THE_CHAT = [400, 403]
const PATH = '/getChatMemberCount'
const CONCURRENCY = 1

/** Telegram's Bot API (docs/providers.md, section 14.3): totals only, for public names. Used if a bot token is set. */
export const telegramBot: Provider<MembersSource, Dao> = {
  name: 'telegram-bot',
  cost: telegramDeclaration.cost,
  covers: ({ telegram }, { providers }) =>
    providers.telegramBot.botToken !== undefined && toChatName(telegram)?.startsWith('+') === false,
  connect({ config, http }) {
    const { botToken, baseUrl, ...settings } = config.providers.telegramBot
    // The token is part of every path. As part of the base URL, it appears in no message and no metric.
    const client = http.open({
      provider: 'telegram-bot',
      ...settings,
      baseUrl: `${baseUrl}/bot${botToken ?? ''}`,
      readError,
    })
    const requestCount = async (chat_id: string | number, signal: AbortSignal) => {
      const answer = await client.json({ path: PATH, query: { chat_id }, signal, answers: ABOUT_THE_CHAT })
      return checkAnswer(countAnswer, answer, { provider: 'telegram-bot', path: PATH })
    }
    return {
      concurrency: CONCURRENCY,
      async fetchMembers(dao, signal) {
        const first = await requestCount(`@${toChatName(dao.telegram)}`, signal)
        const movedTo = first.ok ? undefined : first.parameters?.migrate_to_chat_id
        const answer = movedTo === undefined ? first : await requestCount(movedTo, signal)
        return answer.ok
          ? toMembers({ active_members: null, total_members: answer.result ?? null })
          : answer.description
      },
    }
  },
}

const parameters = z.object({
  migrate_to_chat_id: z.number().optional(),
  retry_after: z.number().nonnegative().max(86_400).optional().catch(undefined),
})

const failure = z.object({ ok: z.literal(false), description: z.string(), parameters: parameters.optional() })

const countAnswer = z.discriminatedUnion('ok', [z.object({ ok: z.literal(true), result: asSent }), failure])

function readError(status: number, body: string): ErrorReading | undefined {
  if (status === 401 || status === 404) {
    return { code: 'provider_rejected', says: `${body} (check TELEGRAM_BOT_TOKEN)` }
  }
  if (status !== 429) return undefined
  const parsed = failure.safeParse(toJsonValue(body))
  const seconds = parsed.success ? parsed.data.parameters?.retry_after : undefined
  if (seconds === undefined) return undefined
  return { code: 'provider_unavailable', says: body, retryAfterMs: seconds * 1000 }
}
