import { z } from 'zod'
import { toJson } from '../../shared/json.ts'
import { toLine } from '../../shared/text-line.ts'
import type { ChatService } from './channels.ts'
import { cutText } from './texts.ts'

/** The answer of a receiver, or the reason why there is none. */
export interface Outcome {
  readonly isDelivered: boolean
  /** Of HTTP or of SMTP. */
  readonly status: number | null
  /** With the receiver's words; `toStoredReason` bounds it. */
  readonly reason: string
  /** The wait that the receiver requested. */
  readonly retryAfterMs: number | undefined
  /** Whether a repetition is useless: the receiver is gone or rejects the message, or its address is refused. */
  readonly isPermanent: boolean
  /** The beginning of the answer. */
  readonly body: string
}

const MOST_REASON = 500

/**
 * A reason for logs and tables. The text is cut after the redaction, because the redaction finds only complete secrets.
 */
export const toStoredReason = (reason: string, redact: (text: string) => string): string =>
  cutText(redact(toLine(reason)), MOST_REASON)

/** Telegram and Discord write the wait into the body, in seconds. */
const wait = z.union([
  z.object({ retry_after: z.number() }),
  z.object({ parameters: z.object({ retry_after: z.number() }) }).transform(({ parameters }) => parameters),
])

function toRetryAfterMs(header: string | undefined, body: string): number | undefined {
  const seconds = header === undefined ? wait.safeParse(toJson(body)).data?.retry_after : Number(header)
  if (seconds !== undefined && seconds >= 0) return seconds * 1000
  const at = Date.parse(header ?? '')
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}

/** 4xx statuses of a chat service that are temporary. All others are final answers. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 409, 421, 423, 425, 429])

/** A group that became a supergroup (https://core.telegram.org/bots/api#responseparameters). */
const migrated = z.object({ parameters: z.object({ migrate_to_chat_id: z.union([z.int(), z.string()]) }) })

/** The change in ALERTS_FILE that a final answer requires from the operator. */
function toAdvice(service: ChatService, status: number, body: string): string {
  const moved = migrated.safeParse(toJson(body)).data?.parameters.migrate_to_chat_id
  if (moved !== undefined) return `the chat has another id now: set chat to '${moved}'`
  if (status === 400 || status === 413)
    return service === 'telegram' && /chat|group/i.test(body)
      ? 'set chat to the id of a chat that has the bot'
      : `${service} does not accept this message`
  if (service !== 'telegram') return `${service} has no such webhook any more: create one and set url`
  if (status === 403) return 'the bot may not write to the chat: add it there, or set another chat'
  return 'telegram does not know the bot: set token'
}

/** The outcome of an answer over HTTP. A receiver of the operator is asked again, unless it is gone. */
export function toOutcome({
  service,
  status,
  retryAfter,
  body,
}: {
  readonly service: ChatService | undefined
  readonly status: number
  readonly retryAfter: string | undefined
  readonly body: string
}): Outcome {
  const isDelivered = status >= 200 && status < 300
  const isFinal = service !== undefined && status >= 400 && status < 500 && !TEMPORARY.has(status)
  const words = toLine(body)
  const reasons = [
    `status ${status}`,
    ...(status >= 300 && status < 400 ? ['redirects are not followed'] : []),
    ...(isFinal ? [toAdvice(service, status, body)] : []),
    ...(words === '' ? [] : [words]),
  ]
  return {
    ...{ isDelivered, status, body, reason: isDelivered ? '' : reasons.join(': ') },
    retryAfterMs: toRetryAfterMs(retryAfter, body),
    isPermanent: isFinal || status === 410,
  }
}
