import type { ElementHandle } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { GUIDES } from '../../api/pages/guides.ts'
import { routes } from '../../api/routes.ts'
import { findBarriers, hasBrowser, isWide, startBrowser, type TestBrowser } from '../support/browser.ts'
import { type Demo, startDemo } from '../support/demo.ts'

let demo: Demo
beforeAll(async () => {
  demo = await startDemo()
})
afterAll(() => demo?.close())

const get = async (path: string) => {
  const response = await fetch(demo.url + path)
  expect(response.status, path).toBe(200)
  return response
}

describe('documentation pages', () => {
  it.each(['/reference', '/guides', ...GUIDES.map(({ name }) => `/guides/${name}`)])(
    'serve %s as Markdown too',
    async (path) => {
      const page = await get(path)
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
      expect(await page.text()).not.toMatch(/(?:src|action)="(https?:)?\/\//)
      const markdown = await get(`${path}.md`)
      expect(markdown.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
      const text = await markdown.text()
      expect(text).toMatch(/^# /)
      expect(text).not.toContain('{base}')
    },
  )

  it('list each error code once', async () => {
    const html = await (await get('/reference')).text()
    expect(html.split('<code>not_acceptable</code>')).toHaveLength(2)
  })

  it('link every operation and guide from llms.txt', async () => {
    const text = await (await get('/llms.txt')).text()
    const links = [...text.matchAll(/\]\((?<url>[^)]+)\)/g)].map((match) => new URL(match.groups?.url ?? '').pathname)
    expect(links.length).toBeGreaterThanOrEqual(routes.length + GUIDES.length)
    for (const link of links) await get(link)
  })

  it('have no failing request in the guides', async () => {
    for (const { name } of GUIDES) {
      const text = await (await get(`/guides/${name}.md`)).text()
      const urls = [...text.matchAll(/https?:\/\/[^\s'"`)]+/g)].map(([url]) => new URL(url))
      // The base URL alone configures a client, and /mcp accepts POST only.
      const requests = urls.filter(({ pathname }) => pathname !== '/' && pathname !== '/mcp')
      for (const { pathname, search } of requests) await (await get(pathname + search)).arrayBuffer()
    }
  })

  it('are cached by clients', async () => {
    const tag = (await get('/reference')).headers.get('etag') ?? ''
    const repeated = await fetch(`${demo.url}/reference`, { headers: { 'if-none-match': tag } })
    expect(repeated.status).toBe(304)
    expect((await fetch(`${demo.url}/reference?x=1`)).status).toBe(400)
  })
})

describe.skipIf(!hasBrowser)('API reference in a browser', () => {
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  it('returns data for every operation', async () => {
    const { page, wrong, close } = await browser.open(`${demo.url}/reference`, { screen: 'desktop' })
    // Streams have no end, and the demo does not serve the answers of providers: their forms are not sent.
    const tried = routes.filter(({ isEndless, mediaType }) => !isEndless && mediaType !== 'application/octet-stream')
    const forms = new Map<string, ElementHandle | null>()
    // Finds all forms first and sends all of them before it waits: each lookup or layout of this long page covers the whole
    // page.
    for (const { operation } of tried) {
      const form = await page.getByRole('form', { name: `Try ${operation}`, exact: true }).elementHandle()
      await (await form?.$('role=button[name="Send"]'))?.click()
      forms.set(operation, form)
    }
    for (const { operation, mediaType, query } of tried) {
      const form = forms.get(operation)
      const status = await form?.waitForSelector('output strong')
      const said = await form?.$eval('output', ({ textContent }) => textContent)
      expect(await status?.textContent(), `${operation}: ${said}`).toBe('200')
      // The example address and proposal may have no records.
      const isOfExample = query.address !== undefined || query.proposal !== undefined
      if (mediaType === 'application/json') {
        const answer = await (await form?.$$('output pre'))?.at(-1)?.textContent()
        expect(answer, operation).toMatch(/^[[{]/)
        if (!isOfExample) expect(answer, operation).not.toMatch(/^\[\]$|"data": \[\]/)
      } else if (mediaType === 'image/svg+xml')
        expect(await (await form?.$('output img'))?.getAttribute('src')).toMatch(/\.svg$/)
    }
    expect(wrong).toEqual([])
    await close()
  })

  it.each(['/docs', '/docs/'])('shows every operation in Swagger UI at %s', async (path) => {
    const { page, wrong, close } = await browser.open(demo.url + path, { screen: 'desktop' })
    await page.waitForSelector('.opblock')
    expect(await page.locator('.opblock').count()).toBeGreaterThanOrEqual(routes.length)
    expect(wrong).toEqual([])
    await close()
  })

  // The colours depend on the scheme, the layout on the screen: each is covered once.
  it.each([
    ['/reference', 'desktop', 'light'],
    ['/reference', 'phone', 'dark'],
    ['/guides/freshness', 'phone', 'light'],
    ['/guides/freshness', 'phone', 'dark'],
  ] as const)('has no accessibility errors in %s on a %s in %s', async (path, screen, scheme) => {
    const { page, close } = await browser.open(demo.url + path, { screen, scheme })
    expect(await findBarriers(page)).toEqual([])
    await close()
  })

  it('shares the header, the font and the chosen theme with the page', async () => {
    const { page, wrong, close } = await browser.open(demo.url)
    const pages = page.getByRole('navigation', { name: 'Pages' }).getByRole('link')
    const linksOf = () => pages.evaluateAll((all) => all.map((link) => [link.textContent, Reflect.get(link, 'href')]))
    await pages.first().waitFor()
    const links = await linksOf()
    const fontOf = () => page.evaluate('getComputedStyle(document.body).fontFamily')
    const font = await fontOf()
    const colorOf = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
    for (const theme of ['light', 'dark']) {
      await page.getByRole('button', { name: /^Colours: / }).click()
      await page.locator(`html[data-theme="${theme}"]`).waitFor()
    }
    const dark = await colorOf()
    await page.goto(`${demo.url}/guides/freshness`)
    expect(await linksOf()).toEqual(links)
    expect(await fontOf()).toBe(font)
    expect(await page.evaluate(`document.fonts.check('15px Inter')`)).toBe(true)
    expect(await colorOf()).toBe(dark)
    await page.getByRole('button', { name: 'Colours: dark. Change' }).click()
    await page.getByRole('button', { name: 'Colours: system. Change' }).waitFor()
    expect(await colorOf()).not.toBe(dark)
    await page.goto(demo.url)
    await page.locator('html[data-theme="system"]').waitFor()
    expect(wrong).toEqual([])
    await close()
  })

  it('fits a small phone, like each guide', async () => {
    const { page, close } = await browser.open(`${demo.url}/reference`, { screen: 'small phone' })
    expect(await isWide(page)).toBe(false)
    for (const path of ['/guides', ...GUIDES.map(({ name }) => `/guides/${name}`)]) {
      await page.goto(demo.url + path)
      expect(await isWide(page), path).toBe(false)
    }
    await close()
  })
})
