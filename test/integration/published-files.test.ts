import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase } from '../../shared/store/store.ts'
import { createPublished, type Published } from '../support/published.ts'

let store: Published
beforeAll(async () => {
  store = await createPublished()
})
afterAll(() => store?.close())

describe('/published', () => {
  it('serves data files with ranges, a strong tag and immutable caching', async () => {
    const [part] = await store.partitionsOf('tokens')
    const url = `${store.api.url}/published/${part?.path}`
    const full = await fetch(url)
    expect(full.status).toBe(200)
    expect((await full.arrayBuffer()).byteLength).toBe(part?.bytes)
    expect(full.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(full.headers.get('access-control-allow-origin')).toBe('*')
    const etag = full.headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[0-9a-f]{16}-\d+"$/)
    const range = await fetch(url, { headers: { range: 'bytes=0-3', 'if-range': etag } })
    expect([range.status, await range.text()]).toEqual([206, 'PAR1'])
    expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).toBe(304)
    const beyond = await fetch(url, { headers: { range: 'bytes=99999999-' } })
    expect([beyond.status, ((await beyond.json()) as { code: string }).code]).toEqual([416, 'range_not_satisfiable'])
  })

  it('answers range requests like the rest of the API', async () => {
    const [part] = await store.partitionsOf('tokens')
    const bytes = part?.bytes ?? 0
    const send = async (range: string, method = 'GET') => {
      const response = await fetch(`${store.api.url}/published/${part?.path}`, { method, headers: { range } })
      const { length } = await response.text()
      return [
        response.status,
        response.headers.get('content-range'),
        Number(response.headers.get('content-length')),
        length > 0,
      ]
    }
    expect(await send('bytes=0-3', 'HEAD')).toEqual([200, null, bytes, false])
    for (const ignored of ['bytes=5-1', 'bytes=0-1,3-4', 'items=0-1'])
      expect(await send(ignored), ignored).toEqual([200, null, bytes, true])
    expect(await send(`bytes=-${bytes + 1}`)).toEqual([206, `bytes 0-${bytes - 1}/${bytes}`, bytes, true])
    expect((await send('bytes=-0'))[0]).toBe(416)
    const encoded = await fetch(`${store.api.url}/published/${part?.path.replaceAll('=', '%3D')}`, { method: 'HEAD' })
    expect(encoded.status).toBe(200)
  })

  it('serves each version of the files beside the data for ever, and their copies with revalidation', async () => {
    for (const { path, bytes } of (await store.catalogOf()).files) {
      const read = async (name: string) => {
        const answer = await fetch(`${store.api.url}/published/${name}`)
        return [answer.status, answer.headers.get('cache-control'), (await answer.arrayBuffer()).byteLength]
      }
      expect(await read(path)).toEqual([200, 'public, max-age=31536000, immutable', bytes])
      expect(await read(path.replace(/-[0-9a-f]{16}/, ''))).toEqual([200, 'no-cache', bytes])
    }
  })

  it('serves the catalog with revalidation', async () => {
    const response = await fetch(`${store.api.url}/published/catalog.json`)
    expect(response.headers.get('cache-control')).toBe('no-cache')
    expect(await response.json()).toEqual(await store.catalogOf())
    const existing = { headers: { 'if-none-match': response.headers.get('etag') ?? '' } }
    expect((await fetch(`${store.api.url}/published/catalog.json`, existing)).status).toBe(304)
  })

  it('compresses the catalog and the other texts, but no data and no ranges', async () => {
    const send = async (path: string, headers: Readonly<Record<string, string>>) => {
      const url = `${store.api.url}/published/${path}`
      const [response] = (await once(get(url, { headers, agent: false }), 'response')) as [IncomingMessage]
      const { 'content-encoding': encoding, 'content-length': length, vary, etag } = response.headers
      return { encoding, length: Number(length), vary, etag, body: await buffer(response) }
    }
    const text = await readFile(join(store.folder, 'catalog.json'))
    const whole = await send('catalog.json', {})
    expect([whole.encoding, whole.vary, whole.body.equals(text)]).toEqual([undefined, 'Accept-Encoding', true])
    for (const [encoding, inflate] of [
      ['gzip', gunzipSync],
      ['br', brotliDecompressSync],
    ] as const) {
      for (let time = 0; time < 2; time += 1) {
        const { body, ...answer } = await send('catalog.json', { 'accept-encoding': encoding })
        expect([answer.encoding, answer.vary, answer.length]).toEqual([encoding, 'Accept-Encoding', body.length])
        expect(body.length).toBeLessThan(text.length / 5)
        expect(inflate(body).equals(text)).toBe(true)
        expect(answer.etag).not.toBe(whole.etag)
      }
    }
    expect((await send('README.md', { 'accept-encoding': 'gzip' })).encoding).toBe('gzip')
    const range = await send('catalog.json', { 'accept-encoding': 'gzip', range: 'bytes=0-9' })
    expect([range.encoding, range.body.equals(text.subarray(0, 10))]).toEqual([undefined, true])
    const [part] = await store.partitionsOf('tokens')
    const data = await send(part?.path ?? '', { 'accept-encoding': 'gzip' })
    expect([data.encoding, data.length]).toEqual([undefined, part?.bytes])
  })

  it.each([
    '',
    '/',
    '/tokens',
    '/nothing.parquet',
    '/..%2f..%2fetc%2fpasswd',
    '/.hidden',
    '/%00',
    '/%',
    '/a/../catalog.json%00',
  ])('has no file at /published%s', async (path) => {
    const response = await fetch(`${store.api.url}/published${path}`)
    expect([response.status, response.headers.get('content-type')]).toEqual([
      404,
      'application/problem+json; charset=utf-8',
    ])
  })

  it.each(['treasury', 'prices'])('is read by ClickHouse through clickhouse.sql: %s', async (name) => {
    const db = createDatabase(store.config.clickhouse, 'write')
    try {
      const view = new RegExp(`CREATE OR REPLACE VIEW ${name} AS (.*?);`, 's').exec(
        await readFile(join(store.folder, 'clickhouse.sql'), 'utf8'),
      )
      const from = `FROM (${String(view?.[1]).replaceAll('https://data.example', store.api.url)})`
      const time = name === 'prices' ? 'timestamp' : 'day'
      const sql = `SELECT count(), countIf(toYear(${time}) = year AND toMonth(${time}) = month) ${from}`
      const text = String(await buffer(await db.stream({ name: 'published', sql, format: 'TSV' })))
      const rows = (await store.partitionsOf(name)).reduce((sum, one) => sum + one.rows, 0)
      expect(text.trim().split('\t').map(Number)).toEqual([rows, rows])
    } finally {
      await db.close()
    }
  })
})
