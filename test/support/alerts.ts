import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Config } from '../../shared/config/config.ts'
import { openQueue } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { publishChange } from '../../shared/store/store.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { ALERT_QUEUES, type Alerts, startAlerts } from '../../workers/alerts/alerts.ts'
import { type AlertStore, createAlertStore } from '../../workers/alerts/state.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from './database.ts'
import { emptyRedis } from './empty-redis.ts'
import { loadFewDaos } from './few-daos.ts'
import { silent } from './silent.ts'

export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/**
 * How a receiver answers. `hang` leaves the request without an answer; `afterMs` delays it. With `isReset` the connection
 * is reset after the body, of which `content-length` promises more; with `isOpen` the rest never comes.
 */
export type Reply =
  | {
      readonly status: number
      readonly headers?: Record<string, string>
      readonly body?: string
      readonly afterMs?: number
      readonly isReset?: boolean
      readonly isOpen?: boolean
    }
  | 'hang'

export interface Receiver {
  readonly url: string
  readonly received: Received[]
  /** Decides about each request; by default 204. */
  reply: (request: Received) => Reply
  /** Refuses all connections, or accepts them again under the same URL. */
  setDown(isDown: boolean): Promise<void>
  close(): Promise<void>
}

/** A local receiver of messages that records every request. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = []
  const receiver = {
    url: '',
    received,
    reply: (_: Received): Reply => ({ status: 204 }),
    setDown: (isDown: boolean) => (isDown ? stop() : listen(Number(new URL(receiver.url).port))),
    close: () => stop(),
  }
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const one = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() }
    received.push(one)
    const reply = receiver.reply(one)
    if (reply === 'hang') return
    if (reply.afterMs !== undefined) await delay(reply.afterMs)
    response.writeHead(reply.status, reply.headers)
    response.flushHeaders()
    if (reply.isOpen) response.write(reply.body)
    else if (reply.isReset) response.write(reply.body || '', () => request.socket.resetAndDestroy())
    else response.end(reply.body)
  })
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const stop = () => {
    const isClosed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeAllConnections()
    return isClosed
  }
  await listen(0)
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return receiver
}

/** The bodies of webhooks, by their title. */
export const titlesOf = (received: readonly Received[]): string[] =>
  received.flatMap(({ body }) =>
    (JSON.parse(body) as { data: { alerts: { title: string }[] } }).data.alerts.map(({ title }) => title),
  )

export interface AlertStage {
  readonly config: Config
  /** The file of the rules. */
  readonly file: string
  readonly database: TestDatabase
  readonly registry: Registry
  readonly store: AlertStore
  readonly receiver: Receiver
  readonly clock: { now: number }
  /** Rewrites the rules; the channel `hook` is the receiver. */
  setRules(rules: readonly object[], channels?: Readonly<Record<string, object>>): void
  /** Starts a worker for alerts. Its clock is ahead until it is compared with others, which it is with `isCompared`. */
  start(clock?: { readonly aheadMs: number; readonly isCompared?: boolean }): Promise<Alerts>
  /** Announces stored rows of a dataset. */
  commit(dataset: string): Promise<void>
  /** Resolves when no evaluation waits or runs. */
  untilIdle(): Promise<void>
  /** The same after one more evaluation of every rule, for which all earlier change events have arrived. */
  untilEvaluated(): Promise<void>
  /** Removes every key of the queues, as an emptied Redis does. */
  emptyRedis(): Promise<void>
  close(): Promise<void>
}

/** Alerts over an empty database, with a local receiver and a clock of the test. */
export async function openAlertStage(settings: Readonly<Record<string, string>> = {}): Promise<AlertStage> {
  const receiver = await startReceiver()
  const config = createTestConfig({
    ALERTS_PRIVATE_NETWORKS: '127.0.0.0/8',
    PUBLIC_URL: 'https://data.example.org',
    ...settings,
  })
  const database = await createTestDatabase(config)
  const redis = createRedis(config.redis.url, silent)
  const dir = mkdtempSync(join(tmpdir(), 'alerts-'))
  const file = join(dir, 'alerts.json')
  const registry = loadFewDaos()
  const clock = { now: Date.parse('2024-05-06T07:00:00Z') }
  const started: Alerts[] = []
  const { prefix } = config.redis
  const stage: AlertStage = {
    ...{ config, file, database, registry, receiver, clock, store: createAlertStore(database.db) },
    setRules: (rules, channels = {}) => {
      const hook = { type: 'webhook', url: `${receiver.url}/hook`, secrets: [WEBHOOK_SECRET] }
      writeFileSync(file, JSON.stringify({ channels: { hook, ...channels }, rules }))
    },
    start: async ({ aheadMs, isCompared = false } = { aheadMs: 0 }) => {
      let offset = aheadMs
      const alerts = await startAlerts(
        {
          ...{
            config,
            db: database.db,
            redis,
            registry,
            log: silent,
            now: () => clock.now + offset,
            sync: async () => {
              if (isCompared) offset = 0
            },
            metrics: createMetrics('test'),
          },
          ...{ redact: (text: string) => text, takeover: { lockMs: 2_000, checkMs: 500 } },
        },
        file,
      )
      started.push(alerts)
      return alerts
    },
    commit: (dataset) => publishChange({ db: database.db, redis, prefix }, { dataset }),
    untilIdle: async () => {
      const queue = openQueue(ALERT_QUEUES[0], redis, prefix)
      const counts = () => queue.getJobCounts('wait', 'prioritized', 'delayed', 'active')
      await expect.poll(async () => Object.values(await counts()).every((count) => count === 0)).toBe(true)
      await queue.close()
    },
    untilEvaluated: async () => {
      await Promise.all(started.map((alerts) => alerts.tick()))
      await stage.untilIdle()
    },
    emptyRedis: () => emptyRedis(redis, prefix),
    close: async () => {
      await Promise.all(started.map((alerts) => alerts.stop()))
      redis.disconnect()
      await Promise.all([receiver.close(), database.drop()])
      rmSync(dir, { recursive: true, force: true })
    },
  }
  return stage
}
