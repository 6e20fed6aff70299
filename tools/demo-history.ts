import { z } from 'zod'
import type { Config } from '../shared/config/config.ts'
import { withoutOff } from '../shared/config/datasets-off.ts'
import { toReason } from '../shared/errors.ts'
import { DAY_MS, toBucketStart } from '../shared/intervals.ts'
import { openLedger } from '../shared/ledger/ledger.ts'
import { ALL_ENTITIES } from '../shared/registry/entities.ts'
import type { Database } from '../shared/store/store.ts'
import { createHttpClients } from '../workers/http/client.ts'
import type { Job } from '../workers/job/define-job.ts'
import discord from '../workers/jobs/discord.ts'
import telegram from '../workers/jobs/telegram.ts'
import twitter from '../workers/jobs/twitter.ts'
import twitterSentiment from '../workers/jobs/twitter-sentiment.ts'
import { type JobContext, runJob } from '../workers/run/runner.ts'

/** Daily datasets without provider history. In a live system their history starts on the first day. */
const JOBS: readonly Job[] = [twitter, discord, telegram, twitterSentiment]

/** Days collected concurrently. */
const CONCURRENCY = 4

const storedDay = z.object({ day: z.number() })

/**
 * Fills the demo's past of these datasets: runs each job once for each of the last `days` days that are not stored,
 * against the stand-in as of that day. Real providers cannot serve a past time, so a setting with another
 * host disables this. Ends early when aborted.
 * @returns the number of collected and failed days, counted per dataset.
 */
export async function collectPastDays(
  context: Pick<JobContext, 'config' | 'db' | 'redis' | 'recomputation' | 'registry' | 'log' | 'redact'>,
  options: { upstream: string; days: number; now: number; signal: AbortSignal },
): Promise<{ collected: number; failed: number }> {
  const today = toBucketStart(options.now, '1d')
  const past = Array.from({ length: options.days }, (_, index) => today - (index + 1) * DAY_MS)
  const outcome = { collected: 0, failed: 0 }
  if (!isStandIn(context.config, options.upstream)) return outcome
  const http = createHttpClients({ log: context.log })
  const missingDays: { job: Job; slot: number }[] = []
  for (const job of withoutOff(JOBS, context.config.datasetsOff)) {
    const range = { from: today - options.days * DAY_MS, to: today }
    await openLedger(context.db, job.dataset).expect([{ entity: ALL_ENTITIES, ...range, interval: '1d' }])
    const stored = await readStoredDays(context.db, job)
    missingDays.push(...past.filter((slot) => !stored.has(slot)).map((slot) => ({ job, slot })))
  }
  const queue = missingDays.values()
  const collectOn = async () => {
    for (const { job, slot } of queue) {
      if (options.signal.aborted) return
      // Twelve hours later, like a late worker: a search has to end before the present.
      const at = slot + DAY_MS / 2
      const config = toConfigAt(context.config, options.upstream, at)
      const collectors = job.connect({ ...context, config, http })
      try {
        await runJob(job, collectors, { ...context, config, now: () => at }, { kind: 'slot', slot })
        outcome.collected += 1
      } catch (error) {
        // The stores are being stopped too, so this is not a failure.
        if (options.signal.aborted) return
        outcome.failed += 1
        context.log.error({ dataset: job.name, slot: new Date(slot).toISOString(), reason: toReason(error) }, 'no past')
      }
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, collectOn))
  return outcome
}

async function readStoredDays(db: Database, { name, dataset }: Job): Promise<ReadonlySet<number>> {
  const { table, time } = dataset.series
  const sql = `SELECT DISTINCT toUnixTimestamp64Milli(${time}) AS day FROM ${table}`
  const rows = await db.rows({ name: `stored-days-${name}`, sql, schema: storedDay })
  return new Set(rows.map(({ day }) => day))
}

function isStandIn({ providers: { x, discord, telegram, telegramBot } }: Config, upstream: string): boolean {
  return [x, discord, telegram, telegramBot].every(({ baseUrl }) => baseUrl.startsWith(`${upstream}/`))
}

/** The same settings with every stand-in address set to a time. */
function toConfigAt(config: Config, upstream: string, at: number): Config {
  const withPastClock = <S extends { baseUrl: string }>(settings: S): S => ({
    ...settings,
    baseUrl: settings.baseUrl.replace(upstream, `${upstream}/at/${at}`),
  })
  const { x, discord, telegram, telegramBot } = config.providers
  const moved = {
    x: withPastClock(x),
    discord: withPastClock(discord),
    telegram: withPastClock(telegram),
    telegramBot: withPastClock(telegramBot),
  }
  return { ...config, providers: { ...config.providers, ...moved } }
}
