import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createRedis } from '../../shared/queue/redis.ts'
import { appendToStream } from '../../shared/store/change-feed.ts'
import { type ChangeStream, followChangeStream } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { openStream, type StreamClient } from '../support/event-stream.ts'
import { createHandLog } from '../support/hand-log.ts'
import { silent } from '../support/silent.ts'

const config = createTestConfig()
const { redis } = config
const key = `${redis.prefix}:commit-log`
const publisher = createRedis(redis.url, silent)
let database: Awaited<ReturnType<typeof createApiDatabase>>
const closers: (() => unknown)[] = []

beforeAll(async () => {
  database = await createApiDatabase(config)
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  await publisher.del(key)
})
afterAll(async () => {
  publisher.disconnect()
  await database.drop()
})

const commit = (dataset: string, from?: number, to?: number) =>
  appendToStream(publisher, redis.prefix, { dataset, from, to, entities: 2 })

const followLog = (log = silent): ChangeStream => {
  const [waiting, asking] = [createRedis(redis.url, silent, 'reader'), createRedis(redis.url, silent, 'reader')]
  const changeStream = followChangeStream({ waiting, asking }, redis.prefix, log)
  closers.push(changeStream.close)
  return changeStream
}

async function start(options: Partial<Parameters<typeof startApi>[0]> = {}) {
  const changeStream = options.changeStream ?? followLog()
  await expect.poll(() => changeStream.version).toBeDefined()
  const api = await startApi({ config, ...database, changeFeed: createHandFeed(), ...options, changeStream })
  closers.push(api.close)
  const open = async (query = '', from?: string) => {
    const client = await openStream(`${api.url}/data/stream${query}`, from)
    closers.push(client.kill)
    return client
  }
  return { ...api, open }
}

const ids = ({ events }: StreamClient) => events.map(({ id }) => id)
const countRefusals = async () =>
  Number(/errorstat_WRONGTYPE:count=(\d+)/.exec(await publisher.info('errorstats'))?.[1])
const logged = async () => (await publisher.xrange(key, '-', '+')).map(([id]) => id)

describe('GET /data/stream', () => {
  it('sends a change event with its details', async () => {
    const { open } = await start()
    const client = await open()
    expect(client.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'access-control-allow-origin': '*',
    })
    await commit('prices', Date.parse('2024-03-01T00:00:00Z'), Date.parse('2024-03-02T00:00:00Z'))
    await commit('holders')
    await expect.poll(() => client.events.length).toBe(2)
    const [prices, holders] = client.events
    expect(prices).toMatchObject({
      event: 'change',
      data: {
        ...{ dataset: 'prices', asOf: '2024-03-02T00:00:00.000Z', entities: 2 },
        ...{ from: '2024-03-01T00:00:00.000Z', to: '2024-03-02T00:00:00.001Z' },
      },
    })
    expect(holders?.data).toEqual({ dataset: 'holders', asOf: null, entities: 2, from: null, to: null })
    expect(ids(client)).toEqual(await logged())
  })

  it('sends the same version from each process', async () => {
    const [one, second] = [await start(), await start()]
    const clients = [await one.open(), await second.open()]
    await commit('prices')
    await expect.poll(() => clients.map(ids)).toEqual([await logged(), await logged()])
  })

  it('sends the requested datasets, and returns 400 for unknown ones', async () => {
    const { open, url } = await start()
    const client = await open('?datasets=prices,index')
    for (const dataset of ['holders', 'prices', 'index', 'tvl', 'prices']) await commit(dataset)
    await expect.poll(() => client.events.map(({ data }) => data.dataset)).toEqual(['prices', 'index', 'prices'])
    const refused = await fetch(`${url}/data/stream?datasets=prise`)
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ code: 'invalid_parameter', param: 'datasets' })
    expect((await fetch(`${url}/data/stream?dataset=prices`)).status).toBe(400)
    expect((await fetch(`${url}/data/stream`, { headers: { accept: 'application/json' } })).status).toBe(406)
    const head = await fetch(`${url}/data/stream`, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  })

  it('resumes for a client that received no event yet', async () => {
    const { open } = await start()
    const before = await open()
    expect(before.lastId).toBe('0-0')
    before.kill()
    await commit('prices')
    await commit('tvl')
    const after = await open('', before.lastId)
    await expect.poll(() => ids(after)).toEqual(await logged())
  })

  it.each(['lastEventId', 'Last-Event-ID'])(
    'resumes from the parameter %s unless the header has an id',
    async (name) => {
      const { open } = await start()
      for (const dataset of ['prices', 'tvl', 'holders']) await commit(dataset)
      const [first, second = '', third] = await logged()
      const clients = [await open(`?${name}=${first}`), await open(`?${name}=${first}`, second)]
      await expect.poll(() => clients.map(ids)).toEqual([[second, third], [third]])
      const fresh = await open(`?${name}=`)
      await commit('fees')
      await expect.poll(() => ids(fresh)).toEqual((await logged()).slice(3))
    },
  )

  it('sends heartbeats and the id from which a silent client resumes', async () => {
    const { open } = await start({ heartbeatMs: 50 })
    const client = await open('?datasets=prices')
    await commit('tvl')
    const [newest] = await logged()
    await expect.poll(() => client.lastId).toBe(newest)
    const { comments } = client
    await expect.poll(() => client.comments).toBeGreaterThan(comments + 2)
    expect(client.events).toEqual([])
  })

  it('resets a client whose version is too old or of another log', async () => {
    const { open } = await start()
    await commit('prices')
    const [old] = await logged()
    await commit('tvl')
    await publisher.xtrim(key, 'MAXLEN', 1)
    const [newest] = await logged()
    for (const version of [old, '12-3', 'nonsense']) {
      const client = await open('', version)
      // The reset names the newest event: an event that was logged before would be part of it.
      await expect.poll(() => client.events.length).toBe(1)
      await commit('prices')
      await expect.poll(() => client.events.length).toBe(2)
      expect(client.events.map(({ event }) => event)).toEqual(['reset', 'change'])
    }
    expect(newest).not.toBe(old)
  })

  it('resets a client that missed thousands of events, and continues', async () => {
    const log = createHandLog()
    const pages: string[] = []
    const after: ChangeStream['after'] = async (version) => {
      pages.push(version)
      const changes = await log.changeStream.after(version)
      return Array.isArray(changes) ? changes.slice(0, 500) : changes
    }
    for (let count = 0; count < 20_000; count += 1) log.commit('prices')
    const { changeStream } = log
    const { open } = await start({
      changeStream: Object.create(changeStream, { after: { value: after } }) as ChangeStream,
    })
    const client = await open('', '1-0')
    await expect.poll(() => client.events.at(-1)).toEqual({ id: '20000-0', event: 'reset', data: {} })
    expect(pages).toHaveLength(8)
    log.commit('prices')
    await expect.poll(() => client.lastId).toBe('20001-0')
    expect(client.events.filter(({ event }) => event === 'reset')).toHaveLength(1)
  })

  it('sends only ids of the log, and resets clients with others', async () => {
    const { open } = await start()
    await commit('prices')
    const [newest] = await logged()
    const before = await open()
    await expect.poll(() => before.lastId).toBe(newest)
    for (const version of ['12-3', 'nonsense', '12', '1-2-3', '12345678901234567890-1', '-']) {
      const client = await open('', version)
      await expect.poll(() => client.events).toEqual([{ id: newest, event: 'reset', data: {} }])
      expect(client.ids).toEqual([newest])
    }
  })

  it.each([
    ['is no JSON', '{"dataset":'],
    ['is no commit', '{"dataset":1}'],
  ])('resets all clients over an entry that %s, and continues', async (_, text) => {
    const lines: { msg: string; version?: string }[] = []
    const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const { open } = await start({ changeStream: followLog(log) })
    const client = await open()
    await commit('prices')
    await expect.poll(() => client.events.length).toBe(1)
    const [first] = await logged()
    const senseless = await publisher.xadd(key, '*', 'change', text)
    await expect.poll(() => client.events.map(({ event }) => event)).toEqual(['change', 'reset'])
    expect(client.lastId).toBe(senseless)
    const late = await open('', first)
    await expect.poll(() => late.events).toEqual([{ id: senseless, event: 'reset', data: {} }])
    await commit('tvl')
    for (const { events } of [client, late])
      await expect.poll(() => events.at(-1)).toMatchObject({ event: 'change', data: { dataset: 'tvl' } })
    const fields = { level: 40, msg: 'malformed change event in the stream', version: senseless }
    expect(lines).toEqual([expect.objectContaining(fields)])
  })

  it('logs once that Redis rejects reads of the log, and continues afterwards', async () => {
    const lines: { level: number; reason?: string }[] = []
    const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const { open } = await start({ changeStream: followLog(log) })
    const client = await open()
    await publisher.set(key, 'no log')
    await expect.poll(() => lines).toEqual([expect.objectContaining({ level: 40 })])
    expect(lines[0]?.reason).toMatch(/^WRONGTYPE/)
    const before = await countRefusals()
    await expect.poll(countRefusals).toBeGreaterThan(before + 1)
    await publisher.del(key)
    await commit('prices')
    await expect.poll(() => client.events.length).toBeGreaterThan(0)
    expect(lines).toHaveLength(1)
  })

  it('resets clients if the log was deleted', async () => {
    const { open } = await start()
    const client = await open()
    await commit('prices')
    await expect.poll(() => client.events.length).toBe(1)
    await publisher.del(key)
    // Detected by the next read, a few seconds later at most.
    await expect.poll(() => client.events.map(({ event }) => event)).toEqual(['change', 'reset'])
  })

  it('limits the connections per address and in total', async () => {
    const streams = { all: 3, perClient: 2 }
    const { open, url } = await start({ config: { ...config, api: { ...config.api, streams } } })
    const [first] = [await open(), await open()]
    const refused = await fetch(`${url}/data/stream`)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
    expect(await refused.json()).toMatchObject({ code: 'rate_limited' })
    first.kill()
    await expect.poll(async () => (await open()).response.statusCode).toBe(200)
    const trusting = { ...config, api: { ...config.api, streams, trustedProxies: ['127.0.0.1'] } }
    const behind = await start({ config: trusting })
    const request = async (address: string) => {
      const stop = new AbortController()
      closers.push(() => stop.abort())
      const headers = { 'x-forwarded-for': address }
      return (await fetch(`${behind.url}/data/stream`, { headers, signal: stop.signal })).status
    }
    expect([await request('192.0.2.1'), await request('192.0.2.1'), await request('192.0.2.1')]).toEqual([
      200, 200, 429,
    ])
    expect([await request('192.0.2.2'), await request('192.0.2.3')]).toEqual([200, 503])
  })

  it('releases several streams of one connection', async () => {
    const streams = { all: 3, perClient: 3 }
    const { open, url } = await start({ config: { ...config, api: { ...config.api, streams } }, heartbeatMs: 100 })
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.write(`GET /data/stream HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`.repeat(3))
    await once(socket, 'data')
    socket.destroy()
    // Each place is free after the service has detected the disconnect.
    const places = async () => {
      const clients = await Promise.all([open(), open(), open()])
      for (const { kill } of clients) kill()
      return clients.map(({ response }) => response.statusCode)
    }
    await expect.poll(places).toEqual([200, 200, 200])
  })

  it('closes only clients that do not read', async () => {
    const log = createHandLog()
    const { open } = await start({ changeStream: log.changeStream })
    const [slow, quick] = [await open(), await open()]
    slow.response.pause()
    let isClosed = false
    void slow.closed.then(() => {
      isClosed = true
    })
    let count = 0
    // The system's buffer of a connection is some megabytes.
    while (!isClosed && count < 400_000) {
      for (let n = 0; n < 1000; n += 1) log.commit('prices')
      count += 1000
      await expect.poll(() => quick.events.length, { interval: 1 }).toBe(count)
      // A paused response detects its end only when its socket is read.
      isClosed ||= slow.response.socket.destroyed || slow.response.socket.readableEnded
      await wait(0)
    }
    slow.response.resume()
    await slow.closed
    expect(slow.events.length).toBeLessThan(count)
    expect(ids(quick)).toEqual(Array.from({ length: count }, (_, index) => `${index + 1}-0`))
  })

  it('sends no further events to open clients while the service stops', async () => {
    const stop = new AbortController()
    const log = createHandLog()
    const { open } = await start({ changeStream: log.changeStream, stopping: stop.signal })
    const client = await open()
    client.response.pause()
    // More than the system's buffer, and less than the limit of a slow client.
    for (let count = 0; count < 500; count += 1) log.commit('prices')
    stop.abort()
    log.commit('prices')
    client.response.resume()
    await client.closed
    expect(client.events).toHaveLength(500)
  })

  it('ends when the service stops, and closes later clients', async () => {
    const stop = new AbortController()
    const { open } = await start({ stopping: stop.signal })
    const client = await open()
    stop.abort()
    await client.closed
    const late = await open()
    await late.closed
    expect(late.response.statusCode).toBe(200)
  })
})
