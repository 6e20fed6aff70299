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
const [UNI, UNISWAP] = ['a00a15074c647764fac27d6c', '893ec80ae8dcc44e6c2a0b49']
const ADDRESSES = [
  '/',
  '/tokens',
  '/daos',
  '/governance',
  '/treasuries',
  '/index',
  '/compare',
  '/freshness',
  '/alerts',
  '/sql',
  `/tokens/${UNKNOWN_ID}`,
  `/daos/${UNKNOWN_ID}`,
  `/daos/${UNKNOWN_ID}/proposals/${UNKNOWN_ID}`,
  `/voters/0x${'aB'.repeat(20)}`,
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
    expect(policy).toContain("frame-ancestors 'none'")
    // Nothing is loaded from the address of the description as oEmbed.
    const html = (await response.text()).replace(/<link rel="alternate"[^>]+>/, '')
    expect(html).not.toMatch(/<script(?![^>]*src=)|<style|style=|(?:src|href)="(?:https?:)?\/\//)
    const base = new URL(/<base href="([^"]+)">/.exec(html)?.[1] ?? '', `${api.url}/under/a/path${path}`)
    expect(base.pathname).toBe('/under/a/path/')
  })

  it.each(['/embed/index', `/embed/tokens/${UNI}`, `/embed/daos/${UNISWAP}`])(
    'serves %s as a document that any site may show in a frame',
    async (path) => {
      const response = await get(`${path}?theme=dark&range=7d`)
      expect(response.status).toBe(200)
      const policy = response.headers.get('content-security-policy')
      expect(policy).toContain("default-src 'none'; script-src 'self';")
      expect(policy).toContain('frame-ancestors *')
      const [, base, target] = /<base href="([^"]+)" target="([^"]+)">/.exec(await response.text()) ?? []
      expect(new URL(base ?? '', `${api.url}/under/a/path${path}`).pathname).toBe('/under/a/path/')
      expect(target).toBe('_blank')
    },
  )

  it('describes tokens and DAOs to sites that show a link to them', async () => {
    const contentOf = async (path: string, name: string) =>
      new RegExp(`<meta (?:property|name)="${name}" content="([^"]+)">`).exec(await (await get(path)).text())?.[1]
    expect(await contentOf(`/tokens/${UNI}`, 'og:title')).toBe('Uniswap (UNI) – dao-data')
    expect(await contentOf(`/tokens/${UNI}`, 'og:description')).toMatch(/^Price, market cap/)
    expect(await contentOf(`/tokens/${UNI}`, 'og:image')).toContain(`/charts/24h/${UNI}.svg?width=1200&amp;height=630`)
    expect(await contentOf(`/daos/${UNISWAP}`, 'twitter:title')).toBe('Uniswap – dao-data')
    expect(await contentOf(`/daos/${UNISWAP}`, 'og:image')).toContain(`/marks/${UNISWAP}.svg`)
    expect(await contentOf(`/tokens/${'0'.repeat(24)}`, 'og:title')).toBeUndefined()
  })

  describe('/oembed', () => {
    const { publicUrl } = parseConfig({}).api
    const describeUrl = (url: string, more = '') => get(`/oembed?url=${encodeURIComponent(url)}${more}`)

    it.each([
      [
        `tokens/${UNI}?range=7d&theme=dark&other=%22`,
        `tokens/${UNI}?range=7d&amp;theme=dark`,
        'Uniswap (UNI) – dao-data',
      ],
      [`embed/daos/${UNISWAP}`, `daos/${UNISWAP}`, 'Uniswap – dao-data'],
      ['index?range=%22%3E', 'index', 'Index – dao-data'],
    ])('describes %s as a frame', async (page, source, title) => {
      const response = await describeUrl(`${publicUrl}/${page}`, '&maxwidth=400&maxheight=300&format=json')
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toContain('application/json')
      expect(await response.json()).toEqual({
        ...{ version: '1.0', type: 'rich', provider_name: 'dao-data', provider_url: publicUrl, title },
        ...{ width: 400, height: 300 },
        html: `<iframe src="${publicUrl}/embed/${source}" title="${title}" width="400" height="300" style="border:0" loading="lazy"></iframe>`,
      })
    })

    it.each([
      ['another host', `https://example.org/tokens/${UNI}`, '', 404],
      ['an unknown id', `${publicUrl}/tokens/${'0'.repeat(24)}`, '', 404],
      ['a page without a chart', `${publicUrl}/sql`, '', 404],
      ['XML', `${publicUrl}/index`, '&format=xml', 400],
      ['a width of 0', `${publicUrl}/index`, '&maxwidth=0', 400],
      ['a text that is not a URL', 'tokens', '', 400],
    ])('rejects %s', async (_what, url, more, status) => {
      const response = await describeUrl(url, more)
      expect(response.status).toBe(status)
      expect(response.headers.get('content-type')).toContain('application/problem+json')
    })
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

  it.each([
    '/nothing',
    '/data',
    '/data/nothing',
    '/tokens/',
    '/tokens/uniswap',
    '/voters/0xab',
    '/assets/../package.json',
    '/Tokens',
  ])('answers %s with a JSON 404', async (path) => {
    const response = await get(path, { accept: 'text/html' })
    expect(response.status).toBe(404)
    expect(response.headers.get('content-type')).toContain('application/problem+json')
  })

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
