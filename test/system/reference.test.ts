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

describe('the pages', () => {
  it.each(['/reference', '/guides', ...GUIDES.map(({ name }) => `/guides/${name}`)])(
    '%s is Markdown as well',
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

  it('tells each failure once', async () => {
    const html = await (await get('/reference')).text()
    expect(html.split('<code>not_acceptable</code>')).toHaveLength(2)
  })

  it('lead from llms.txt to every operation and guide', async () => {
    const text = await (await get('/llms.txt')).text()
    const links = [...text.matchAll(/\]\((?<url>[^)]+)\)/g)].map((match) => new URL(match.groups?.url ?? '').pathname)
    expect(links.length).toBeGreaterThanOrEqual(routes.length + GUIDES.length)
    for (const link of links) await get(link)
  })

  it('have requests in the guides that answer', async () => {
    for (const { name } of GUIDES) {
      const text = await (await get(`/guides/${name}.md`)).text()
      const urls = [...text.matchAll(/https?:\/\/[^\s'"`)]+/g)].map(([url]) => new URL(url))
      // The service's address alone is what a client is made with, and assistants post to theirs.
      const requests = urls.filter(({ pathname }) => pathname !== '/' && pathname !== '/mcp')
      for (const { pathname, search } of requests) await (await get(pathname + search)).arrayBuffer()
    }
  })

  it('are kept by clients', async () => {
    const tag = (await get('/reference')).headers.get('etag') ?? ''
    const again = await fetch(`${demo.url}/reference`, { headers: { 'if-none-match': tag } })
    expect(again.status).toBe(304)
    expect((await fetch(`${demo.url}/reference?x=1`)).status).toBe(400)
  })
})

describe.skipIf(!hasBrowser)('the reference in a browser', () => {
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  it.each(['desktop', 'phone'] as const)('answers with data for every operation on a %s', async (screen) => {
    const { page, wrong, close } = await browser.open(`${demo.url}/reference`, { screen })
    // What has no end is not tried, but followed.
    const tried = routes.filter(({ isEndless }) => !isEndless)
    const forms = new Map<string, ElementHandle | null>()
    // Each is found once, and all are sent before the first is waited for: whatever looks at this long page, or has it
    // laid out anew, looks at all of it.
    for (const { operation } of tried) {
      const form = await page.getByRole('form', { name: `Try ${operation}`, exact: true }).elementHandle()
      await (await form?.$('role=button[name="Send"]'))?.click()
      forms.set(operation, form)
    }
    for (const { operation, mediaType } of tried) {
      const form = forms.get(operation)
      const status = await form?.waitForSelector('output strong')
      const said = await form?.$eval('output', ({ textContent }) => textContent)
      expect(await status?.textContent(), `${operation}: ${said}`).toBe('200')
      if (mediaType === 'application/json') {
        const answer = await (await form?.$$('output pre'))?.at(-1)?.textContent()
        expect(answer, operation).toMatch(/^[[{]/)
        expect(answer, operation).not.toMatch(/^\[\]$|"data": \[\]/)
      } else expect(await (await form?.$('output img'))?.getAttribute('src')).toMatch(/\.svg$/)
    }
    expect(wrong).toEqual([])
    await close()
  })

  it.each(['/docs', '/docs/'])('%s is Swagger UI with every operation', async (path) => {
    const { page, wrong, close } = await browser.open(demo.url + path, { screen: 'desktop' })
    await page.waitForSelector('.opblock')
    expect(await page.locator('.opblock').count()).toBeGreaterThanOrEqual(routes.length)
    expect(wrong).toEqual([])
    await close()
  })

  it.each([
    ['/reference', 'desktop'],
    ['/reference', 'phone'],
    ['/guides/freshness', 'phone'],
  ] as const)('%s is accessible on a %s, light and dark', async (path, screen) => {
    const { page, close } = await browser.open(demo.url + path, { screen, scheme: 'light' })
    expect(await findBarriers(page)).toEqual([])
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await findBarriers(page)).toEqual([])
    await close()
  })

  it('fits a small phone, with each of its guides', async () => {
    const { page, close } = await browser.open(`${demo.url}/reference`, { screen: 'small phone' })
    expect(await isWide(page)).toBe(false)
    for (const path of ['/guides', ...GUIDES.map(({ name }) => `/guides/${name}`)]) {
      await page.goto(demo.url + path)
      expect(await isWide(page), path).toBe(false)
    }
    await close()
  })
})
