import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROBLEM_CODES } from '../../api/problem/codes.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
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
  '/baskets',
  '/freshness',
  '/alerts',
  '/provenance',
  '/sql',
  `/tokens/${UNKNOWN_ID}`,
  `/daos/${UNKNOWN_ID}`,
  `/daos/${UNKNOWN_ID}/proposals/${UNKNOWN_ID}`,
  `/voters/0x${'aB'.repeat(20)}`,
]

/** The names of the statements that the API has run. */
const statements: string[] = []
/** A database with one point of each token's chart, and no records. */
const db = {
  ...noDatabase,
  rows: async ({ name }: { readonly name: string }) => {
    statements.push(name)
    if (name === 'chart-24h') return [{ at: Date.now() - 3_600_000, value: 5 }]
    if (name === 'chart-24h-change') return [{ change: 1 }]
    throw new Error(`unexpected statement ${name}`)
  },
  stream: async ({ name }: { readonly name: string }) => {
    statements.push(name)
    return Readable.from([Buffer.from('0\t0\t\\N\t{"end":true}\n')])
  },
} as unknown as typeof noDatabase

let api: TestApi
beforeAll(async () => {
  const config = parseConfig({})
  api = await startApi({ config, db, registry: loadRegistry(), changeFeed: createHandFeed() })
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
    expect(await contentOf(`/tokens/${UNI}`, 'og:image')).toContain(`/og/tokens/${UNI}.png`)
    expect(await contentOf(`/daos/${UNISWAP}`, 'twitter:title')).toBe('Uniswap – dao-data')
    expect(await contentOf(`/daos/${UNISWAP}`, 'og:image')).toContain(`/og/daos/${UNISWAP}.png`)
    expect(await contentOf('/index', 'og:image')).toContain('/og/index.png')
    expect(await contentOf(`/tokens/${'0'.repeat(24)}`, 'og:title')).toBeUndefined()
  })

  describe('/og', () => {
    it('draws a DAO as a PNG of 1200 by 630, again without the database', async () => {
      const response = await get(`/og/daos/${UNISWAP}.png`)
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('image/png')
      expect(response.headers.get('cache-control')).toContain('max-age')
      const png = Buffer.from(await response.arrayBuffer())
      expect(png.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n')
      expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([1200, 630])
      // A picture without any text has 12 kB.
      expect(png.length).toBeGreaterThan(15_000)
      const again = await get(`/og/daos/${UNISWAP}.png`)
      expect(Buffer.from(await again.arrayBuffer()).equals(png)).toBe(true)
    })

    it('waits for its turn with 60 concurrent pictures', async () => {
      const daos = loadRegistry().daos.slice(0, 60)
      const responses = await Promise.all(daos.map(({ id }) => get(`/og/daos/${id}.png`)))
      expect(responses.map(({ status }) => status)).toEqual(daos.map(() => 200))
    })

    it('reads the points of a token once for concurrent and later requests', async () => {
      const count = () => statements.filter((name) => name.startsWith('chart-24h')).length
      const before = count()
      const all = [1, 2, 3].map(() => get(`/og/tokens/${UNI}.png`))
      for (const response of await Promise.all(all)) expect(response.status).toBe(200)
      const read = count() - before
      const again = await get(`/og/tokens/${UNI}.png`, { 'if-none-match': (await all[0])?.headers.get('etag') ?? '' })
      expect(again.status).toBe(304)
      expect([read, count() - before]).toEqual([2, 2])
    })

    it.each([
      [`/og/daos/${UNKNOWN_ID}.png`, 404],
      [`/og/daos/${UNISWAP}.png?width=9`, 400],
      [`/og/other/${UNISWAP}.png`, 404],
    ])('rejects %s', async (path, status) => {
      const response = await get(path)
      expect(response.status).toBe(status)
      expect(response.headers.get('content-type')).toContain('application/problem+json')
    })
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

    it('describes no frame larger than the client allows', async () => {
      const response = await describeUrl(`${publicUrl}/index`, '&maxwidth=1&maxheight=1000')
      expect(await response.json()).toMatchObject({
        width: 1,
        height: 420,
        html: expect.stringContaining('width="1" height="420"'),
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

  const NOWHERE = [
    ...['/nothing', '/data', '/data/nothing', '/tokens/', '/tokens/uniswap', '/voters/0xab', '/Tokens'],
    ...['/assets/../package.json', '/far//%22%3E%3Cb%3E/'],
  ]
  const FOR_BROWSERS = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

  it.each(NOWHERE)('answers %s with a JSON 404 unless HTML is preferred', async (path) => {
    for (const accept of ['*/*', 'application/json', 'text/plain', 'application/json, text/html']) {
      const response = await get(path, { accept })
      expect([accept, response.status]).toEqual([accept, 404])
      expect(response.headers.get('content-type')).toContain('application/problem+json')
      expect(((await response.json()) as { code: string }).code).toBe('not_found')
    }
  })

  it.each(NOWHERE)('answers %s for browsers with a document and status 404', async (path) => {
    const response = await get(path, { accept: FOR_BROWSERS })
    expect(response.status).toBe(404)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('vary')).toBe('Accept')
    expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    const html = await response.text()
    expect(html).toContain('<title>Not found – dao-data</title>')
    expect(html).toContain(`<code>${new URL(path, api.url).pathname}</code>`)
    const [, content = ''] = /<noscript[^>]*>([\s\S]*)<\/noscript>/.exec(html) ?? []
    const base = new URL(/<base href="([^"]+)">/.exec(html)?.[1] ?? '', api.url + path).href
    for (const [, link = ''] of content.matchAll(/href="([^"]+)"/g))
      expect((await fetch(new URL(link, base))).status, link).toBe(200)
    const head = await fetch(api.url + path, { method: 'HEAD', headers: { accept: FOR_BROWSERS } })
    expect([head.status, await head.text()]).toEqual([404, ''])
  })

  it('answers an unknown chart with a JSON 404 also inside a frame', async () => {
    const response = await get('/embed/tokens/uniswap', { accept: FOR_BROWSERS })
    expect(response.status).toBe(404)
    expect(response.headers.get('content-type')).toContain('application/problem+json')
  })

  it('explains each error code at the URL that problems refer to', async () => {
    const problem = (await (await get('/data/nothing')).json()) as { type: string }
    const { pathname, hash } = new URL(problem.type)
    for (const accept of ['*/*', FOR_BROWSERS]) {
      const response = await get(pathname, { accept })
      expect(response.status).toBe(200)
      const html = await response.text()
      expect(html).toContain(`id="${hash.slice(1)}"`)
      for (const [code, { status, title }] of Object.entries(PROBLEM_CODES)) {
        const entry = html.slice(html.indexOf(`<div id="${code}">`)).split('</div>', 1)[0]
        expect(entry).toContain(`href="docs/errors#${code}"`)
        expect(entry).toContain(`>${status}<`)
        expect(entry).toContain(title)
        expect(entry).toContain('What to do')
      }
    }
  })

  const assetsOf = (pattern: RegExp) => readdirSync(join(BUILT, 'assets')).filter((name) => pattern.test(name))

  it('streams DuckDB compressed or not, and allows WebAssembly only in its worker', async () => {
    const [file = ''] = assetsOf(/\.wasm\.gz$/)
    expect(assetsOf(/\.wasm$/)).toEqual([])
    const path = `/assets/${file.replace(/\.gz$/, '')}`
    const onDisk = readFileSync(join(BUILT, 'assets', file))
    // The page says 8 MB.
    expect(Math.round(onDisk.length / 1e6)).toBe(8)
    const content = gunzipSync(onDisk)
    for (const [accepted, encoding] of [
      ['gzip', 'gzip'],
      ['identity', null],
      ['identity', null],
    ] as const) {
      const response = await get(path, { 'accept-encoding': accepted })
      expect(response.status, response.status === 200 ? '' : await response.clone().text()).toBe(200)
      if (encoding === null) expect(response.headers.get('content-length')).toBe(String(content.length))
      expect(response.headers.get('content-type')).toBe('application/wasm')
      expect(response.headers.get('cache-control')).toContain('immutable')
      expect(response.headers.get('content-encoding')).toBe(encoding)
      expect(content.equals(Buffer.from(await response.arrayBuffer()))).toBe(true)
    }
    const head = await fetch(api.url + path, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(content.length)])
    const tagOf = async (accepted: string) => {
      const { headers } = await fetch(api.url + path, { method: 'HEAD', headers: { 'accept-encoding': accepted } })
      return headers.get('etag') ?? ''
    }
    const [identity, packed] = [await tagOf('identity'), await tagOf('gzip')]
    expect(packed).toBe(identity.replace(/"$/, '-gzip"'))
    for (const tag of [identity, packed])
      expect((await get(path, { 'accept-encoding': 'gzip', 'if-none-match': tag })).status).toBe(304)
    const range = { 'accept-encoding': 'gzip', range: 'bytes=0-3', 'if-range': identity }
    const part = await get(path, range)
    expect([part.status, part.headers.get('content-range'), part.headers.get('content-encoding')]).toEqual([
      206,
      `bytes 0-3/${content.length}`,
      null,
    ])
    expect(Buffer.from(await part.arrayBuffer())).toEqual(content.subarray(0, 4))
    const [worker = ''] = assetsOf(/^duckdb-browser-.*\.js$/)
    const policyOf = async (of: string) => (await get(of)).headers.get('content-security-policy')
    expect(await policyOf(`/assets/${worker}`)).toContain("script-src 'self' 'wasm-unsafe-eval'")
    for (const other of ['/sql', ...assetsOf(/^(?:reader|sql|index)-.*\.js$/).map((name) => `/assets/${name}`)])
      expect(await policyOf(other), other).not.toContain('eval')
  })

  it('stays below 60 kB of script and style for the first view and 150 kB of all pages', () => {
    // The page with SQL loads its own code.
    const files = assetsOf(/\.(?:js|css)$/).filter((name) => !/^(?:sql|engine|reader|duckdb-browser)/.test(name))
    const html = readFileSync(join(BUILT, 'index.html'), 'utf8')
    const size = (names: readonly string[]) =>
      names.reduce((sum, name) => sum + gzipSync(readFileSync(join(BUILT, 'assets', name))).length, 0)
    const first = files.filter((name) => html.includes(name))
    expect(first.length).toBeGreaterThan(1)
    expect(files.length).toBeGreaterThan(first.length)
    expect(size(first)).toBeLessThan(60_000)
    expect(size(files)).toBeLessThan(150_000)
  })
})
