import { type ClientRequest, get, type IncomingMessage } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { DAY_MS } from '../../shared/intervals.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'
import { startStatementDoor, toValues } from '../support/statement-door.ts'

const STEP_MS = 300_000
const POINTS = 50_000
const END = Date.parse('2024-01-01T00:00:00Z')
/** Generous timeout for a busy machine. */
const PATIENTLY = { timeout: 60_000 }

/** More requests than the API resolves concurrently. */
const [CROWD, PLACES] = [40, 16]
/** Concurrent statements: the first requests use one statement each, later requests share one. */
const OWN = 2

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let door: Awaited<ReturnType<typeof startStatementDoor>>
let db: Database
let api: TestApi
let series: string
let weeks = 0
/** Statements that the API sent to the database, with the abort signal of each. */
const requests: { params: Readonly<Record<string, unknown>>; signal: AbortSignal | undefined }[] = []
/** Runs between the database's response and the code that sent the statement. */
let afterRows: () => Promise<void> = async () => {}

/**
 * A day of a week that no request has used yet, as a URL and as its start: all days of a week are read with one
 * statement. END is a Monday.
 */
function nextDay(): { url: string; from: number } {
  weeks += 1
  const from = END - weeks * 7 * DAY_MS
  return { url: `${series}&start=${from}&end=${from + DAY_MS}`, from }
}

interface Client {
  readonly request: ClientRequest
  readonly status: Promise<number | undefined>
}

/** Sends a request and reads the response; the status is undefined if the client disconnected first. */
function start(url: string): Client {
  const request = get(url)
  const status = new Promise<number | undefined>((resolve) => {
    request
      .once('error', () => resolve(undefined))
      .once('response', (response: IncomingMessage) => {
        response.on('error', () => {}).resume()
        resolve(response.statusCode)
      })
  })
  return { request, status }
}

/** Resolves when the API has received all earlier requests: it accepts requests in order. */
async function untilReceived(): Promise<void> {
  for (let round = 0; round < 3; round += 1) expect(await start(`${api.url}/health/live`).status).toBe(200)
}

/** Statements that read points; the number of coarser points is read by a separate statement. */
const toStarts = ({ params }: (typeof requests)[number]) =>
  Object.entries(params).flatMap(([name, value]) => (/^from\d*$/.test(name) ? [value] : []))
const isAboutPoints = (one: (typeof requests)[number]) => toStarts(one).length > 0
const requestsFrom = (from: number) => requests.filter((one) => toStarts(one).includes(from))
const sent = () => door.statements.filter((statement) => toValues(statement, 'from').length > 0).length
const seenFrom = (from: number) => door.statements.filter((one) => toValues(one, 'from').includes(String(from)))

beforeAll(async () => {
  database = await createApiDatabase(config)
  const [token] = database.registry.tokens
  const market = { keys: [Number(token?.key)], until: END - STEP_MS, points: POINTS, stepMs: STEP_MS }
  await storeMarket(database.writer, market)
  door = await startStatementDoor(config.clickhouse.url)
  db = createDatabase({ ...config.clickhouse, url: door.url }, 'read')
  const watched: Database = {
    ...db,
    rows: async (statement) => {
      requests.push({ params: { ...statement.params }, signal: statement.signal })
      const rows = await db.rows(statement)
      await afterRows()
      return rows
    },
    stream: async (statement) => {
      requests.push({ params: { ...statement.params }, signal: statement.signal })
      return db.stream(statement)
    },
  }
  // Requests wait for as long as the door is held, also on a busy machine.
  const queue = { slots: PLACES, maxWaiting: CROWD + 1, maxWaitMs: PATIENTLY.timeout, clock: () => 0 }
  const spared = { ...config, api: { ...config.api, maxAnswers: 4 * OWN } }
  api = await startApi({
    queue,
    config: spared,
    registry: database.registry,
    db: watched,
    changeFeed: createHandFeed(),
  })
  series = `${api.url}/data/tokens/historic-financial?interval=5m&id=${token?.id}`
})
afterEach(() => {
  door.release()
  afterRows = async () => {}
})
afterAll(async () => {
  await api?.close()
  await door?.close()
  await db?.close()
  await database?.drop()
})

describe('API when a client disconnects', { timeout: 300_000 }, () => {
  it('sends no statement for a request that was still queued', async () => {
    door.hold()
    const crowd = Array.from({ length: CROWD }, () => start(nextDay().url))
    await expect.poll(() => requests.filter(isAboutPoints).length, PATIENTLY).toBe(OWN)
    const { url, from } = nextDay()
    const leaver = start(url)
    await untilReceived()
    leaver.request.destroy()
    await leaver.status
    await untilReceived()
    door.release()
    expect(new Set(await Promise.all(crowd.map(({ status }) => status)))).toEqual(new Set([200]))
    expect(await start(nextDay().url).status).toBe(200)
    expect([requestsFrom(from), seenFrom(from)]).toEqual([[], []])
  })

  it("leaves the disconnected client's range out of a shared statement", async () => {
    door.hold()
    const own = Array.from({ length: OWN }, () => start(nextDay().url))
    await untilReceived()
    const days = [nextDay(), nextDay(), nextDay()] as const
    const [leaver, ...rest] = days.map(({ url }) => start(url))
    await untilReceived()
    leaver?.request.destroy()
    await leaver?.status
    await untilReceived()
    door.release()
    const statuses = await Promise.all([...own, ...rest].map(({ status }) => status))
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(days.map(({ from }) => seenFrom(from).length)).toEqual([0, 1, 1])
    expect(seenFrom(days[1].from)).toEqual(seenFrom(days[2].from))
  })

  it('keeps a shared statement running until its last client disconnects', async () => {
    door.hold()
    const own = Array.from({ length: OWN }, () => start(nextDay().url))
    await untilReceived()
    const days = [nextDay(), nextDay()] as const
    const leavers = days.map(({ url }) => start(url))
    await untilReceived()
    door.release()
    door.hold()
    await Promise.all(own.map(({ status }) => status))
    await expect.poll(() => days.map(({ from }) => seenFrom(from).length), PATIENTLY).toEqual([1, 1])
    const [together] = seenFrom(days[0].from)
    expect(seenFrom(days[1].from)).toEqual([together])
    leavers[0]?.request.destroy()
    await leavers[0]?.status
    await untilReceived()
    expect(together?.hasDisconnected).toBe(false)
    leavers[1]?.request.destroy()
    await expect.poll(() => together?.hasDisconnected, PATIENTLY).toBe(true)
  })

  it('cancels the statement that is running', async () => {
    door.hold()
    const { url, from } = nextDay()
    const leaver = start(url)
    await expect.poll(() => seenFrom(from).length, PATIENTLY).toBe(1)
    leaver.request.destroy()
    await expect.poll(() => seenFrom(from)[0]?.hasDisconnected, PATIENTLY).toBe(true)
  })

  it('does not send the second statement after a disconnect between two', async () => {
    let [hasRows, goOn] = [false, () => {}]
    afterRows = () =>
      new Promise((resolve) => {
        hasRows = true
        goOn = resolve
      })
    const count = sent()
    const leaver = start(`${series}&start=2022-02-01&end=2024-01-01&format=csv`)
    await expect.poll(() => hasRows, PATIENTLY).toBe(true)
    const signal = requests.findLast(isAboutPoints)?.signal
    leaver.request.destroy()
    await expect.poll(() => signal?.aborted, PATIENTLY).toBe(true)
    goOn()
    await untilReceived()
    expect(sent()).toBe(count + 1)
  })

  it('returns the result to the remaining clients, and cancels the statement when the last one disconnects', async () => {
    door.hold()
    const { url, from } = nextDay()
    const clients = [start(url), start(url)] as const
    await expect.poll(() => seenFrom(from).length, PATIENTLY).toBe(1)
    await untilReceived()
    clients[0].request.destroy()
    await clients[0].status
    await untilReceived()
    expect(seenFrom(from).map(({ hasDisconnected }) => hasDisconnected)).toEqual([false])
    door.release()
    expect(await clients[1].status).toBe(200)
    expect(seenFrom(from)).toHaveLength(1)

    door.hold()
    const { url: secondUrl, from: secondFrom } = nextDay()
    const leavers = [start(secondUrl), start(secondUrl)]
    await expect.poll(() => seenFrom(secondFrom).length, PATIENTLY).toBe(1)
    await untilReceived()
    for (const { request } of leavers) request.destroy()
    await expect.poll(() => seenFrom(secondFrom)[0]?.hasDisconnected, PATIENTLY).toBe(true)
    door.release()
    // The API fetches a cancelled result again for the next client.
    expect(await start(secondUrl).status).toBe(200)
  })
})
