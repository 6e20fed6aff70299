import { z } from 'zod'
import type { Config } from '../shared/config/config.ts'
import { withoutOff } from '../shared/config/datasets-off.ts'
import { toReason } from '../shared/errors.ts'
import { DAY_MS, INTERVAL_SECONDS, toBucketStart } from '../shared/intervals.ts'
import { openLedger } from '../shared/ledger/ledger.ts'
import { ALL_ENTITIES } from '../shared/registry/entities.ts'
import type { Database } from '../shared/store/store.ts'
import { createHttpClients } from '../workers/http/client.ts'
import type { Job, ProviderContext } from '../workers/job/define-job.ts'
import dexTrades from '../workers/jobs/dex-trades.ts'
import discord from '../workers/jobs/discord.ts'
import holders from '../workers/jobs/holders.ts'
import telegram from '../workers/jobs/telegram.ts'
import twitter from '../workers/jobs/twitter.ts'
import twitterSentiment from '../workers/jobs/twitter-sentiment.ts'
import { type JobContext, runJob } from '../workers/run/runner.ts'
import { planChunks } from '../workers/schedule/chunks.ts'

/** Datasets without provider history. In a live system their history starts on the first day. */
const COMMUNITIES: readonly Job[] = [twitter, discord, telegram, twitterSentiment]

/** Days and ranges collected concurrently. */
const CONCURRENCY = 4

/**
 * Each range of trades sums its tokens again, which costs more than to read a day. So a range has all tokens and as many
 * days as one reading of a node may have trades.
 */
const TRADES = { intervals: ['1h'], chunkEntities: 1_000, chunkPoints: 72 } as const satisfies Job['history']

/** Number of past days by kind of data. */
interface PastDays {
  readonly communities: number
  readonly holders: number
  readonly trades: number
}

/** A part of the past. `collect` returns the number of days that it stored. */
interface Part {
  readonly dataset: string
  readonly from: number
  collect(): Promise<number>
}

type PastContext = Pick<JobContext, 'config' | 'db' | 'redis' | 'recomputation' | 'registry' | 'log' | 'redact'>
interface PastOptions {
  readonly upstream: string
  readonly days: PastDays
  readonly now: number
  readonly signal: AbortSignal
}

const storedDay = z.object({ day: z.number() })

/**
 * Fills the demo's past of the datasets that the history of the providers would fill slowly or not at all, up to the start
 * of today. Days that are stored are not collected again. Real providers cannot serve a past time, so a setting with
 * another host disables this. Ends early when aborted.
 * @returns the number of collected and failed days, counted per dataset.
 */
export async function collectPastDays(
  context: PastContext,
  options: PastOptions,
): Promise<{ collected: number; failed: number }> {
  const outcome = { collected: 0, failed: 0 }
  if (!isStandIn(context.config, options.upstream)) return outcome
  const http = createHttpClients({ log: context.log })
  const { communities, holders: snapshots, trades } = options.days
  const isCollected = (job: Job) => withoutOff([job], context.config.datasetsOff).length > 0
  const slots = [...COMMUNITIES.map((job) => ({ job, days: communities })), { job: holders, days: snapshots }]
  const hasTrades = trades > 0 && isCollected(dexTrades)
  const parts: Part[] = []
  for (const { job, days } of slots)
    if (isCollected(job)) parts.push(...(await toSlots(job, days, { ...context, http }, options)))
  if (hasTrades) parts.push(...toTrades({ ...context, http }, options))
  const queue = parts.values()
  const collectOn = async () => {
    for (const { dataset, from, collect } of queue) {
      if (options.signal.aborted) return
      try {
        const days = await collect()
        outcome.collected += days
      } catch (error) {
        // The stores are being stopped too, so this is not a failure.
        if (options.signal.aborted) return
        outcome.failed += 1
        context.log.error({ dataset, from: new Date(from).toISOString(), reason: toReason(error) }, 'no past')
      }
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, collectOn))
  if (hasTrades && !options.signal.aborted) await expectTrades(context, options)
  return outcome
}

/** The first slots of the last `days` days that are not stored, each collected from the stand-in as of that time. */
async function toSlots(
  job: Job,
  days: number,
  context: PastContext & Pick<ProviderContext, 'http'>,
  { upstream, now }: PastOptions,
): Promise<Part[]> {
  const today = toBucketStart(now, '1d')
  const range = { from: today - days * DAY_MS, to: today }
  // One value a day is not all that a shorter cadence expects.
  if (job.cadence === '1d')
    await openLedger(context.db, job.dataset).expect([{ entity: ALL_ENTITIES, ...range, interval: '1d' }])
  const stored = await readStoredDays(context.db, job)
  const past = Array.from({ length: days }, (_, index) => today - (index + 1) * DAY_MS)
  return past
    .filter((slot) => !stored.has(slot))
    .map((slot) => ({
      dataset: job.name,
      from: slot,
      collect: async () => {
        // In the middle of the slot, like a late worker: a search has to end before the present.
        const at = slot + INTERVAL_SECONDS[job.cadence] * 500
        const config = toConfigAt(context.config, upstream, at)
        const collectors = job.connect({ ...context, config })
        await runJob(job, collectors, { ...context, config, now: () => at }, { kind: 'slot', slot })
        return 1
      },
    }))
}

const toTradedDays = ({ days, now }: PastOptions) => {
  const to = toBucketStart(now, '1d')
  return { from: to - days.trades * DAY_MS, to, interval: '1h' } as const
}

/** Ranges of trades, newest first. A range skips the tokens whose trades are stored. */
function toTrades(context: PastContext & Pick<ProviderContext, 'http'>, options: PastOptions): Part[] {
  const entities = dexTrades.entities(context.registry)
  const collectors = dexTrades.connect(context)
  const chunks = planChunks({ ...dexTrades, history: TRADES }, entities, toTradedDays(options))
  return chunks.reverse().map(({ payload }) => ({
    dataset: dexTrades.name,
    from: payload.from,
    collect: async () => {
      const { rows } = await runJob(dexTrades, collectors, { ...context, now: () => options.now }, payload)
      return rows === 0 ? 0 : (payload.to - payload.from) / DAY_MS
    },
  }))
}

/**
 * Records the days of trades as expected, so that the scheduler collects what is missing. Recorded earlier, it would
 * collect them at the same time.
 */
async function expectTrades({ db }: PastContext, options: PastOptions): Promise<void> {
  await openLedger(db, dexTrades.dataset).expect([{ entity: ALL_ENTITIES, ...toTradedDays(options) }])
}

async function readStoredDays(db: Database, { name, dataset }: Job): Promise<ReadonlySet<number>> {
  const { table, time } = dataset.series
  const sql = `SELECT DISTINCT toUnixTimestamp64Milli(${time}) AS day FROM ${table}`
  const rows = await db.rows({ name: `stored-days-${name}`, sql, schema: storedDay })
  return new Set(rows.map(({ day }) => day))
}

function isStandIn({ providers }: Config, upstream: string): boolean {
  const { x, discord, telegram, telegramBot, moralis, ethplorer, rpc, defillamaCoins } = providers
  const urls = [x, discord, telegram, telegramBot, moralis, ethplorer, defillamaCoins].map(({ baseUrl }) => baseUrl)
  return [...urls, ethplorer.bnbBaseUrl, ...Object.values(rpc.urls)].every((url) => url.startsWith(`${upstream}/`))
}

/** The same settings with the addresses of the providers of slots set to a time. */
function toConfigAt(config: Config, upstream: string, at: number): Config {
  const toPast = (url: string) => url.replace(upstream, `${upstream}/at/${at}`)
  const withPastClock = <S extends { baseUrl: string }>(settings: S): S => ({
    ...settings,
    baseUrl: toPast(settings.baseUrl),
  })
  const { x, discord, telegram, telegramBot, moralis, ethplorer } = config.providers
  const moved = {
    x: withPastClock(x),
    discord: withPastClock(discord),
    telegram: withPastClock(telegram),
    telegramBot: withPastClock(telegramBot),
    moralis: withPastClock(moralis),
    ethplorer: withPastClock({ ...ethplorer, bnbBaseUrl: toPast(ethplorer.bnbBaseUrl) }),
  }
  return { ...config, providers: { ...config.providers, ...moved } }
}
