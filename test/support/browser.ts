import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const CHROMIUM = '/usr/bin/chromium'
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Whether pages can be tried here; where not, a line says so. */
export const hasBrowser = existsSync(CHROMIUM)
if (!hasBrowser) console.log(`There is no ${CHROMIUM}: pages are not tried in a browser.`)

const SCREENS = {
  desktop: { width: 1280, height: 900 },
  phone: { width: 390, height: 844 },
  'small phone': { width: 320, height: 640 },
}

interface Opened {
  readonly page: Page
  /** Requests to other hosts, and what broke in the page. */
  readonly wrong: readonly string[]
  close(): Promise<void>
}

export interface TestBrowser {
  /**
   * Opens a page at a moment; whatever is asked of another host and whatever breaks in it is noted. `prepare` is called
   * before anything is loaded.
   */
  open(
    url: string,
    options?: {
      screen?: keyof typeof SCREENS
      scheme?: 'light' | 'dark'
      now?: number
      prepare?: (page: Page) => Promise<unknown>
    } & Omit<BrowserContextOptions, 'screen'>,
  ): Promise<Opened>
  close(): Promise<void>
}

export async function startBrowser(): Promise<TestBrowser> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  return {
    open: async (url, { screen = 'desktop', scheme = 'light', now, prepare, ...options } = {}) => {
      const context = await browser.newContext({ viewport: SCREENS[screen], colorScheme: scheme, ...options })
      const page = await context.newPage()
      const wrong: string[] = []
      page.on('request', (request) => {
        const isOwn = request.url().startsWith(new URL('/', url).href) || /^(?:data|blob):/.test(request.url())
        if (!isOwn) wrong.push(request.url())
      })
      page.on('pageerror', (error) => wrong.push(error.message))
      page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()))
      if (now !== undefined) await page.clock.setFixedTime(now)
      await prepare?.(page)
      await page.goto(url)
      return { page, wrong, close: () => context.close() }
    },
    close: () => browser.close(),
  }
}

/** What axe finds wrong with a page for those who cannot see it or use a mouse. */
export async function findBarriers(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> }
    }
    return (await axe.run()).violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
  })
}

/** Whether the page is wider than its screen. */
export const isWide = (page: Page) =>
  page.locator('html').evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
