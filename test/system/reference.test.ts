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

  it('list each error code once, and link to it from the reference', async () => {
    const html = await (await get('/docs/errors')).text()
    expect(html.split('<code>not_acceptable</code>')).toHaveLength(2)
    expect(await (await get('/reference')).text()).toContain('href="./docs/errors"')
  })

  it('have a page for each operation, which the overview and the older links lead to', async () => {
    const overview = await (await get('/reference')).text()
    for (const { operation } of routes) {
      expect(overview).toContain(`<li id="${operation}"><a href="./reference/${operation}">`)
      const html = await (await get(`/reference/${operation}`)).text()
      expect(html).toContain(`<a href="../reference/${operation}" aria-current="page">`)
    }
    expect((await fetch(`${demo.url}/reference/unknown`)).status).toBe(404)
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
    for (const path of ['/reference', '/reference/listTokens', '/pages/operations.json']) {
      const { headers } = await get(path)
      expect([path, headers.get('cache-control')]).toEqual([path, 'public, max-age=300'])
      expect(headers.get('content-security-policy')).toContain("default-src 'none'")
      const conditional = { 'if-none-match': headers.get('etag') ?? '' }
      expect((await fetch(demo.url + path, { headers: conditional })).status).toBe(304)
      expect((await fetch(`${demo.url}${path}?x=1`)).status).toBe(400)
    }
  })
})

describe.skipIf(!hasBrowser)('API reference in a browser', () => {
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  it('returns data for every operation, each on a short page', async () => {
    const { page, wrong, close } = await browser.open(`${demo.url}/reference`, { screen: 'phone' })
    const expectShort = async (path: string) => {
      const [elements, height] = await page
        .locator('html')
        .evaluate((html) => [html.querySelectorAll('*').length, html.scrollHeight] as const)
      expect(elements, path).toBeLessThanOrEqual(1_500)
      expect(height, path).toBeLessThanOrEqual(6_000)
    }
    await expectShort('/reference')
    for (const { operation, mediaType, query, isEndless } of routes) {
      await page.goto(`${demo.url}/reference/${operation}`)
      await expectShort(operation)
      expect(await isWide(page), operation).toBe(false)
      // Streams have no end, and the demo does not serve the answers of providers: their forms are not sent.
      if (isEndless === true || mediaType === 'application/octet-stream') continue
      const form = page.getByRole('form', { name: `Try ${operation}`, exact: true })
      await form.getByRole('button', { name: 'Send' }).click()
      const output = form.locator('output')
      const status = await output.locator('strong').textContent()
      expect(status, `${operation}: ${await output.textContent()}`).toBe('200')
      // The example address and proposal may have no records.
      const isOfExample = query.address !== undefined || query.proposal !== undefined
      if (mediaType === 'application/json') {
        const answer = await output.locator('pre').last().textContent()
        expect(answer, operation).toMatch(/^[[{]/)
        if (!isOfExample) expect(answer, operation).not.toMatch(/^\[\]$|"data": \[\]/)
      } else if (mediaType === 'image/svg+xml')
        expect(await output.locator('img').getAttribute('src')).toMatch(/\.svg$/)
    }
    expect(wrong).toEqual([])
    await close()
  })

  it('opens an operation by an older link, and filters the links beside it', async () => {
    const { page, wrong, close } = await browser.open(`${demo.url}/reference#listTokens`, { screen: 'desktop' })
    await page.waitForURL('**/reference/listTokens')
    const side = page.getByRole('navigation', { name: 'Documentation' })
    const current = side.locator('[aria-current="page"]')
    expect(await current.getAttribute('href')).toBe('../reference/listTokens')
    await page.goto(`${demo.url}/reference/listAlerts`)
    // The links are longer than the screen.
    const { y } = (await current.boundingBox()) ?? { y: Number.NaN }
    expect(y).toBeGreaterThan(0)
    expect(y).toBeLessThan(page.viewportSize()?.height ?? 0)
    const filter = side.getByRole('searchbox', { name: 'Filter the links' })
    await filter.fill('no such operation')
    await side.getByText('No match.').waitFor()
    expect(await side.getByRole('link').count()).toBe(0)
    await filter.fill('gettokenpricehistory')
    expect(await side.getByRole('link').count()).toBe(1)
    await filter.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Price, volume, market cap' }).waitFor()
    expect(wrong).toEqual([])
    await close()
  })

  it('opens an operation from the search of the page', async () => {
    const { page, wrong, close } = await browser.open(`${demo.url}/reference`, { screen: 'desktop' })
    await page.keyboard.press('Control+k')
    const box = page.getByRole('combobox', { name: /^Search/ })
    await box.fill('coverage')
    await page.getByRole('option', { name: 'GET /data/status/coverage' }).click()
    await page.waitForURL('**/reference/getCoverage')
    expect(wrong).toEqual([])
    await close()
  })

  it('shows an operation without JavaScript', async () => {
    const { page, wrong, close } = await browser.open(`${demo.url}/reference`, { javaScriptEnabled: false })
    await page.getByRole('main').getByRole('link', { name: 'Live tokens with their financial data' }).click()
    await page.getByRole('heading', { level: 1, name: 'Live tokens' }).waitFor()
    await page.getByRole('heading', { level: 2, name: 'Parameters' }).waitFor()
    // A browser alone would send the empty parameters too.
    await expect.poll(() => page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true)
    await page.getByRole('link', { name: 'Open an example answer' }).click()
    await page.waitForURL('**/data/tokens')
    expect(await page.locator('body').textContent()).toContain('financialData')
    expect(wrong).toEqual([])
    await close()
  })

  it('says on each page that the numbers are simulated', async () => {
    for (const path of ['/reference', '/reference/listTokens', '/guides', '/guides/formats'])
      expect(await (await get(path)).text()).toContain('<strong>DEMO</strong> – all numbers here are simulated.')
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
    ['/reference/getDaoProfile', 'desktop', 'dark'],
    ['/reference/listTokens', 'phone', 'light'],
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
