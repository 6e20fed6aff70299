import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import { toSeriesDueEnd } from '../../shared/buckets.ts'
import { INTERVAL_SECONDS, INTERVALS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { selectCases } from '../support/cases.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'
import { toNext } from '../support/next-page.ts'
import { storeQuotes } from '../support/quotes.ts'
import { createRandom } from '../support/random.ts'
import { readTable } from '../support/tables.ts'

/** Fixed clock: results do not depend on the time of the run. */
const NOW = Date.parse('2024-03-10T12:02:00Z')
const SEED = 1210
const DAY = 86_400_000

let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

type Point = Record<string, unknown>

/** Before the first stored point. */
const START = '2024-02-20'
const TIMES = ['timestamp', 'recordedAt', 'lastUpdated', 'createdAt']

/** Every route with the series parameters. */
const SERIES = routes.flatMap(({ path, query, record, datasets: [dataset] }) => {
  if (query.fill === undefined || query.interval === undefined) return []
  const time = TIMES.find((name) => name in (record?.shape ?? {}))
  if (time === undefined || dataset === undefined) throw new Error(`${path}: no time or no dataset of a point`)
  const intervals = INTERVALS.filter((one) => query.interval?.safeParse(one).success)
  return [{ path, query: 'name' in query ? 'name=aave' : '', time, intervals, dataset }]
})

beforeAll(async () => {
  const config = createTestConfig()
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  const token = getToken(database.registry, 'AAVE').key
  const random = createRandom(SEED)
  const times = Array.from({ length: 4500 }, (_, n) => NOW - 16 * DAY + n * 300_000 + random.below(200_000))
  const selected = times.filter((at) => at < NOW - 10 * 60_000 && Math.floor(at / 7_200_000) % 5 !== 0)
  await storeQuotes(
    database.writer,
    selected.map((at) => ({ token, at, price: 10 + random.next(), volume_24h: null })),
  )
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

async function request(path: string, query: string): Promise<{ points: Point[]; headers: Headers; body: unknown }> {
  const response = await fetch(`${api.url}${path}?${query}`)
  const body: unknown = await response.json()
  expect(response.status, `${path}?${query} ${JSON.stringify(body)}`).toBe(200)
  const route = routes.find((one) => one.path === path)
  expect(route?.response.safeParse(body).error, `${path}?${query}`).toBeUndefined()
  return { points: Array.isArray(body) ? body : (body as { data: Point[] }).data, headers: response.headers, body }
}
const count = ({ headers }: { headers: Headers }, name: string) => Number(headers.get(`x-series-${name}`))
const toNextQuery = (headers: Headers) => toNext(headers.get('link'))?.slice(1)
const join = (...parts: string[]) => parts.filter((part) => part !== '').join('&')

describe.each(SERIES)('$path', ({ path, query, time, intervals, dataset }) => {
  const at = (point: Point) => Date.parse(String(point[time]))
  const of = (interval: Interval, ...more: string[]) => join(query, `interval=${interval}`, `start=${START}`, ...more)

  it('returns the points in both orders and in every format', async () => {
    for (const interval of new Set([intervals[0], intervals.at(-1)] as Interval[])) {
      const [asc, desc] = [
        await request(path, of(interval, 'order=asc')),
        await request(path, of(interval, 'order=desc')),
      ]
      expect(asc.points.length).toBeGreaterThan(0)
      expect([...desc.points].reverse()).toEqual(asc.points)
      expect(asc.points.map(at)).toEqual([...asc.points.map(at)].sort((a, b) => a - b))
      expect([count(desc, 'points'), count(desc, 'missing')]).toEqual([asc.points.length, count(asc, 'missing')])
      for (const format of ['csv', 'ndjson', 'parquet', 'arrow'] as const) {
        const response = await fetch(`${api.url}${path}?${of(interval, 'order=desc', `format=${format}`)}`)
        expect(await readTable(format, Buffer.from(await response.arrayBuffer()))).toHaveLength(desc.points.length)
      }
    }
  })

  it('returns the rows of NDJSON as JSON, from cached chunks and in gzip', async () => {
    const ranges = [
      `start=${START}`,
      'start=2024-02-28T07:40:00Z&limit=7',
      'start=2024-03-02T03:20:00Z&end=2024-03-08T13:05:00Z',
      'start=2024-03-08T00:00:00Z&end=2024-03-09T00:00:00Z&limit=1000',
    ]
    for (const interval of intervals) {
      for (const order of ['asc', 'desc']) {
        for (const range of selectCases(ranges, 1, `${path} ${interval} ${order}`)) {
          const requested = join(query, `interval=${interval}`, `order=${order}`, range)
          const read = (format: string, encoding: string) =>
            fetch(`${api.url}${path}?${requested}&format=${format}`, { headers: { 'accept-encoding': encoding } })
          const written = await read('ndjson', 'identity')
          const rows = (await written.text()).split('\n').slice(0, -1)
          const points = rows.map((row) => row.replace(/^\{"id":"\w+","name":"[^"]*","symbol":"[^"]*",/, '{'))
          const names = ['x-series-points', 'x-series-missing', 'x-series-interval', 'x-data-as-of', 'x-series-coarse']
          for (const encoding of ['identity', 'gzip']) {
            const answer = await read('json', encoding)
            const text = await answer.text()
            // A long answer has a line for each point.
            const [line, end] = text.includes('\n') ? ['\n', ',\n'] : ['', ',']
            const array = `[${line}${points.join(end)}${line}]`
            expect(text.slice(text.indexOf('['), text.lastIndexOf(']') + 1), requested).toBe(array)
            for (const name of names)
              expect([name, answer.headers.get(name)]).toEqual([name, written.headers.get(name)])
            expect(answer.headers.has('link')).toBe(written.headers.has('link'))
          }
        }
      }
    }
  })

  it('writes CSV, NDJSON and selected members like ClickHouse, which writes rows for all buckets', async () => {
    const range = 'start=2024-03-08T01:05:00Z&end=2024-03-09T03:10:00Z'
    const read = async (...more: string[]) => {
      const response = await fetch(`${api.url}${path}?${join(query, range, ...more)}`)
      expect(response.headers.get('content-disposition')).toContain('attachment; filename="')
      return { headers: response.headers, lines: (await response.text()).split('\n').slice(0, -1) }
    }
    for (const interval of intervals) {
      const forms = ['format=ndjson', 'format=csv', `format=ndjson&fields=${time}`, `format=csv&fields=${time}`]
      for (const form of selectCases(forms, 1, `${path} ${interval}`)) {
        const requested = [`interval=${interval}`, 'order=desc', form]
        const written = await read(...requested, 'fill=null')
        const answer = await read(...requested, 'limit=2000')
        const isThere = new Set(answer.lines)
        expect(written.lines.filter((line) => isThere.has(line))).toEqual(answer.lines)
        const head = form.startsWith('format=csv') ? 1 : 0
        expect(answer.lines).toHaveLength(count(answer, 'points') + head)
        expect(count(answer, 'points')).toBe(count(written, 'points'))
      }
    }
  })

  it('returns a row for every bucket with fill=null', async () => {
    for (const interval of intervals.slice(-2)) {
      for (const order of ['asc', 'desc']) {
        const plain = await request(path, of(interval, `order=${order}`))
        const filled = await request(path, of(interval, `order=${order}`, 'fill=null'))
        const step = INTERVAL_SECONDS[interval] * 1000
        const times = filled.points.map((point) => toBucketStart(at(point), interval)).sort((a, b) => a - b)
        expect(times[0]).toBe(toBucketStart(Date.parse(START) - 1, interval) + step)
        expect(times).toEqual(times.map((_, n) => (times[0] ?? 0) + n * step))
        expect(count(filled, 'points') + count(filled, 'missing')).toBe(filled.points.length)
        expect([count(filled, 'points'), count(filled, 'missing')]).toEqual([
          plain.points.length,
          count(plain, 'missing'),
        ])
        const available = new Map(plain.points.map((point) => [toBucketStart(at(point), interval), point]))
        for (const point of filled.points) {
          const found = available.get(toBucketStart(at(point), interval))
          const values = JSON.stringify({ ...point, [time]: null, dao: null })
          if (found === undefined) expect(values.replace(/"[^"]*":|null|[{},]/g, '')).toBe('')
          else expect({ ...point, [time]: null }).toEqual({ ...found, [time]: null })
        }
      }
    }
  })

  it('counts and fills a bucket without a point only if it is due', async () => {
    for (const interval of new Set([intervals[0], intervals.at(-1)] as Interval[])) {
      const step = INTERVAL_SECONDS[interval] * 1000
      const last = toBucketStart(NOW, interval)
      const due = toSeriesDueEnd(dataset, interval, NOW)
      const [first, bucketOf] = [last - 20 * step, (point: Point) => toBucketStart(at(point), interval)]
      // Also for a range that ends at the current time.
      for (const end of [[], [`end=${new Date(NOW).toISOString()}`]]) {
        const requestedQuery = join(query, `interval=${interval}`, `start=${new Date(first).toISOString()}`, ...end)
        const plain = await request(path, requestedQuery)
        const observed = new Set(plain.points.map(bucketOf))
        const buckets = Array.from({ length: 21 }, (_, n) => first + n * step)
        const missing = buckets.filter((bucket) => bucket < due && !observed.has(bucket))
        expect([count(plain, 'points'), count(plain, 'missing')]).toEqual([observed.size, missing.length])
        const filled = await request(path, join(requestedQuery, 'order=asc', 'fill=null'))
        expect(filled.points.map(bucketOf)).toEqual([...observed, ...missing].sort((a, b) => a - b))
        expect([count(filled, 'points'), count(filled, 'missing')]).toEqual([observed.size, missing.length])
        const { headers } = await fetch(`${api.url}${path}?${requestedQuery}&format=csv`)
        expect(headers.get('x-series-missing')).toBe(String(missing.length))
      }
    }
  })

  it('selects the coarsest interval with at least the requested number of points', async () => {
    const counts = new Map<Interval, number>()
    for (const interval of intervals) counts.set(interval, (await request(path, of(interval))).points.length)
    const most = intervals.find((interval) => counts.get(interval) === Math.max(...counts.values()))
    for (const points of [2, 12, 60, 10_000]) {
      const expected = [...intervals].reverse().find((interval) => (counts.get(interval) ?? 0) >= points) ?? most
      const { headers, points: found } = await request(path, join(query, `start=${START}`, `points=${points}`))
      expect(headers.get('x-series-interval'), `${points} of ${JSON.stringify([...counts])}`).toBe(expected)
      expect(found).toEqual((await request(path, of(expected as Interval))).points)
    }
  })

  it('returns 400 for both interval and points', async () => {
    const response = await fetch(`${api.url}${path}?${of('1d', 'points=10')}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_parameter', param: 'points' })
  })

  it('returns only points of the range', async () => {
    const end = '2024-03-09T18:00:00Z'
    const { points } = await request(path, join(query, 'interval=1d', `start=${START}`, `end=${end}`))
    const full = (await request(path, of('1d'))).points
    const inside = full.filter((point) => at(point) < Date.parse(end))
    expect([...points].sort((a, b) => at(a) - at(b))).toEqual([...inside].sort((a, b) => at(a) - at(b)))
  })

  it('supports fields', async () => {
    const response = await fetch(`${api.url}${path}?${of('1d', 'order=asc', `fields=${time}`, 'format=ndjson')}`)
    const { points } = await request(path, of('1d', 'order=asc'))
    const rows = await readTable('ndjson', Buffer.from(await response.arrayBuffer()))
    expect(rows).toEqual(points.map((point) => ({ [time]: point[time] })))
  })
})

describe('series', () => {
  it('rejects fill before the start of history', async () => {
    for (const start of ['2022-01-31', '0001-01-01']) {
      const response = await fetch(`${api.url}/data/aggregated/market-cap?interval=1d&fill=null&start=${start}`)
      expect(response.status, start).toBe(400)
      expect(await response.json()).toMatchObject({ code: 'invalid_parameter', param: 'start' })
    }
  })

  it('uses points of the finest interval for coarse intervals', async () => {
    const query = 'start=2024-03-08'
    const fine = (await request('/data/index/historic', query)).points
    for (const interval of ['30m', '4h', '1d'] as const) {
      const coarse = (await request('/data/index/historic', `${query}&interval=${interval}`)).points
      const first = new Map<number, Point>()
      for (const point of fine) {
        const bucket = toBucketStart(Date.parse(String(point.createdAt)), interval)
        if (!first.has(bucket)) first.set(bucket, point)
      }
      expect(coarse).toEqual(
        [...first]
          .filter(([bucket]) => bucket >= Date.parse('2024-03-08'))
          .map(([bucket, point]) => ({ ...point, createdAt: new Date(bucket).toISOString() })),
      )
    }
  })

  it('supports paging in both orders, with and without fill', async () => {
    for (const more of ['order=desc', 'order=asc&fill=null', 'order=desc&fill=null', 'points=20&order=desc']) {
      const query = `name=aave&start=2024-03-01&end=2024-03-08&${more}${more.includes('points') ? '' : '&interval=4h'}`
      const full = (await request('/data/tokens/historic-financial', query)).points
      const together: Point[] = []
      let next: string | undefined = `${query}&limit=7`
      while (next !== undefined) {
        const page = await request('/data/tokens/historic-financial', next)
        together.push(...page.points)
        next = toNextQuery(page.headers)
      }
      expect(together, more).toEqual(full)
    }
  })

  it('keeps the interval chosen for the first page after new data is stored', async () => {
    const [path, of] = ['/data/tokens/historic-financial', 'name=uniswap&start=2024-03-10&order=desc']
    const token = getToken(database.registry, 'UNI').key
    const store = (...times: string[]) =>
      storeQuotes(
        database.writer,
        times.map((time) => ({ token, at: Date.parse(`2024-03-10T${time}:00Z`), price: 5 })),
      )
    await store('08:00', '08:30', '09:00', '09:30')
    const first = await request(path, `${of}&points=3&limit=3`)
    expect(first.headers.get('x-series-interval')).toBe('30m')
    await store('02:00')
    expect((await request(path, `${of}&points=3`)).headers.get('x-series-interval')).toBe('1h')
    const together = [...first.points]
    for (let next = toNextQuery(first.headers); next !== undefined; ) {
      const page = await request(path, next)
      expect(page.headers.get('x-series-interval')).toBe('30m')
      together.push(...page.points)
      next = toNextQuery(page.headers)
    }
    expect(together).toEqual((await request(path, `${of}&interval=30m`)).points)
  })

  it('returns trades in both orders', async () => {
    const path = '/data/tokens/historic-dex-trades'
    const down = (await request(path, 'name=aave&limit=10000')).points
    const up = (await request(path, 'name=aave&limit=10000&order=asc')).points
    expect([...up].reverse()).toEqual(down)
    const together: Point[] = []
    let next: string | undefined = 'name=aave&limit=7&order=asc'
    while (next !== undefined) {
      const page = await request(path, next)
      together.push(...page.points)
      next = toNextQuery(page.headers)
    }
    expect(together).toEqual(up)
  })

  it('rejects order for a table of several tokens', async () => {
    const response = await fetch(
      `${api.url}/data/tokens/historic-financial?name=aave&name=uniswap&interval=1d&start=2024-03-01&order=desc&format=csv`,
    )
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ detail: expect.stringContaining('one token') })
  })
})

it('selects a coarse point whose observation lies after the range, if there is no finer one', async () => {
  const token = getToken(database.registry, 'COMP').key
  const day = NOW - (NOW % DAY) - 20 * DAY
  await storeQuotes(database.writer, [{ token, at: day + DAY / 2, price: 7, volume_24h: null }])
  const toIso = (at: number) => new Date(at).toISOString()
  const range = `start=${toIso(day)}&end=${toIso(day + DAY / 4)}`
  const { points, headers } = await request('/data/tokens/historic-financial', `name=compound&${range}&points=10`)
  expect([headers.get('x-series-interval'), points.map(({ timestamp }) => timestamp)]).toEqual(['1d', [toIso(day)]])
})
