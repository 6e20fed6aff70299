import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MOST_CACHED, writeArray } from '../../api/formats/formats.ts'
import { pointRecordsSql } from '../../api/prices/points.ts'
import { toSeriesRange } from '../../api/series/series.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { DAY_MS, HOUR_MS, INTERVALS, type Interval } from '../../shared/intervals.ts'
import { addCoverage } from '../../shared/ledger/tables.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { countCases, SEED } from '../support/cases.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeMarket } from '../support/market.ts'
import { toNext } from '../support/next-page.ts'
import { toNoiseKey, unit } from '../upstream/noise.ts'

const STEP = 300_000
const BEGIN = Date.parse('2026-12-01T00:02:00Z')
const SERIES = '/data/tokens/historic-financial'

const clock = { now: BEGIN }
const changeFeed = createHandFeed()
const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
/** With a cache, with a too small cache, and without a cache: the responses are equal. */
let api: TestApi
let small: TestApi
let plain: TestApi
let dense: Token
let sparse: Token
/** The data of this token does not change. */
let quiet: Token
/** Names of the statements sent by the service with a cache. */
let statements: string[] = []

beforeAll(async () => {
  database = await createApiDatabase(config)
  dense = getToken(database.registry, 'UNI')
  sparse = getToken(database.registry, 'AAVE')
  quiet = getToken(database.registry, 'LDO')
  const { writer } = database
  await storeMarket(writer, { keys: [dense.key, quiet.key], until: BEGIN - 60_000, points: 9_000, stepMs: STEP })
  // Hourly prices of 125 days, and finer prices of the last days with several observations per bucket.
  await storeMarket(writer, { keys: [sparse.key], until: BEGIN - 40 * DAY_MS, points: 3_000, stepMs: HOUR_MS })
  await storeMarket(writer, { keys: [sparse.key], until: BEGIN - 90_000, points: 2_500, stepMs: 130_000 })
  const hours = Array.from({ length: 3_000 }, (_, hour) => Math.floor((BEGIN - 40 * DAY_MS - hour * HOUR_MS) / STEP))
  await cover(sparse, hours, 3600)
  const db: Database = {
    ...database.db,
    rows: (statement) => {
      statements.push(statement.name)
      return database.db.rows(statement)
    },
    stream: (statement) => {
      statements.push(statement.name)
      return database.db.stream(statement)
    },
  }
  // Large queue limits, so that no request is rejected on a slow machine.
  const queue = { slots: 24, maxWaiting: 100, clock: () => performance.now() }
  const start = (cacheBytes: number, through = database.db) =>
    startApi({
      ...{ ...database, db: through, changeFeed, queue, now: () => clock.now },
      config: { ...config, api: { ...config.api, cacheBytes, maxAnswers: 8 } },
    })
  api = await start(64 * 2 ** 20, db)
  small = await start(300_000)
  plain = await start(0)
})
afterAll(async () => {
  await Promise.all([api, small, plain].map((one) => one?.close()))
  await database?.drop()
})
beforeEach(() => {
  statements = []
})

const cover = (token: Token, buckets: readonly number[], seconds: number) =>
  addCoverage(
    database.writer,
    tokenPrices,
    buckets.map((bucket) => ({
      ...{ entity: token.key, state: 'stored' as const, provider: 'coingecko', seconds },
      ...{ first: bucket, last: bucket },
    })),
  )

interface RecordedRequest {
  readonly token: Token
  readonly interval: Interval
  readonly start: number
  readonly end?: number | undefined
  readonly limit?: number | undefined
}

const toPath = ({ token, interval, start, end, limit }: RecordedRequest) => {
  const query = new URLSearchParams({ id: token.id, interval, start: new Date(start).toISOString() })
  if (end !== undefined) query.set('end', new Date(end).toISOString())
  if (limit !== undefined) query.set('limit', String(limit))
  return `${SERIES}?${query}`
}

const OWN = new Set(['x-request-id', 'server-timing', 'date', 'connection', 'keep-alive', 'transfer-encoding'])

interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

async function request(of: TestApi, path: string): Promise<Answered> {
  const response = await fetch(of.url + path, { headers: { 'accept-encoding': 'identity' } })
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !OWN.has(name)))
  return { status: response.status, headers, body: await response.text() }
}

/** Returns the series as written by one statement. */
async function readStraight({ token, interval, start, end, limit = 1_000_000 }: RecordedRequest): Promise<string> {
  const { from, to } = toSeriesRange({ start, end, interval }, clock.now)
  const params = { entities: [token.key], from, to, limit }
  const { body } = await writeArray(database.db, {
    name: 'straight',
    sql: `${pointRecordsSql(interval)} LIMIT {limit: UInt32}`,
    params,
  })
  return `{"name":${JSON.stringify(token.name)},"id":"${token.id}","data":${body}}`
}

/** Compares the responses of all services with the database, and returns the response. */
async function compare(requested: RecordedRequest) {
  const path = toPath(requested)
  const [one, second, third, straight] = await Promise.all([
    request(api, path),
    request(small, path),
    request(plain, path),
    readStraight(requested),
  ])
  expect(one.status, path).toBe(200)
  expect(one, path).toEqual(third)
  expect(second, path).toEqual(third)
  const isShort = Number(one.headers['x-series-points']) <= MOST_CACHED.pricePoints && straight.length < 1_000_000
  if (isShort && !one.body.includes('\n')) expect(one.body === straight, path).toBe(true)
  else expect(JSON.parse(one.body)).toEqual(JSON.parse(straight))
  return one
}

/** Returns a pseudo-random request for the seed and turn. */
function toQuery(key: number, turn: number): RecordedRequest {
  let draw = 0
  const next = () => unit(key, turn * 16 + draw++)
  const token = next() < 0.5 ? dense : sparse
  const interval = INTERVALS[Math.floor(next() * next() * INTERVALS.length)] as Interval
  const start = Math.floor(clock.now - 200 * DAY_MS * next() * next())
  const length = next() < 0.3 ? 400 * DAY_MS : DAY_MS * 20 * next() * next()
  return {
    ...{ token, interval, start },
    end: next() < 0.4 ? undefined : Math.floor(start + length),
    limit: next() < 0.5 ? undefined : 1 + Math.floor(700 * next() ** 3),
  }
}

/** Stores a tick, a late correction or finer data, then sends the change event. */
async function change(key: number, turn: number): Promise<void> {
  const draw = (at: number) => unit(key, turn * 16 + 10 + at)
  const token = draw(0) < 0.5 ? dense : sparse
  if (draw(1) < 0.4) clock.now += STEP
  const at = Math.floor(draw(1) < 0.4 ? clock.now - 20_000 : clock.now - 100 * DAY_MS * draw(2) * draw(3))
  await storeMarket(database.writer, { keys: [token.key], until: at, points: 1, stepMs: STEP, price: 5 + turn })
  await cover(token, [Math.floor(at / STEP)], draw(4) < 0.5 ? 300 : 3600)
  changeFeed.commit('prices', { from: at, to: at })
}

describe('responses built from chunks', () => {
  it.each([SEED])('equal those of one statement for random requests and changes (seed %d)', async (seed) => {
    const key = toNoiseKey(seed, 'chunks')
    const links: boolean[] = []
    for (let turn = 0; turn < countCases(20); turn++) {
      const requestedQuery = toQuery(key, turn)
      links.push((await compare(requestedQuery)).headers.link !== undefined)
      if (turn % 3 === 2) await change(key, turn)
    }
    // Check that both pages and complete responses were compared.
    expect(new Set(links).size).toBe(2)
  })

  it.each([SEED])('are equal for concurrent requests that share batched statements (seed %d)', async (seed) => {
    const key = toNoiseKey(seed, 'chunks at once')
    for (let burst = 0; burst < countCases(2); burst++) {
      await Promise.all(Array.from({ length: 12 }, (_, at) => compare(toQuery(key, 12 * burst + at))))
      await change(key, burst)
    }
  })

  it('return the same pages as the service without a cache', async () => {
    const expected = JSON.parse(await readStraight({ token: sparse, interval: '5m', start: clock.now - 200 * DAY_MS }))
    const found: unknown[] = []
    let path: string | undefined
    path = toPath({
      token: sparse,
      interval: '5m',
      start: clock.now - 200 * DAY_MS,
      limit: 700,
    })
    while (path !== undefined) {
      const one: Answered = await request(api, path)
      expect(one).toEqual(await request(plain, path))
      found.push(...JSON.parse(one.body).data)
      const next = toNext(one.headers.link)
      path = next === undefined ? undefined : SERIES + next
    }
    expect(found).toEqual(expected.data)
  })
})

const QUIET_END = BEGIN - 10 * DAY_MS
const day = (daysAgo: number, more: Partial<RecordedRequest> = {}): RecordedRequest => {
  const start = Math.floor(QUIET_END / DAY_MS) * DAY_MS - daysAgo * DAY_MS
  return { token: quiet, interval: '5m', start, end: start + DAY_MS, ...more }
}

describe('statements of the series cache', () => {
  it('are one for all missing chunks, and none for cached chunks', async () => {
    changeFeed.commit('prices')
    await request(api, toPath(day(12)))
    expect(statements.sort()).toEqual(['coarse-tokens', 'historic-financial'])
    statements = []
    const noon = day(4, { start: day(4).start + DAY_MS / 2, end: day(1).end })
    await compare(noon)
    expect(statements).toEqual(['historic-financial'])
    statements = []
    for (const part of [{}, { limit: 100 }, { start: day(3).start + 7 * STEP }, { end: day(2).start - 1, limit: 5 }])
      await compare({ ...day(3), ...part })
    expect(statements).toEqual([])
  })

  it('are one for concurrent requests of the same or overlapping ranges', async () => {
    changeFeed.commit('prices')
    await request(api, toPath(day(19)))
    statements = []
    const same = toPath(day(8, { end: day(6).end }))
    const queries = [
      ...Array.from({ length: 20 }, () => same),
      toPath(day(8)),
      toPath(day(7)),
      toPath(day(6, { limit: 9 })),
    ]
    const bodies = await Promise.all(queries.map((path) => request(api, path)))
    expect(statements).toEqual(['historic-financial'])
    expect(bodies).toEqual(await Promise.all(queries.map((path) => request(plain, path))))
  })

  it('are one for all days of a week that is over, in any order and form', async () => {
    changeFeed.commit('prices')
    const days = Array.from({ length: 14 }, (_, ago) => ago)
    const monday = days.find((ago) => new Date(day(ago).start).getUTCDay() === 1) as number
    await compare(day(monday))
    expect(statements.sort()).toEqual(['coarse-tokens', 'historic-financial'])
    for (const ago of days.slice(monday - 6, monday + 1)) {
      for (const part of [{}, { start: day(ago).start + 99 * STEP }, {}]) await compare(day(ago, part))
      const newest = `${toPath(day(ago))}&order=desc`
      expect(await request(api, newest)).toEqual(await request(plain, newest))
    }
    expect(statements).toHaveLength(2)
  })

  it('are batched for concurrent requests without common chunks', async () => {
    changeFeed.commit('prices')
    await request(api, toPath(day(12)))
    statements = []
    const days = Array.from({ length: 12 }, (_, ago) => ago)
    const queries = [quiet, dense].flatMap((token) => days.map((ago) => toPath(day(ago, { token }))))
    const answers = await Promise.all(queries.map((path) => request(api, path)))
    expect(statements.length).toBeLessThan(queries.length / 2)
    expect(answers).toEqual(await Promise.all(queries.map((path) => request(plain, path))))
    statements = []
    await Promise.all(queries.map((path) => request(api, path)))
    expect(statements).toEqual([])
  })

  it('are repeated exactly for the range of a change event', async () => {
    changeFeed.commit('prices')
    // Points are cached when a day is used again; the rows of its week are dropped with a change in any of its days.
    for (const ago of [9, 8, 7, 9, 8, 7]) await request(api, `${toPath(day(ago))}&limit=1`)
    for (const ago of [9, 8, 7]) await request(api, toPath(day(ago)))
    statements = []
    const at = day(8).start + 3 * HOUR_MS
    await storeMarket(database.writer, { keys: [quiet.key], until: at, points: 1, stepMs: STEP, price: 99 })
    changeFeed.commit('prices', { from: at, to: at })
    await compare(day(9))
    await compare(day(7))
    // Coverage is cached by year, so it is read again.
    expect(statements).toEqual(['coarse-tokens'])
    const { body } = await compare(day(8))
    expect(body).toContain('"price":99')
    expect(statements).toEqual(['coarse-tokens', 'historic-financial'])
    statements = []
    changeFeed.commit('holders', { from: at, to: at })
    await compare(day(8, { limit: 50 }))
    expect(statements).toEqual([])
  })

  it('are two more to find the next point across any gap', async () => {
    changeFeed.commit('prices')
    const grants = { token: sparse, interval: '5m', start: Date.parse('2022-02-01'), limit: 20 } as const
    await compare(grants)
    expect(statements.filter((name) => name.startsWith('historic'))).toEqual([
      'historic-financial',
      'historic-financial-chunk-counts',
      'historic-financial',
    ])
    statements = []
    await compare({ ...grants, limit: 21 })
    expect(statements).toEqual([])
  })
})

describe('short series', () => {
  const points = (dao: number, ages: readonly number[], members: number) =>
    ages.map((age) => ({
      ...{ dao, observed_at: new Date(Math.floor(BEGIN / DAY_MS - age) * DAY_MS).toISOString() },
      ...{ active_members: members + age, total_members: null },
    }))

  it('are read once for all ranges, and again after a change event', async () => {
    const dao = database.registry.daos.find(({ live, discord }) => live && discord !== null)
    const path = `/data/daos/socials/historic-discord?id=${dao?.id}`
    const key = Number(dao?.key)
    await database.writer.insert({ table: 'discord_members', rows: points(key, [1, 2, 3, 5, 8, 13, 400], 100) })
    const since = (age: number) => new Date(BEGIN - age * DAY_MS).toISOString()
    const parts = [
      '',
      '&limit=2',
      `&start=${since(6)}`,
      `&end=${since(4)}`,
      `&start=${since(9)}&end=${since(2)}&limit=1`,
    ]
    const compareAll = async () => {
      for (const part of parts) expect(await request(api, path + part), part).toEqual(await request(plain, path + part))
    }
    await compareAll()
    expect(statements).toEqual(['discord'])
    await database.writer.insert({ table: 'discord_members', rows: points(key, [4], 7) })
    const at = BEGIN - 4 * DAY_MS
    changeFeed.commit('discord', { from: at, to: at })
    await compareAll()
    expect(statements).toEqual(['discord', 'discord'])
    const next = toNext((await request(api, `${path}&limit=2`)).headers.link)
    const page = await request(api, path.split('?')[0] + String(next))
    expect(page).toEqual(await request(plain, path.split('?')[0] + String(next)))
    expect(JSON.parse(page.body)).toHaveLength(2)
  })

  it('of the index share their chunks between periods', async () => {
    const { index } = database.registry
    await database.writer.command({
      name: 'store-index',
      sql: `INSERT INTO index_points SELECT {index: UInt64}, at, at + INTERVAL 10 SECOND, 100 + number / 7, {composition: String}, 0, now64(3)
FROM (SELECT number, fromUnixTimestamp64Milli({end: Int64} - toInt64(number) * 300000, 'UTC') AS at FROM numbers(3000))`,
      params: { index: index.key, end: Math.floor(clock.now / STEP) * STEP, composition: index.compositions[0]?.id },
    })
    changeFeed.commit('index')
    const path = '/data/index/historic'
    for (const period of [5, 5, 1, 3, 2, 20]) {
      const [one, second] = await Promise.all([
        request(api, `${path}?period=${period}`),
        request(plain, `${path}?period=${period}`),
      ])
      expect(one).toEqual(second)
    }
    expect(statements).toEqual(['index-historic', 'index-historic'])
  })
})
