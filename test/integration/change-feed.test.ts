import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { createRedis } from '../../shared/queue/redis.ts'
import {
  bridgeChangeStream,
  type ChangeEvent,
  type ChangeFeed,
  createChangeFeed,
  createDatabase,
  type Database,
  publishChange,
} from '../../shared/store/store.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createHandLog } from '../support/hand-log.ts'
import { silent } from '../support/silent.ts'

const config = createTestConfig()
const { redis } = config
let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase(config)
})
afterAll(() => database.drop())
const closers: (() => unknown)[] = []

/** A proxy to Redis that can fall silent: connections stay open and accept bytes, but return none. */
async function createProxy() {
  const { hostname, port } = new URL(redis.url)
  const sockets = new Set<Socket>()
  let isSilent = false
  const server = createServer((client) => {
    const target = connect(Number(port), hostname)
    for (const socket of [client, target]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
    }
    client.on('data', (bytes) => isSilent || target.write(bytes)).on('close', () => target.destroy())
    target.on('data', (bytes) => isSilent || client.write(bytes))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fallSilent: (is: boolean) => {
      isSilent = is
    },
    cut: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Unlike Node's `once`, it ignores errors. */
const happened = (subscriber: Redis, event: string) => new Promise((resolve) => subscriber.once(event, resolve))

/** A database that fails every statement, so that Redis is the only source. */
const nowhere = createDatabase({ ...config.clickhouse, url: 'http://127.0.0.1:1' }, 'read')

const follow = (url: string, db: Database = nowhere) => {
  const subscriber = createRedis(url, silent, 'subscriber')
  const feed = createChangeFeed(subscriber, { prefix: redis.prefix, db, log: silent })
  closers.push(feed.close)
  return { subscriber, feed }
}
const createPublisher = () => {
  const publisher = createRedis(redis.url, silent)
  closers.push(() => publisher.disconnect())
  return (change: ChangeEvent) => publishChange({ db: database.db, redis: publisher, prefix: redis.prefix }, change)
}
const onReceived = (feed: ChangeFeed) =>
  vi.waitFor(() => expect(feed.version('prices')).toBeDefined(), { timeout: 60_000, interval: 20 })

let proxy: Awaited<ReturnType<typeof createProxy>>
beforeEach(async () => {
  proxy = await createProxy()
})
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close()
})

it('change feed: a change event changes the version of its dataset only', async () => {
  const { feed, subscriber } = follow(proxy.url)
  const publish = createPublisher()
  const messages: unknown[] = []
  await onReceived(feed)
  feed.follow((change) => messages.push(change))
  const changes = feed.changes
  const [prices, holders] = [feed.version('prices'), feed.version('holders')]
  const message = happened(subscriber, 'message')
  await publish({ dataset: 'prices', from: 1, to: 2 })
  await message
  expect(feed.version('prices')).not.toBe(prices)
  expect(feed.version('holders')).toBe(holders)
  expect(feed.changes).toBe(changes + 1)
  expect(messages).toEqual([{ dataset: 'prices', from: 1, to: 2 }])
  expect(feed.since('prices')).toBeGreaterThanOrEqual(feed.since('holders'))
})

it('change feed applies an event of the log before its listeners run, and only once', async () => {
  const { feed, subscriber } = follow(proxy.url)
  await onReceived(feed)
  const before = feed.version('prices')
  const { changeStream, commit } = createHandLog()
  bridgeChangeStream(feed, changeStream)
  const seen: unknown[] = []
  changeStream.follow({ changed: () => void seen.push(feed.version('prices')), missed: () => {} })
  commit('prices', 'the first')
  expect(seen).toEqual([feed.version('prices')])
  expect(seen).not.toEqual([before])
  const stranger = createRedis(redis.url, silent)
  closers.push(() => stranger.disconnect())
  const readState = async (id: string) => {
    const message = happened(subscriber, 'message')
    await stranger.publish(`${redis.prefix}:commits`, JSON.stringify({ dataset: 'prices', id }))
    await message
    return feed.version('prices')
  }
  expect(await readState('the first')).toBe(seen[0])
  expect(await readState('the second')).not.toBe(seen[0])
})

it('change feed starts new versions of all datasets after an invalid message', async () => {
  const { feed, subscriber } = follow(proxy.url)
  await onReceived(feed)
  const before = feed.version('holders')
  const message = happened(subscriber, 'message')
  const stranger = createRedis(redis.url, silent)
  closers.push(() => stranger.disconnect())
  await stranger.publish(`${redis.prefix}:commits`, 'prices!')
  await message
  expect(feed.version('holders')).not.toBe(before)
})

it('change feed reads recorded changes from ClickHouse while Redis is unavailable', async () => {
  const publish = createPublisher()
  await publish({ dataset: 'prices' })
  const { feed } = follow('redis://127.0.0.1:1', database.db)
  await onReceived(feed)
  const [prices, holders] = [feed.version('prices'), feed.version('holders')]
  await publish({ dataset: 'prices' })
  await vi.waitFor(() => expect(feed.version('prices')).not.toBe(prices), { timeout: 60_000, interval: 20 })
  expect(feed.version('holders')).toBe(holders)
})

it('change feed uses Redis again when it is available', async () => {
  const publish = createPublisher()
  const { feed, subscriber } = follow(proxy.url, database.db)
  await onReceived(feed)
  const closed = happened(subscriber, 'close')
  proxy.cut()
  await closed
  await onReceived(feed)
  await vi.waitFor(() => expect(feed.version('prices')).toMatch(/^redis/), { timeout: 60_000, interval: 20 })
  const message = happened(subscriber, 'message')
  const before = feed.version('prices')
  await publish({ dataset: 'prices' })
  await message
  expect(feed.version('prices')).not.toBe(before)
})

it('change feed closes a silent connection, and serves no version while it may miss events', async () => {
  const { feed, subscriber } = follow(proxy.url)
  await onReceived(feed)
  const before = feed.version('prices')
  proxy.fallSilent(true)
  await happened(subscriber, 'close')
  expect(feed.version('prices')).toBeUndefined()
  proxy.fallSilent(false)
  await onReceived(feed)
  expect(feed.version('prices')).not.toBe(before)
})

it('change feed starts new versions of all datasets after a lost connection', async () => {
  const { feed, subscriber } = follow(proxy.url)
  await onReceived(feed)
  const before = feed.version('prices')
  const closed = happened(subscriber, 'close')
  proxy.cut()
  await closed
  expect(feed.version('prices')).toBeUndefined()
  await onReceived(feed)
  expect(feed.version('prices')).not.toBe(before)
})

it('change feed retries a rejected subscription', async () => {
  const admin = createRedis(redis.url, silent)
  const user = redis.prefix
  closers.push(() => admin.acl('DELUSER', user).then(() => admin.disconnect()))
  await admin.acl('SETUSER', user, 'on', '>pass', '~*', '+@all', 'resetchannels')
  const { feed, subscriber } = follow(proxy.url.replace('//', `//${user}:pass@`))
  await happened(subscriber, 'close')
  expect(feed.version('prices')).toBeUndefined()
  await admin.acl('SETUSER', user, 'allchannels')
  await onReceived(feed)
})

it('change feed starts and closes without waiting for Redis', () => {
  const { feed } = follow('redis://127.0.0.1:1')
  expect(feed.version('prices')).toBeUndefined()
  expect(feed.close()).toBeUndefined()
})
