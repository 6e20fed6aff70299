import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { hasBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { noDatabase } from '../support/no-database.ts'

const UNDER = '/some/where'

/** A proxy with the usual configuration: it strips its path prefix and sends no header about it. */
function createProxy(target: string): Server {
  return createServer((requested, response) => {
    const path = requested.url ?? '/'
    if (!path.startsWith(`${UNDER}/`)) return void response.writeHead(404).end()
    const { headers, method } = requested
    const onward = request(target + path.slice(UNDER.length), { headers, method }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.writeHead(502).end())
    requested.pipe(onward)
  })
}

describe.skipIf(!hasBrowser)('explorer behind a proxy with a path prefix', () => {
  let api: TestApi
  let proxy: Server
  let browser: TestBrowser
  let url: string
  beforeAll(async () => {
    const config = parseConfig({})
    api = await startApi({ config, db: noDatabase, registry: loadRegistry(), changeFeed: createHandFeed() })
    proxy = createProxy(api.url)
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${UNDER}`
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    proxy?.closeAllConnections()
    proxy?.close()
    await api?.close()
  })

  it('loads, requests and links under that path only', async () => {
    const requests: string[] = []
    const { page, wrong, close } = await browser.open(`${url}/tokens/a00a15074c647764fac27d6c`, {
      prepare: async (page) => {
        page.on('request', (one) => requests.push(new URL(one.url()).pathname))
        await page.route('**/data/**', (route) => route.fulfill({ json: [] }))
        const stream = { contentType: 'text/event-stream', body: ': nothing changes\n\n' }
        await page.route('**/data/stream', (route) => route.fulfill(stream))
      },
    })
    await page.getByText('No token has this id.').waitFor()
    await page.getByRole('link', { name: 'DAOs', exact: true }).click()
    await page.waitForURL(`${url}/daos`)
    await page.getByRole('heading', { level: 1, name: 'DAOs' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { level: 1, name: 'DAOs' }).waitFor()
    await page.goBack()
    await page.getByText('No token has this id.').waitFor()
    expect(requests.length).toBeGreaterThan(5)
    expect(requests.filter((path) => !path.startsWith(`${UNDER}/`))).toEqual([])
    expect(wrong).toEqual([])
    await close()
  })
})
