import { parseConfig } from '../../shared/config/config.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Entity, Provider } from '../../workers/job/define-job.ts'
import type { PostsSource } from '../../workers/providers/x/posts.ts'
import { createObservedClients, startProviderServer } from '../provider-server.ts'
import { toTestDao } from '../samples.ts'
import { noDatabase } from './no-database.ts'
import { silent } from './silent.ts'

/** A DAO on every network. */
export const alfa: Dao = {
  ...toTestDao(1, null),
  twitter: 'https://twitter.com/Alfa_DAO',
  discord: 'https://discord.gg/AlFa12',
  telegram: 'https://t.me/alfachat',
}

const closers: (() => Promise<void>)[] = []

/** Closes the servers of `connect`. */
export async function closeServers(): Promise<void> {
  await Promise.all(closers.splice(0).map((close) => close()))
}

/** A social provider connected to a server with a test's responses. */
export async function connect<Source, E extends Entity>(
  provider: Provider<Source, E>,
  handler: Parameters<typeof startProviderServer>[0],
  settings: Record<string, string> = {},
) {
  const server = await startProviderServer(handler)
  closers.push(server.close)
  const config = parseConfig({
    PUBLIC_URL: 'https://data.example',
    X_BASE_URL: server.baseUrl,
    X_BEARER_TOKEN: 'x-secret',
    X_REQUESTS_PER_MINUTE: '60000',
    DISCORD_BASE_URL: server.baseUrl,
    DISCORD_REQUESTS_PER_MINUTE: '60000',
    TELEGRAM_BASE_URL: server.baseUrl,
    TELEGRAM_BOT_BASE_URL: server.baseUrl,
    TELEGRAM_BOT_TOKEN: '123:bot-secret',
    TELEGRAM_REQUESTS_PER_MINUTE: '60000',
    ...settings,
  })
  const { http, calls } = createObservedClients()
  return { server, calls, source: provider.connect({ config, http, db: noDatabase, log: silent }) }
}

/** All texts of a DAO's sample, page by page. */
export async function readTexts(source: PostsSource, dao: Dao, slot: number, signal: AbortSignal): Promise<string[]> {
  const texts: string[] = []
  let [read, next]: [number, string | undefined] = [0, undefined]
  do {
    const page = await source.fetchPage(dao, slot, { next, read }, signal)
    texts.push(...page.texts)
    read += page.posts
    next = page.next
  } while (next !== undefined)
  return texts
}

/** The error of a failing call. */
export const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => {
      throw new Error('nothing failed')
    },
    (error: unknown) => error as { code: string; message: string; retryAfterMs?: number },
  )
