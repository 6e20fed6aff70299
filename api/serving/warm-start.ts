import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import { toReason } from '../../shared/errors.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

/** Maximum remembered requests: about 100 kB. */
const MOST_REQUESTS = 1_000
/** The requests of an older file say little about the next ones. */
const MOST_AGE_MS = 7 * DAY_MS
const SAVE_MS = 5 * 60_000
/** Maximum time for all remembered requests together. */
const MOST_MS = 60_000
/** Least pause between two requests, so that clients are served first. */
const PAUSE_MS = 5
const CHECK_MS = 100

const hotRequests = z.object({ savedAt: z.int(), urls: z.array(z.string().startsWith('/')) })

export interface WarmStartOptions {
  /** The remembered requests. API processes with one file replace it atomically, so the last writer decides. */
  readonly file: string
  /** Resolves when the database answers. */
  readonly ready: Promise<unknown>
}

interface Options extends WarmStartOptions {
  /** Ends the work, and saves the file. */
  readonly stopping: AbortSignal
  readonly log: Logger
  readonly now: () => number
  /** The last URLs that were answered, the most recent first. */
  readonly listRecent: (most: number) => readonly string[]
  /** Answers a GET request in this process. */
  readonly answer: (url: string, signal: AbortSignal) => Promise<unknown>
  /** Whether answers are cached: without change events a cached answer could be outdated immediately. */
  readonly canCache: () => boolean
  /** Whether the caches have no memory left for more answers. */
  readonly isFull: () => boolean
}

/** The remembered URLs; none if there is no file, or if it is unusable. */
async function readRequests({ file, log, now }: Options): Promise<readonly string[]> {
  try {
    const { savedAt, urls } = hotRequests.parse(JSON.parse(await readFile(file, 'utf8')))
    if (now() - savedAt <= MOST_AGE_MS) return urls.slice(0, MOST_REQUESTS)
    log.info({ file, savedAt }, 'the file of recent requests is too old: ignored')
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn({ err, file }, 'the file of recent requests is unusable: ignored')
  }
  return []
}

async function saveRequests({ file, now, listRecent }: Options): Promise<void> {
  const urls = listRecent(MOST_REQUESTS)
  if (urls.length === 0) return
  const temporary = `${file}.${process.pid}.new`
  await mkdir(dirname(file), { recursive: true })
  await writeFile(temporary, `${JSON.stringify({ savedAt: now(), urls })}\n`, { mode: 0o600 })
  await rename(temporary, file)
}

/**
 * Answers the requests of the time before the last stop, one after the other with pauses, so that their chunks and lists
 * are cached. Ends when the caches are full.
 */
async function answerRequests(options: Options, urls: readonly string[]): Promise<void> {
  const { log, stopping, answer, isFull } = options
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(MOST_MS)])
  const startedAt = performance.now()
  let [answered, failed] = [0, 0]
  for (const url of urls) {
    if (signal.aborted || isFull()) break
    const before = performance.now()
    // A token may have ended since, or the database may be busy; clients get the reason when they send the request.
    await answer(url, signal).then(
      () => answered++,
      () => failed++,
    )
    const pause = Math.max(PAUSE_MS, performance.now() - before)
    await wait(pause, undefined, { ref: false, signal }).catch(() => {})
  }
  const ms = Math.round(performance.now() - startedAt)
  log.info({ answered, failed, remembered: urls.length, ms }, 'the caches have the answers of recent requests')
}

/**
 * Fills the caches after a start with the answers of the requests that were recent when the process last saved them, and
 * saves the recent requests now and then, and when the process stops.
 */
export function startWarm(options: Options): void {
  const { file, ready, stopping, log, canCache } = options
  const begin = async () => {
    await ready
    const urls = await readRequests(options)
    while (urls.length > 0 && !canCache() && !stopping.aborted) await wait(CHECK_MS, undefined, { ref: false })
    if (urls.length > 0) await answerRequests(options, urls)
  }
  begin().catch((err: unknown) => log.warn({ err }, 'the caches were not filled'))
  let hasFailed = false
  const save = () => {
    saveRequests(options).catch((err: unknown) => {
      // The folder may be read-only.
      if (!hasFailed) log.info({ reason: toReason(err), file }, 'recent requests cannot be saved: each start is cold')
      hasFailed = true
    })
  }
  const timer = setInterval(save, SAVE_MS).unref()
  const end = () => {
    clearInterval(timer)
    save()
  }
  stopping.addEventListener('abort', end, { once: true })
}
