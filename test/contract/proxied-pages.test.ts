import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { GUIDES } from '../../api/pages/guides.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'

const PREFIX = '/under/a/path'
const PUBLIC = 'https://data.example.org/under/a/path'

let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
/** Serves the API under a path prefix that the API does not know. */
let proxy: Server
let base: string
beforeAll(async () => {
  const plain = createTestConfig()
  const config = { ...plain, api: { ...plain.api, publicUrl: PUBLIC } }
  database = await createApiDatabase(config)
  api = await startApi({ ...database, config, changeFeed: createHandFeed() })
  proxy = createServer(async (request, response) => {
    const { url = '' } = request
    if (!url.startsWith(`${PREFIX}/`)) return void response.writeHead(404).end()
    const answer = await fetch(api.url + url.slice(PREFIX.length))
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
    response.end(Buffer.from(await answer.arrayBuffer()))
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${PREFIX}`
})
afterAll(async () => {
  proxy?.close()
  await api?.close()
  await database?.drop()
})

const get = async (path: string) => {
  const response = await fetch(base + path)
  expect([path, response.status]).toEqual([path, 200])
  return response.text()
}

const PAGES = ['/reference', '/reference/listTokens', '/guides', ...GUIDES.map(({ name }) => `/guides/${name}`)]

describe('the documentation behind a proxy with a path prefix', () => {
  it('links only to existing pages under the prefix', async () => {
    const found = new Set<string>()
    for (const path of [...PAGES, '/docs', '/docs/', '/docs/errors']) {
      const html = await get(path)
      const tags = html.match(/<[^<>]+>/g)?.filter((tag) => !tag.startsWith('<base ')) ?? []
      const root = new URL(/<base href="([^"]+)">/.exec(html)?.[1] ?? '', base + path)
      const links = tags.flatMap((tag) => [...tag.matchAll(/ (?:href|src|action|data-path)="([^"#][^"]*)"/g)])
      for (const [, link = ''] of links) {
        const { href, origin } = new URL(link.replaceAll('&amp;', '&'), root)
        if (origin !== new URL(base).origin) continue
        expect(href, `${link} on ${path}`).toMatch(new RegExp(`^${base}/`))
        found.add(href.slice(base.length).replace(/#.*/, ''))
      }
    }
    const linked = [
      ...PAGES.filter((path) => path !== '/guides'),
      '/pages/side.js',
      '/pages/try.js',
      '/docs/assets/swagger-ui.css',
    ]
    expect([...found]).toEqual(expect.arrayContaining(linked))
    // Forms link to the paths of operations, which need parameters.
    const full = [...found].filter((path) => !path.startsWith('/data/') && !/%7B|[{]/.test(path))
    for (const path of full) await get(path)
  })

  it('uses the public address in its Markdown', async () => {
    for (const path of PAGES) {
      const text = await get(`${path}.md`)
      expect(text, path).not.toMatch(/\]\(\//)
    }
    expect(await get('/guides.md')).toContain(`](${PUBLIC}/guides/formats)`)
    expect(await get('/reference.md')).toContain(`](${PUBLIC}/guides/paging)`)
  })
})
