import { once } from 'node:events'
import { type ClientRequest, get, type IncomingMessage } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, type HandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { startStatementDoor, toValues } from '../support/statement-door.ts'

/** The limit of concurrent statements: each admitted request uses one. */
const [PLACES, WAITING] = [2, 20]
/** A client that waits before a closed proxy would be rejected in the end: here no time passes. */
const HELD = { queue: { slots: PLACES, maxWaiting: WAITING, clock: () => 0 } }
const [FLOOD, SECOND] = ['127.0.0.2', '127.0.0.3']
const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS
const END = Date.parse('2024-01-01T00:00:00Z')
/** Weeks of each token with a chart: all days of a week are read with one statement. */
const WEEKS = 90

const config = createTestConfig()
let stored: Awaited<ReturnType<typeof createApiDatabase>>
let door: Awaited<ReturnType<typeof startStatementDoor>>
let db: Database
let api: TestApi
let changeFeed: HandFeed

beforeAll(async () => {
  stored = await createApiDatabase(config)
  door = await startStatementDoor(config.clickhouse.url)
})
afterAll(async () => {
  await door.close()
  await stored.drop()
})

/** Starts each test with an API that has received no request. */
const startFresh = async (options: { queue?: NonNullable<Parameters<typeof startApi>[0]['queue']> } = {}) => {
  db = createDatabase({ ...config.clickhouse, url: door.url }, 'read')
  changeFeed = createHandFeed()
  api = await startApi({ config, db, registry: stored.registry, changeFeed, ...options })
}
afterEach(async () => {
  door.release()
  await api.close()
  await db.close()
})

interface RecordedRequest {
  readonly request: ClientRequest
  readonly status: Promise<number | undefined>
}

/** The first day of a chart: the Monday of a week that no other chart of its token has. */
const toStart = (chart: number) => END - (1 + (chart % WEEKS)) * WEEK_MS
const toToken = (chart: number) => stored.registry.tokens[Math.floor(chart / WEEKS)]

/** Requests a chart that no other request uses, from a local address. */
function sendRequest(client: string, chart: number): RecordedRequest {
  const [from, id] = [toStart(chart), toToken(chart)?.id]
  const path = `/data/tokens/historic-financial?id=${id}&interval=5m&start=${from}&end=${from + DAY_MS}`
  const request = get(api.url + path, { localAddress: client, agent: false })
  const status = new Promise<number | undefined>((resolve) => {
    request.once('error', () => resolve(undefined))
    request.once('response', (response: IncomingMessage) => {
      response.resume()
      resolve(response.statusCode)
    })
  })
  return { request, status }
}

const requestMany = (client: string, count: number, first = 1) =>
  Array.from({ length: count }, (_, index) => sendRequest(client, first + index))

/** Resolves when the API has processed all earlier connections and disconnects: it accepts requests in order. */
async function untilReceived(): Promise<void> {
  for (let round = 0; round < 3; round += 1) expect((await fetch(`${api.url}/health/live`)).status).toBe(200)
}

/** Charts whose statements have reached the database, in order, each once. */
const started = () => [
  ...new Set(
    door.statements.flatMap((statement) => {
      const tokens = toValues(statement, 'token').map((key) =>
        stored.registry.tokens.findIndex((token) => token.key === Number(key)),
      )
      const weeks = toValues(statement, 'from').map((from) => (END - Number(from)) / WEEK_MS - 1)
      return weeks.map((week, place) => (tokens[place] as number) * WEEKS + week)
    }),
  ),
]

describe('admission of requests that are not cached', () => {
  it('answers all requests of a page with a hundred charts', async () => {
    // Rejections depend on the expected wait: here no time passes, however busy the machine is.
    await startFresh({ queue: { slots: 8, maxWaiting: 512, clock: () => 0 } })
    const statuses = await Promise.all(requestMany(FLOOD, 100).map(({ status }) => status))
    expect(statuses).toEqual(Array(100).fill(200))
  })

  it('rejects requests of a flooding client when the queue is full and serves another client next', async () => {
    await startFresh(HELD)
    door.hold()
    const seen = started().length
    const outcomes: (number | undefined)[] = []
    const flood = requestMany(FLOOD, PLACES + WAITING + 20, 101)
    for (const { status } of flood) void status.then((status) => outcomes.push(status))
    await expect.poll(() => outcomes).toEqual(Array(20).fill(503))
    const second = sendRequest(SECOND, 50)
    // One more request of the flooding client is rejected in its place.
    await expect.poll(() => outcomes.length).toBe(21)
    await expect.poll(() => started().length - seen).toBe(PLACES)
    door.release()
    expect(await second.status).toBe(200)
    const statuses = await Promise.all(flood.map(({ status }) => status))
    expect(statuses.filter((status) => status === 200)).toHaveLength(PLACES + WAITING - 1)
    // At most one request of the flooding client runs first: the next one in the queue.
    expect(started().slice(seen).indexOf(50)).toBeLessThanOrEqual(PLACES + 1)
  })

  it('keeps half of the concurrency free for other clients', async () => {
    await startFresh({ queue: { ...HELD.queue, slotsPerClient: PLACES / 2 } })
    door.hold()
    const seen = started().length
    const flood = requestMany(FLOOD, PLACES, 600)
    await expect.poll(() => started().length - seen).toBe(PLACES / 2)
    const second = sendRequest(SECOND, 550)
    await expect.poll(() => started().slice(seen)).toContain(550)
    await untilReceived()
    expect(started().length - seen).toBe(PLACES / 2 + 1)
    door.release()
    expect(await Promise.all([...flood, second].map(({ status }) => status))).toEqual(Array(PLACES + 1).fill(200))
  })

  it('rejects a flooding client before parsing in overload, but answers its cached requests and other clients', async () => {
    const state = { now: 0 }
    await startFresh({ queue: { ...HELD.queue, clock: () => state.now } })
    const isAnswered = async (client: string, path: string) => {
      const request = get(api.url + path, { localAddress: client, agent: false })
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      response.resume()
      return [response.statusCode, response.headers['retry-after']]
    }
    const id = stored.registry.tokens[0]?.id
    const [cached, wrong] = ['/data/categories', `/data/tokens/historic-financial?id=${id}&interval=wrong`]
    expect(await isAnswered(FLOOD, cached)).toEqual([200, undefined])
    expect(await sendRequest(SECOND, 150).status).toBe(200)
    changeFeed.commit('prices', { from: toStart(150), to: toStart(150) + DAY_MS })
    door.hold()
    const seen = door.statements.length
    const rest = sendRequest(SECOND, 150)
    await expect.poll(() => door.statements.length).toBeGreaterThan(seen)
    const flood = requestMany(FLOOD, PLACES - 1 + WAITING, 200)
    await untilReceived()
    expect(await isAnswered(FLOOD, wrong)).toEqual([400, undefined])
    // The queue has not been empty for this long, and no client has disconnected.
    state.now = 2_500
    // Another rejection must be parsed; the same one is a cached answer.
    expect(await isAnswered(FLOOD, `${wrong}2`)).toEqual([503, '5'])
    expect(await isAnswered(FLOOD, wrong)).toEqual([400, undefined])
    expect(await isAnswered(FLOOD, cached)).toEqual([200, undefined])
    expect(await isAnswered(FLOOD, '/health/live')).toEqual([200, undefined])
    expect(await isAnswered(SECOND, wrong)).toEqual([400, undefined])
    const theSame = sendRequest(FLOOD, 150)
    await untilReceived()
    door.release()
    expect(await Promise.all([rest.status, theSame.status])).toEqual([200, 200])
    expect(await Promise.all(flood.map(({ status }) => status))).toEqual(Array(PLACES - 1 + WAITING).fill(200))
    expect(await isAnswered(FLOOD, wrong)).toEqual([400, undefined])
  })

  it('sends no statement for a client that disconnected while it waited', async () => {
    await startFresh(HELD)
    door.hold()
    const seen = started().length
    const retained = requestMany(FLOOD, PLACES, 300)
    await expect.poll(() => started().length - seen).toBe(PLACES)
    const leavers = requestMany(FLOOD, WAITING, 400)
    // One request of the flooding client is rejected: by then all have arrived.
    const last = sendRequest(SECOND, 500)
    await Promise.race(leavers.map(({ status }) => status))
    for (const { request } of leavers) request.destroy()
    await untilReceived()
    door.release()
    expect(await Promise.all([...retained, last].map(({ status }) => status))).toEqual(Array(PLACES + 1).fill(200))
    expect(
      started()
        .slice(seen)
        .filter((chart) => chart >= 400 && chart < 500),
    ).toEqual([])
  })
})
