import { groupBy } from '../../shared/group-by.ts'
import { toId } from '../../shared/ids.ts'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { buildRequest, type Message } from './channels.ts'
import { type Outcome, toStoredReason } from './outcome.ts'
import type { Channel } from './rules.ts'
import type { Send } from './send.ts'
import { type AlertStore, toDeliveries } from './state.ts'
import type { Delivery, MessageKey } from './state-rows.ts'

/** A message is repeated for a day after its first attempt. */
const REPEAT_MS = DAY_MS
const FIRST_PAUSE_MS = 5_000
const LONGEST_PAUSE_MS = 4 * HOUR_MS

/**
 * The wait after a failed attempt: 5 s, tripled with each failure, at most 4 hours, with jitter of up to a fifth. Never
 * shorter than the wait that the receiver requested.
 */
export function toPauseMs(attempts: number, retryAfterMs: number | undefined, random: number): number {
  const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 3 ** Math.min(20, attempts - 1))
  return Math.max(retryAfterMs ?? 0, Math.round(pause * (1 - random / 5)))
}

export interface DeliveryContext {
  readonly store: AlertStore
  readonly send: Send
  readonly channels: () => Readonly<Record<string, Channel>>
  readonly publicUrl: string
  readonly smtpName?: string | undefined
  readonly log: Logger
  readonly redact: (text: string) => string
  readonly now: () => number
  /** Counts an attempt. */
  readonly attempted?: (channelType: string, outcome: 'delivered' | 'retried' | 'dead') => void
}

/** The result of an attempt: `retryAt` is the time of the next one. */
export type Attempt =
  | { readonly state: 'delivered' | 'dead' | 'none' }
  | { readonly state: 'pending'; readonly retryAt: number }

/**
 * Sends a message once, if it is due and not finished, and stores the outcome. A process that dies between the two sends
 * it again, under the same id.
 * @throws DataError `storage`; the caller repeats it.
 */
export async function deliver(key: MessageKey, context: DeliveryContext, signal: AbortSignal): Promise<Attempt> {
  const { store, now } = context
  const stored = await store.readMessage(key)
  const deliveries = stored.deliveries.filter(({ state }) => state === 'pending')
  const [first] = deliveries
  if (first === undefined) return { state: 'none' }
  if (first.nextTryAt > now()) return { state: 'pending', retryAt: first.nextTryAt }
  const channel = context.channels()[key.channel]
  const sent = new Set(deliveries.map(({ firing }) => firing))
  const firings = stored.firings.filter(({ id }) => sent.has(id))
  const answer =
    channel === undefined
      ? toFailure(`ALERTS_FILE has no channel ${key.channel}`)
      : await context.send(
          buildRequest(channel, toMessage(key, firings), {
            ...{ publicUrl: context.publicUrl, smtpName: context.smtpName, now: now() },
          }),
          signal,
        )
  const next = toNext(first, { ...answer, reason: toStoredReason(answer.reason, context.redact) }, now())
  await store.writeDeliveries(
    deliveries.map((delivery) => ({
      ...delivery,
      ...next,
      version: delivery.version + 1,
    })),
  )
  const type = channel?.type ?? 'unknown'
  const fields = { ...key, firings: firings.length, attempts: next.attempts, reason: next.reason }
  if (next.state === 'delivered') context.log.info(fields, 'alert delivered')
  else if (next.state === 'dead')
    context.log.error(fields, 'alert not delivered: npm run alerts -- retry sends it again')
  else context.log.warn({ ...fields, retryAt: new Date(next.nextTryAt).toISOString() }, 'alert will be sent again')
  context.attempted?.(type, next.state === 'pending' ? 'retried' : next.state)
  return next.state === 'pending' ? { state: 'pending', retryAt: next.nextTryAt } : { state: next.state }
}

const toMessage = ({ rule, message }: MessageKey, firings: Message['firings']): Message => ({
  ...{ id: message, rule, firings },
  type: firings.some(({ isDigest }) => isDigest) ? 'alert.digest' : 'alert.fired',
})

const toFailure = (reason: string): Outcome => ({
  ...{ isDelivered: false, status: null, reason, retryAfterMs: undefined, isPermanent: true, body: '' },
})

function toNext(delivery: Delivery, outcome: Outcome, now: number) {
  const attempts = delivery.attempts + 1
  const firstTryAt = delivery.firstTryAt ?? now
  const done = { attempts, firstTryAt, nextTryAt: now, reason: outcome.reason }
  if (outcome.isDelivered) return { ...done, state: 'delivered' as const }
  const nextTryAt = now + toPauseMs(attempts, outcome.retryAfterMs, Math.random())
  const isOver = outcome.isPermanent || nextTryAt > firstTryAt + REPEAT_MS
  return isOver ? { ...done, state: 'dead' as const } : { ...done, nextTryAt, state: 'pending' as const }
}

/**
 * Returns the messages that are due, with the time of their next attempt. Adds the deliveries of firings whose process
 * died, and forms the messages of due digests.
 * @throws DataError `storage`
 */
export async function findDue(
  store: AlertStore,
  now: number,
): Promise<readonly (MessageKey & { readonly nextTryAt: number })[]> {
  await store.writeDeliveries(toDeliveries(await store.readUndelivered(now)))
  const pending = await store.readPending(now)
  const digests = groupBy(
    pending.filter(({ message }) => message === ''),
    ({ rule, channel }) => `${rule} ${channel}`,
  )
  const formed = [...digests.values()].flatMap((deliveries) => {
    const firings = deliveries.map(({ firing }) => firing).sort()
    const [{ rule = '', channel = '' } = {}] = deliveries
    const message = toId('alert digest', rule, channel, ...firings)
    return deliveries.map((delivery) => ({ ...delivery, message, version: delivery.version + 1 }))
  })
  // Stored before the first attempt, so each repeat has the same firings and the same id.
  await store.writeDeliveries(formed)
  const messages = new Map<string, MessageKey & { readonly nextTryAt: number }>()
  for (const { rule, channel, message, nextTryAt } of [...pending.filter(({ message }) => message !== ''), ...formed])
    messages.set(`${channel} ${message}`, { rule, channel, message, nextTryAt })
  return [...messages.values()]
}

/** Makes every dead letter pending again, with a new day of attempts. Returns how many there were. */
export async function reviveDead(store: AlertStore, now: number): Promise<number> {
  const dead = await store.readDead()
  await store.writeDeliveries(
    dead.map((delivery) => ({
      ...delivery,
      ...{ state: 'pending' as const, attempts: 0, firstTryAt: null, nextTryAt: now, version: delivery.version + 1 },
    })),
  )
  return dead.length
}
