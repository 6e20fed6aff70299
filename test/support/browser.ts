import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'

/** Debian's packages. The headless shell draws no window, which takes half of Chromium's time. */
const CHROMIUMS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium']
const CHROMIUM = CHROMIUMS.find((file) => existsSync(file))
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Whether a browser is installed; if not, a line on the console says so. */
export const hasBrowser = CHROMIUM !== undefined
if (!hasBrowser) console.log(`There is no ${CHROMIUMS.at(-1)}: pages are not tried in a browser.`)

const SCREENS = {
  desktop: { width: 1280, height: 900 },
  phone: { width: 390, height: 844 },
  'small phone': { width: 320, height: 640 },
}

interface Opened {
  readonly page: Page
  /** Requests to other hosts, and errors in the page. */
  readonly wrong: readonly string[]
  close(): Promise<void>
}

export interface TestBrowser {
  /**
   * Opens a page at a fixed time. Records requests to other hosts and errors in the page. Calls `prepare` before
   * loading.
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
  if (CHROMIUM === undefined) throw new Error('there is no Chromium')
  // There is no graphics card: detecting and emulating one costs time.
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] })
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

/** Returns axe's accessibility violations of a page. */
export async function findBarriers(page: Page): Promise<string[]> {
  await page.evaluate(`globalThis.axe ?? (() => { ${AXE}\n })()`)
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: {
        configure(spec: object): void
        run(options: object): Promise<{ violations: { id: string; nodes: { target: unknown[] }[] }[] }>
      }
    }
    // axe would describe passed rules and read the source of every element.
    axe.configure({ noHtml: true })
    const { violations } = await axe.run({ resultTypes: ['violations'] })
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.target.join(' ')}`)
  })
}

/** Whether a visible text of a table is on the screen without scrolling the table sideways. */
export async function isInView(table: Locator, text: string | RegExp) {
  const shown = table.getByText(text).filter({ visible: true }).first()
  await shown.waitFor()
  const [outer, inner] = [await table.boundingBox(), await shown.boundingBox()]
  return outer !== null && inner !== null && inner.x >= outer.x && inner.x + inner.width <= outer.x + outer.width
}

/** Whether the page is wider than its screen. */
export const isWide = (page: Page) =>
  page.locator('html').evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
