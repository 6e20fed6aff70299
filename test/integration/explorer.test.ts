import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { READS } from '../../web/reads.ts'
import { createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { noDatabase } from '../support/no-database.ts'

const BUILT = join(import.meta.dirname, '../../web/dist')
const UNKNOWN_ID = 'a00a15074c647764fac27d6c'
const ADDRESSES = [
  '/',
  '/tokens',
  '/daos',
  '/governance',
  '/treasuries',
  '/index',
  '/compare',
  '/freshness',
  '/sql',
  `/tokens/${UNKNOWN_ID}`,
  `/daos/${UNKNOWN_ID}`,
  `/daos/${UNKNOWN_ID}/proposals/${UNKNOWN_ID}`,
]

let api: TestApi
beforeAll(async () => {
  const config = parseConfig({})
  api = await startApi({ config, db: noDatabase, registry: loadRegistry(), changeFeed: createHandFeed() })
})
afterAll(() => api.close())

const get = (path: string, headers: Record<string, string> = {}) => fetch(api.url + path, { headers })

describe('the explorer page', () => {
  it.each(ADDRESSES)('serves %s as a document that loads only from this host', async (path) => {
    const response = await get(`${path}?a=b`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('no-cache')
    const policy = response.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';")
    const html = await response.text()
    expect(html).not.toMatch(/<script(?![^>]*src=)|<style|style=|(?:src|href)="(?:https?:)?\/\//)
    const base = new URL(/<base href="([^"]+)">/.exec(html)?.[1] ?? '', `${api.url}/under/a/path${path}`)
    expect(base.pathname).toBe('/under/a/path/')
  })

  it('serves compressed assets that browsers cache for ever', async () => {
    const html = await (await get('/')).text()
    const files = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, file]) => `/${file}`)
    expect(files.length).toBeGreaterThan(1)
    for (const file of files) {
      const response = await get(file, { 'accept-encoding': 'gzip' })
      expect(response.status, file).toBe(200)
      expect(response.headers.get('cache-control')).toContain('immutable')
      expect(response.headers.get('content-encoding')).toBe('gzip')
      const repeated = await get(file, { 'if-none-match': response.headers.get('etag') ?? '' })
      expect(repeated.status).toBe(304)
    }
    expect((await get('/favicon.ico')).headers.get('content-type')).toBe('image/svg+xml')
  })

  it.each(['/nothing', '/data', '/data/nothing', '/tokens/', '/tokens/uniswap', '/assets/../package.json', '/Tokens'])(
    'answers %s with a JSON 404',
    async (path) => {
      const response = await get(path, { accept: 'text/html' })
      expect(response.status).toBe(404)
      expect(response.headers.get('content-type')).toContain('application/problem+json')
    },
  )

  const assetsOf = (pattern: RegExp) => readdirSync(join(BUILT, 'assets')).filter((name) => pattern.test(name))

  it('streams DuckDB compressed or not, and allows WebAssembly only in its worker', async () => {
    const [file = ''] = assetsOf(/\.wasm\.gz$/)
    expect(assetsOf(/\.wasm$/)).toEqual([])
    const path = `/assets/${file.replace(/\.gz$/, '')}`
    const onDisk = readFileSync(join(BUILT, 'assets', file))
    // The page says 8 MB.
    expect(Math.round(onDisk.length / 1e6)).toBe(8)
    for (const [accepted, encoding] of [
      ['gzip', 'gzip'],
      ['identity', null],
    ] as const) {
      const response = await get(path, { 'accept-encoding': accepted })
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('application/wasm')
      expect(response.headers.get('cache-control')).toContain('immutable')
      expect(response.headers.get('content-encoding')).toBe(encoding)
      expect(gunzipSync(onDisk).equals(Buffer.from(await response.arrayBuffer()))).toBe(true)
    }
    const [worker = ''] = assetsOf(/^duckdb-browser-.*\.js$/)
    const policyOf = async (of: string) => (await get(of)).headers.get('content-security-policy')
    expect(await policyOf(`/assets/${worker}`)).toContain("script-src 'self' 'wasm-unsafe-eval'")
    for (const other of ['/sql', ...assetsOf(/^(?:reader|sql|index)-.*\.js$/).map((name) => `/assets/${name}`)])
      expect(await policyOf(other), other).not.toContain('eval')
  })

  it('stays below 60 kB of script and style for the first view and 130 kB with charts', () => {
    // The page with SQL loads its own code.
    const files = assetsOf(/\.(?:js|css)$/).filter((name) => !/^(?:sql|reader|duckdb-browser)/.test(name))
    const html = readFileSync(join(BUILT, 'index.html'), 'utf8')
    const size = (names: readonly string[]) =>
      names.reduce((sum, name) => sum + gzipSync(readFileSync(join(BUILT, 'assets', name))).length, 0)
    const first = files.filter((name) => html.includes(name))
    expect(first.length).toBeGreaterThan(1)
    expect(files.length).toBeGreaterThan(first.length)
    expect(size(first)).toBeLessThan(60_000)
    expect(size(files)).toBeLessThan(130_000)
  })

  it('lists the same datasets for each route as the API', () => {
    const values = Object.keys(READS).map((path) => routes.find((route) => route.path === path))
    expect(READS).toEqual(
      Object.fromEntries(values.map((route) => [route?.path, route?.datasets.map(({ name }) => name)])),
    )
  })
})
