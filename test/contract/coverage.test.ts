import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { problemBody } from '../../api/problem/problem.ts'
import { marketCap } from '../../shared/datasets/market-cap.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS, END_OF_TIME, HOUR_MS } from '../../shared/intervals.ts'
import { recordExpected } from '../../shared/ledger/expected.ts'
import type { Report } from '../../shared/ledger/ledger.ts'
import { addCoverage, writeNotes } from '../../shared/ledger/tables.ts'
import { ALL_ENTITIES, type Token } from '../../shared/registry/entities.ts'
import { rememberFailing } from '../../workers/run/runner.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { toNext } from '../support/next-page.ts'
import { storeQuotes } from '../support/quotes.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')
const MINUTE = 60_000
const SLOT = 5 * MINUTE
/** The end of the current bucket of prices. */
const BUCKET_END = (Math.floor(NOW / SLOT) + 1) * SLOT
/** Prices are collected from this time on. Before it, a back-fill found only hourly prices. */
const BEGIN = Date.parse('2024-03-08T00:00:00Z')
const PATH = '/data/status/coverage'

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let fine: Token
let mixed: Token
let without: Token
const clock = { now: NOW }

interface Range {
  entity: string
  from: string
  to: string
  state: string
  provider: string | null
  interval: string | null
  name?: string
  live?: boolean
  reason: string | null
}

const request = (path: string, init: RequestInit = {}) => fetch(api.url + path, init)
const coverage = async (query: string) => {
  const response = await request(`${PATH}?${query}`)
  expect(response.status, query).toBe(200)
  return (await response.json()) as Range[]
}
const problem = async (query: string) => problemBody.parse(await (await request(`${PATH}?${query}`)).json())
const iso = (ms: number) => new Date(ms).toISOString()

function toReport(
  entity: number,
  from: number,
  to: number,
  seconds: number,
  state: Report['state'] = 'stored',
): Report {
  const [first, last] = [from / SLOT, to / SLOT - 1]
  return { entity, state, provider: seconds > 300 ? 'coarse' : 'coingecko', seconds, first, last }
}

/**
 * Stores two days of hourly prices with their coverage, then prices of every slot. A second provider has fine prices
 * for some of the hours.
 */
async function storeMixed(token: Token): Promise<void> {
  const { writer } = database
  const from = BEGIN - 2 * DAY_MS
  const hours = Array.from({ length: 48 }, (_, at) => ({
    token: token.key,
    at: from + at * HOUR_MS + 20_000,
    price: at + 1,
  }))
  const slots = Array.from({ length: 200 }, (_, at) => ({
    token: token.key,
    at: BEGIN + at * SLOT + 40_000,
    price: at + 1,
  }))
  await storeQuotes(writer, [...hours, ...slots])
  await addCoverage(writer, tokenPrices, [
    toReport(token.key, from, BEGIN, 3600),
    toReport(token.key, from + 5 * HOUR_MS, from + 9 * HOUR_MS, 300),
    toReport(token.key, BEGIN, BEGIN + 200 * SLOT, 300),
    toReport(token.key, BEGIN + 200 * SLOT, BEGIN + 210 * SLOT, 300, 'nothing'),
  ])
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  const { writer, registry } = database
  fine = getToken(registry, 'UNI')
  mixed = getToken(registry, 'AAVE')
  without = getToken(registry, 'COMP')
  await recordExpected(writer, tokenPrices, [
    { entity: ALL_ENTITIES, from: BEGIN, interval: '5m' },
    { entity: mixed.key, from: BEGIN - 2 * DAY_MS, to: BEGIN, interval: '5m' },
  ])
  await storeMixed(mixed)
  const newest = Math.floor(NOW / SLOT) * SLOT
  const slots = Array.from({ length: 100 }, (_, at) => ({ token: fine.key, at: newest - (at + 1) * SLOT + 10_000 }))
  await storeQuotes(writer, slots)
  await addCoverage(writer, tokenPrices, [toReport(fine.key, BEGIN, newest, 300)])
  const rest = { queueClass: 'live', provider: 'coingecko', since: BEGIN, tries: 3, nextTry: BEGIN } as const
  await writeNotes(writer, tokenPrices, [
    { ...rest, entity: mixed.key, from: BEGIN + 210 * SLOT, to: END_OF_TIME, state: 'failed', reason: 'HTTP 503' },
    { ...rest, entity: without.key, from: BEGIN, to: END_OF_TIME, state: 'unserved', reason: 'no id there' },
  ])
  await rememberFailing({ db: writer, now: () => NOW }, 'prices', {
    slot: BEGIN,
    batch: undefined,
    isComplete: true,
    failures: [{ provider: 'coinmarketcap', reason: new DataError('config', 'no key') }],
    answered: [],
  })
  api = await startApi({ config, ...database, changeFeed, now: () => clock.now })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

describe('/data/status', () => {
  it('returns the completeness and failing providers of each dataset, and state late if entities are overdue', async () => {
    const { datasets } = (await (await request('/data/status')).json()) as {
      datasets: { dataset: string; complete: number; failing: object[]; state: string; lagSeconds: number }[]
    }
    for (const { complete } of datasets) expect(complete).toBeGreaterThanOrEqual(0)
    const prices = datasets.find(({ dataset }) => dataset === 'prices')
    const tokens = tokenPrices.entities(database.registry).length
    const due = Math.floor(NOW / SLOT) - 1 - BEGIN / SLOT
    const expected = tokens * due + 2 * 288 - 10
    expect(prices?.complete).toBeCloseTo((due + 200 + 2 * 288) / expected, 12)
    expect(prices?.failing).toEqual([{ provider: 'coinmarketcap', since: iso(BEGIN), reason: 'no key' }])
    expect([prices?.state, (prices?.lagSeconds ?? 999) < 1.5 * 300]).toEqual(['late', true])
    const tvl = datasets.find(({ dataset }) => dataset === 'tvl')
    expect(tvl).toMatchObject({ state: 'empty', complete: 0, failing: [] })
  })
})

describe(PATH, () => {
  it('explains a range without gaps or overlaps, cut exactly at start and end', async () => {
    const [start, end] = [BEGIN - 50 * HOUR_MS + 61_000, NOW + 7 * HOUR_MS + 1]
    const ranges = await coverage(`dataset=prices&id=${mixed.id}&start=${start}&end=${end}`)
    const slots = (count: number) => iso(BEGIN + count * SLOT)
    const hours = (count: number) => iso(BEGIN - 2 * DAY_MS + count * HOUR_MS)
    expect(ranges.map(({ from, to, state, provider, interval }) => [from, to, state, provider, interval])).toEqual([
      [iso(start), hours(0), 'unserved', null, null],
      [hours(0), hours(5), 'coarser', 'coarse', '1h'],
      [hours(5), hours(9), 'covered', 'coingecko', '5m'],
      [hours(9), hours(48), 'coarser', 'coarse', '1h'],
      [slots(0), slots(200), 'covered', 'coingecko', '5m'],
      [slots(200), slots(210), 'covered', 'coingecko', '5m'],
      [slots(210), '2024-03-10T12:05:00.000Z', 'failed', 'coingecko', null],
      ['2024-03-10T12:05:00.000Z', iso(end), 'pending', null, null],
    ])
    expect(ranges.map(({ reason }) => reason)).toEqual([
      'it was not requested: a back-fill collects it',
      null,
      null,
      null,
      null,
      'coingecko has nothing there',
      `HTTP 503 (since ${iso(BEGIN)})`,
      'not due yet',
    ])
  })

  it('adds the name of each entity with include=name, also of an ended token', async () => {
    const ended = database.registry.tokens.find(({ live }) => !live)
    for (const { id, name, live } of [mixed, ended ?? mixed]) {
      const ranges = await coverage(`dataset=prices&id=${id}&include=name`)
      expect(ranges.length).toBeGreaterThan(0)
      for (const range of ranges) expect(range).toMatchObject({ entity: id, name, live })
      expect(await coverage(`dataset=prices&id=${id}`)).toEqual(ranges.map(({ name: _, live: __, ...rest }) => rest))
    }
    expect(ended).toBeDefined()
    const [all] = await coverage('dataset=market-cap&include=name')
    expect(all).toMatchObject({ name: 'all', live: true })
  })

  it('keeps the entity tag within a bucket while nothing changes', async () => {
    const tags = []
    for (const later of [0, 8_000, 70_000]) {
      clock.now = NOW + later
      tags.push((await request(`${PATH}?dataset=prices&id=${fine.id}`)).headers.get('etag'))
    }
    clock.now = NOW
    expect(new Set(tags).size).toBe(1)
    const existing = { headers: { 'if-none-match': String(tags[0]) } }
    expect((await request(`${PATH}?dataset=prices&id=${fine.id}`, existing)).status).toBe(304)
  })

  it('returns the last thirty days of all entities by default, without gaps', async () => {
    const ranges = await coverage('dataset=prices')
    const entities = tokenPrices.entities(database.registry)
    expect(new Set(ranges.map(({ entity }) => entity))).toEqual(new Set(entities.map(({ id }) => id)))
    for (const { id } of entities) {
      const own = ranges.filter(({ entity }) => entity === id)
      expect([own[0]?.from, own.at(-1)?.to]).toEqual([iso(BUCKET_END - 30 * DAY_MS), iso(BUCKET_END)])
      expect(own.slice(1).map(({ from }) => from)).toEqual(own.slice(0, -1).map(({ to }) => to))
    }
    const last = ranges.filter(({ entity }) => entity === without.id).at(-1)
    expect(last).toMatchObject({
      state: 'unserved',
      provider: 'coingecko',
      reason: `no id there (since ${iso(BEGIN)})`,
    })
  })

  it('returns one entity for an aggregate dataset, and the reason for a token that is not collected', async () => {
    const [only] = await coverage('dataset=market-cap&start=2024-03-01&end=2024-03-02')
    expect(only).toMatchObject({ entity: marketCap.entities(database.registry)[0]?.id, state: 'unserved' })
    const dead = database.registry.tokens.find(({ livePrice }) => !livePrice)
    if (dead === undefined) throw new Error('every token of the registry has a price')
    expect(await coverage(`dataset=prices&id=${dead.id}&start=2024-03-09&end=2024-03-10`)).toMatchObject([
      { state: 'unserved', reason: 'prices is not collected for it' },
    ])
    expect(await coverage(`dataset=prices&id=${fine.id}&start=2024-03-09&end=2024-03-09`)).toEqual([])
  })

  it.each([
    ['prices', 'not due yet'],
    ['holders', 'holders is not collected for it'],
  ])('returns ended as the reason from the end of a token on, in dataset %s', async (name, before) => {
    const maker = getToken(database.registry, 'MKR')
    const ranges = await coverage(`dataset=${name}&id=${maker.id}&start=2025-05-18&end=2025-05-21`)
    expect(ranges.map(({ from, to, reason }) => [from.slice(0, 10), to.slice(0, 10), reason])).toEqual([
      ['2025-05-18', '2025-05-19', before],
      ['2025-05-19', '2025-05-21', 'ended on 2025-05-19'],
    ])
  })

  it('rejects invalid parameters and results of more than 5000 ranges', async () => {
    const missing = await problem('')
    expect(missing).toMatchObject({ code: 'missing_parameter', param: 'dataset' })
    expect(missing.allowed).toContain('prices')
    expect(await problem('dataset=price')).toMatchObject({ code: 'invalid_parameter', param: 'dataset' })
    expect(await problem(`dataset=telegram&id=${fine.id}`)).toMatchObject({ code: 'not_found', param: 'id' })
    expect(await problem('dataset=prices&id=0123456789abcdef01234567')).toMatchObject({
      code: 'not_found',
      param: 'id',
    })
    expect(await problem('dataset=prices&start=2024-02-02&end=2024-02-01')).toMatchObject({ param: 'end' })
    expect(await problem('dataset=prices&end=2300-01-01')).toMatchObject({ code: 'invalid_parameter', param: 'end' })
    const [old, step] = [Date.parse('2021-01-01'), 2 * SLOT]
    const every = Array.from({ length: 6000 }, (_, at) =>
      toReport(fine.key, old + at * step, old + at * step + SLOT, 300),
    )
    await addCoverage(database.writer, tokenPrices, every)
    const many = await problem(`dataset=prices&id=${fine.id}&start=2021-01-01&end=2021-03-01`)
    expect(many).toMatchObject({ code: 'invalid_parameter', param: 'start' })
    expect(many.detail).toContain('5000')
    expect(await coverage(`dataset=prices&id=${fine.id}&start=2021-01-01&end=2021-01-08`)).toHaveLength(2016)
  })
})

describe('X-Series-Coarse', () => {
  const SERIES = '/data/tokens/historic-financial'
  const start = BEGIN - 3 * DAY_MS
  const coarseOf = async (query: string, init?: RequestInit) => {
    const response = await request(`${SERIES}?start=${start}&${query}`, init)
    expect(response.status, query).toBe(200)
    await response.arrayBuffer()
    return Number(response.headers.get('x-series-coarse') ?? Number.NaN)
  }
  /** Counts the points observed in the hours with coarse data only. */
  const recount = async (query: string): Promise<number> => {
    const response = await request(`${SERIES}?start=${start}&${query}`)
    const { data } = (await response.json()) as { data: { quote: { USD: { timestamp: string } } }[] }
    const from = BEGIN - 2 * DAY_MS
    const times = data.map(({ quote }) => Date.parse(quote.USD.timestamp))
    const isFine = (at: number) => at < from || at >= BEGIN || (at >= from + 5 * HOUR_MS && at < from + 9 * HOUR_MS)
    return times.filter((at) => !isFine(at)).length
  }

  it.each(['5m', '30m'])('counts the %s points that come from hourly prices', async (interval) => {
    const query = `id=${mixed.id}&interval=${interval}`
    const counted = await recount(query)
    expect(counted).toBe(44)
    expect(await coarseOf(query)).toBe(counted)
    expect(await coarseOf(query, { method: 'HEAD' })).toBe(counted)
    for (const format of ['csv', 'ndjson', 'parquet', 'arrow'])
      expect(await coarseOf(`${query}&format=${format}`)).toBe(counted)
  })

  it.each(['1h', '4h', '1d', '7d'])('returns 0 for an interval as coarse as the data: %s', async (interval) => {
    expect(await coarseOf(`id=${mixed.id}&interval=${interval}`)).toBe(0)
  })

  it('returns 0 for a token without coarser data, and the sum over all tokens of a table', async () => {
    expect(await coarseOf(`id=${fine.id}&interval=5m`)).toBe(0)
    expect(await coarseOf(`id=${[fine, mixed, without].map(({ id }) => id)}&interval=5m&format=csv`)).toBe(44)
  })

  it('counts only the points of each page', async () => {
    for (const format of ['json', 'ndjson']) {
      const counts: number[] = []
      let path: string | undefined = `${SERIES}?start=${start}&id=${mixed.id}&interval=5m&limit=20&format=${format}`
      for (; path !== undefined && counts.length < 4; ) {
        const response: Response = await request(path)
        await response.arrayBuffer()
        counts.push(Number(response.headers.get('x-series-coarse')))
        const next = toNext(response.headers.get('link'))
        path = next === undefined ? undefined : SERIES + next
      }
      expect(counts, format).toEqual([16, 20, 8, 0])
    }
  })

  it('follows the coverage after a change event of the dataset, with an unchanged ETag', async () => {
    const query = `id=${mixed.id}&interval=5m&end=${BEGIN}`
    const tagOf = async () => (await request(`${SERIES}?start=${start}&${query}`)).headers.get('etag')
    const before = [await coarseOf(query), await tagOf()]
    await addCoverage(database.writer, tokenPrices, [toReport(mixed.key, BEGIN - HOUR_MS, BEGIN, 300)])
    expect([await coarseOf(query), await tagOf()]).toEqual(before)
    changeFeed.commit('prices')
    await expect.poll(() => coarseOf(query)).toBe(43)
    expect([44, await tagOf()]).toEqual(before)
  })
})
