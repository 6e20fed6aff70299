import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeMarket } from '../support/market.ts'
import { createRegistryFolder } from '../support/registry-folder.ts'
import { readTable } from '../support/tables.ts'

const NOW = Date.parse('2026-12-01T00:02:00Z')
/** More rows than the response cache stores, and enough for several chunks. */
const POINTS = 16_000
const FORMATS = ['csv', 'ndjson', 'parquet', 'arrow'] as const

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let path: string
let key: number

/** Starts an API whose database streams are replaced, and passes the URL of its table. */
async function withStreams<T>(stream: Database['stream'], use: (url: string) => Promise<T>): Promise<T> {
  const db: Database = { ...database.db, stream }
  const changed = await startApi({ config, ...database, db, changeFeed, now: () => NOW })
  try {
    return await use(changed.url + path)
  } finally {
    await changed.close()
  }
}

/** Starts an API with a registry in which the token has another name, and passes the URL of its table. */
async function withRenamedTokens<T>(use: (url: string) => Promise<T>): Promise<T> {
  const folder = createRegistryFolder()
  folder.edit('tokens', (rows) => rows.map((row) => (row.symbol === 'UNI' ? { ...row, name: 'Renamed' } : row)))
  const renamed = await startApi({
    config,
    ...database,
    registry: loadRegistry(folder.dir),
    changeFeed,
    now: () => NOW,
  })
  try {
    return await use(renamed.url + path)
  } finally {
    await renamed.close()
    folder.remove()
  }
}

/** A failure before the first sent bytes rejects the whole request. */
const toEnd = async (response: Response) =>
  response.arrayBuffer().then(
    () => (response.ok ? 'whole' : 'refused'),
    () => 'broken off',
  )

/** Splits bytes into chunks as a connection delivers them. */
function* toParts(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 16_384) yield bytes.subarray(at, at + 16_384)
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  const uni = getToken(database.registry, 'UNI')
  key = uni.key
  await storeMarket(database.writer, { keys: [key], until: NOW - 60_000, points: POINTS, stepMs: 300_000 })
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
  path = `/data/tokens/historic-financial?id=${uni.id}&interval=5m&start=2026-01-01`
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

describe.each(FORMATS)('long table as %s', (format) => {
  it('is complete with an ETag of its data, and HEAD returns the same headers', async () => {
    const url = `${api.url}${path}&format=${format}`
    const response = await fetch(url)
    const points = Number(response.headers.get('x-series-points'))
    const tag = response.headers.get('etag') ?? ''
    expect(response.headers.get('content-length')).toBeNull()
    expect(await readTable(format, Buffer.from(await response.arrayBuffer()))).toHaveLength(points)
    expect(points).toBeGreaterThan(10_000)
    expect(tag).toMatch(format === 'parquet' ? /^"[\w-]{22}"$/ : /-gzip"$/)
    expect((await fetch(url, { headers: { 'if-none-match': tag } })).status).toBe(304)
    const head = await fetch(url, { method: 'HEAD' })
    expect([head.headers.get('etag'), head.headers.get('x-series-points')]).toEqual([tag, String(points)])
    const second = await fetch(`${url}&limit=${points - 1}`, { method: 'HEAD' })
    expect(second.headers.get('etag')).not.toBe(tag)
  })

  it('has another ETag if its token has another name, because the rows contain the name', async () => {
    const read = async (url: string) => {
      const response = await fetch(`${url}&format=${format}`)
      const [row] = await readTable(format, Buffer.from(await response.arrayBuffer()))
      return { tag: response.headers.get('etag') ?? '', row }
    }
    const before = await read(api.url + path)
    await withRenamedTokens(async (url) => {
      const headers = { 'if-none-match': before.tag }
      expect((await fetch(`${url}&format=${format}`, { headers })).status).toBe(200)
      const after = await read(url)
      expect(after.row).toMatchObject({ name: format === 'csv' ? '"Renamed"' : 'Renamed' })
      expect(after.tag).not.toBe(before.tag)
    })
  })

  it('is aborted if the engine fails during the read, and never looks complete', async () => {
    const failing: Database['stream'] = (statement) =>
      database.db.stream({ ...statement, sql: `${statement.sql}\nWHERE throwIf(rowNumberInAllBlocks() > 12000) = 0` })
    const ended = await withStreams(failing, async (url) => toEnd(await fetch(`${url}&format=${format}`)))
    expect(['broken off', 'refused']).toContain(ended)
  })

  it('is aborted or rejected if the connection to the engine fails', async () => {
    const lost: Database['stream'] = async (statement) => {
      const source = await database.db.stream(statement)
      return Readable.from(
        (async function* () {
          let bytes = 0
          for await (const chunk of source as AsyncIterable<Buffer>) {
            yield chunk
            bytes += chunk.length
            if (bytes > 200_000) throw new Error('connection lost')
          }
        })(),
      )
    }
    const ended = await withStreams(lost, async (url) => toEnd(await fetch(`${url}&format=${format}`)))
    expect(['broken off', 'refused']).toContain(ended)
  })

  it('is aborted if the end of the stream is missing', async () => {
    const cut: Database['stream'] = async (statement) => {
      const source = await database.db.stream(statement)
      const full = Buffer.concat((await source.toArray()) as Buffer[])
      return Readable.from(toParts(full.subarray(0, -5)))
    }
    expect(await withStreams(cut, async (url) => toEnd(await fetch(`${url}&format=${format}`)))).toBe('broken off')
  })

  it('is built again if its data changes before the engine starts, and is unaffected by later changes', async () => {
    const change = (steps: number) => {
      const time = { keys: [key], until: NOW - 60_000 - (10 * steps + FORMATS.indexOf(format)) * 300_000 }
      return storeMarket(database.writer, { ...time, points: 1, stepMs: 300_000 })
    }
    const readTag = async () => (await fetch(`${api.url}${path}&format=${format}`)).headers.get('etag')
    let streams = 0
    let before: string | null = null
    const changed: Database['stream'] = async (statement) => {
      streams += 1
      if (streams === 1) await change(1)
      if (streams === 2) before = await readTag()
      const source = await database.db.stream(statement)
      return Readable.from(
        (async function* () {
          let isFirst = true
          for await (const chunk of source) {
            yield chunk
            if (isFirst && streams === 2) await change(2)
            isFirst = false
          }
        })(),
      )
    }
    const { bytes, tag } = await withStreams(changed, async (url) => {
      const response = await fetch(`${url}&format=${format}`)
      return { bytes: Buffer.from(await response.arrayBuffer()), tag: response.headers.get('etag') }
    })
    expect([streams, tag]).toEqual([2, before])
    expect((await readTable(format, bytes)).length).toBeGreaterThan(10_000)
    expect(await readTag()).not.toBe(tag)
  })
})
