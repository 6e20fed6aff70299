import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeMarket } from '../support/market.ts'

const NOW = Date.parse('2026-12-01T00:02:00Z')
const POINTS = 60_000

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let series: string
let streams = 0
let summaries = 0

beforeAll(async () => {
  database = await createApiDatabase(config)
  const uni = getToken(database.registry, 'UNI')
  const market = { keys: [uni.key], until: NOW - 60_000, points: POINTS, stepMs: 300_000 }
  await storeMarket(database.writer, market)
  const db: Database = {
    ...database.db,
    rows: (statement) => {
      summaries += 1
      return database.db.rows(statement)
    },
    stream: (statement) => {
      if (statement.isLong) streams += 1
      return database.db.stream(statement)
    },
  }
  api = await startApi({ config, ...database, db, changeFeed: createHandFeed(), now: () => NOW })
  series = `/data/tokens/historic-financial?id=${uni?.id}&interval=5m&start=2026-01-01`
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

const get = async (url: string, headers: Record<string, string>, method = 'GET') => {
  const response = await fetch(url, { method, headers: { 'accept-encoding': 'identity', ...headers } })
  const { status, headers: responseHeaders } = response
  return { status, responseHeaders, bytes: Buffer.from(await response.arrayBuffer()) }
}

describe.each([
  ['long', 'parquet', ''],
  ['long', 'arrow', ''],
  ['cached', 'parquet', '&limit=500'],
  ['cached', 'arrow', '&limit=500'],
])('range requests of a %s table as %s', (_length, format, limit) => {
  it('return 206 parts of one file that together equal the whole, and HEAD returns its length', async () => {
    const url = `${api.url}${series}&format=${format}${limit}`
    const full = await get(url, {})
    const { length } = full.bytes
    const tag = String(full.responseHeaders.get('etag'))
    expect([full.status, full.responseHeaders.get('accept-ranges')]).toEqual([200, 'bytes'])
    const before = streams
    const head = await get(url, {}, 'HEAD')
    expect([
      head.responseHeaders.get('content-length'),
      head.responseHeaders.get('accept-ranges'),
      head.responseHeaders.get('etag'),
    ]).toEqual([...[String(length), 'bytes', tag]])
    // The length is known from the whole response, so no statement makes the file for it.
    expect(streams - before).toBe(0)
    const third = Math.floor(length / 3)
    const ranges = [`0-${third - 1}`, `${third}-${2 * third - 1}`, `${2 * third}-`]
    const parts = await Promise.all(
      ranges.map((range) => get(url, { range: `bytes=${range}`, 'if-range': tag, 'accept-encoding': 'gzip' })),
    )
    expect(
      parts.map(({ status, responseHeaders }) => [
        status,
        responseHeaders.get('etag'),
        responseHeaders.get('content-encoding'),
      ]),
    ).toEqual(Array(3).fill([206, tag, null]))
    expect(parts[1]?.responseHeaders.get('content-range')).toBe(`bytes ${third}-${2 * third - 1}/${length}`)
    expect(Buffer.concat(parts.map(({ bytes }) => bytes)).equals(full.bytes)).toBe(true)
    const read = summaries
    const end = await get(url, { range: 'bytes=-8' })
    expect([end.status, end.bytes.equals(full.bytes.subarray(-8))]).toEqual([206, true])
    expect(streams - before).toBe(limit === '' ? 1 : 0)
    // The file exists, so no statement reads its digest again.
    expect(summaries - read).toBe(0)
  })

  it('make the file once for HEAD, the whole response and its ranges', async () => {
    const url = `${api.url}${series}&format=${format}${limit.replace('500', '501')}&end=2026-12-01`
    const before = streams
    const head = await get(url, {}, 'HEAD')
    const full = await get(url, {})
    const start = await get(url, { range: 'bytes=0-3' })
    const second = await get(url, {}, 'HEAD')
    const length = String(full.bytes.length)
    for (const { responseHeaders } of [head, full, second]) {
      expect(responseHeaders.get('content-length')).toBe(length)
      expect(responseHeaders.get('etag')).toBe(start.responseHeaders.get('etag'))
    }
    expect([full.status, start.status, start.responseHeaders.get('content-range')]).toEqual([
      ...[200, 206, `bytes 0-3/${length}`],
    ])
    expect(streams - before).toBe(1)
  })

  it('return the whole file for another If-Range or several ranges, and 416 beyond the end', async () => {
    const url = `${api.url}${series}&format=${format}${limit}`
    const { bytes, responseHeaders } = await get(url, {})
    const second = await get(url, { range: 'bytes=0-9', 'if-range': '"other"' })
    expect([second.status, second.bytes.equals(bytes)]).toEqual([200, true])
    const several = await get(url, { range: 'bytes=0-9,20-29' })
    expect([several.status, several.bytes.equals(bytes)]).toEqual([200, true])
    const existing = await get(url, { range: 'bytes=0-9', 'if-none-match': String(responseHeaders.get('etag')) })
    expect(existing.status).toBe(304)
    const behind = await get(url, { range: `bytes=${bytes.length}-` })
    expect([behind.status, behind.responseHeaders.get('content-range')]).toEqual([416, `bytes */${bytes.length}`])
    expect(JSON.parse(behind.bytes.toString())).toMatchObject({ code: 'range_not_satisfiable', status: 416 })
  })
})

it('range requests are ignored for JSON and CSV', async () => {
  for (const format of ['json', 'csv']) {
    const { status, responseHeaders } = await get(`${api.url}${series}&limit=5&format=${format}`, {
      range: 'bytes=0-9',
    })
    expect([status, responseHeaders.get('accept-ranges')]).toEqual([200, null])
  }
})

it('range requests are ignored without a spool on disk', async () => {
  const none = { ...config, api: { ...config.api, spoolBytes: 0 } }
  const second = await startApi({ config: none, ...database, changeFeed: createHandFeed(), now: () => NOW })
  const { status, bytes } = await get(`${second.url}${series}&format=parquet`, { range: 'bytes=0-9' })
  expect([status, bytes.subarray(-4).toString()]).toEqual([200, 'PAR1'])
  await second.close()
})
