import type { Page } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createHandFeed, startApi, type TestApi } from './api.ts'
import { startBrowser, type TestBrowser } from './browser.ts'
import { DEMO_NOW, type Demo, startDemo } from './demo.ts'
import { noDatabase } from './no-database.ts'

/** The time in the browser. */
export const NOW = Date.parse('2024-03-10T12:02:00Z')
export const ID = 'a00a15074c647764fac27d6c'

/** A token as returned by its list. */
export const TOKEN = {
  ...{ _id: ID, name: 'Sample', symbol: 'SMP', contractAddress: '0x00', decimal: 18, live: true, dao: ID, cmcId: null },
  ...{ chain: ID, livePrice: true, chart24h: '' },
  financialData: { price: 1.5, marketCap: null, tvl: 0, lastUpdated: '2024-03-10T12:00:00.000Z' },
}

/** The response of each path, or a function that creates it. */
export type Answers = Readonly<Record<string, unknown>>

/** Serves the test's responses to the page; all other paths are not found. */
export const toPrepare = (answers: Answers) => async (page: Page) => {
  await page.clock.install({ time: NOW })
  await page.route('**/data/**', (route) => {
    const { pathname } = new URL(route.request().url())
    const response = answers[pathname.slice('/data/'.length)]
    if (pathname === '/data/stream' && response === undefined) return route.abort()
    return typeof response === 'function' ? response(route) : route.fulfill({ json: response ?? [] })
  })
}

export interface ServedExplorer {
  /** Opens a path of the page, or another URL. */
  readonly open: TestBrowser['open']
  toUrl(path: string): string
}

/** A browser and the page as the API serves it, for the tests of one `describe`. The tests provide the responses. */
export function serveExplorer(): ServedExplorer {
  let api: TestApi
  let browser: TestBrowser
  beforeAll(async () => {
    const config = parseConfig({})
    api = await startApi({ config, db: noDatabase, registry: loadRegistry(), changeFeed: createHandFeed() })
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await api?.close()
  })
  const toUrl = (path: string) => new URL(path, api.url).href
  return { toUrl, open: (path, options) => browser.open(toUrl(path), options) }
}

export interface ServedDemo extends ServedExplorer {
  /** The JSON of an answer of the API. */
  get<T>(path: string): Promise<T>
}

/** A browser at the demo's fixed time, and the page over the demo's data, for the tests of one `describe`. */
export function serveDemo(): ServedDemo {
  let demo: Demo
  let browser: TestBrowser
  beforeAll(async () => {
    demo = await startDemo()
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await demo?.close()
  })
  const toUrl = (path: string) => demo.url + path
  return {
    toUrl,
    open: (path, options) => browser.open(toUrl(path), { now: DEMO_NOW, ...options }),
    get: async <T>(path: string) => (await (await fetch(toUrl(path))).json()) as T,
  }
}

/** The card with this heading. */
export const region = (page: Page, name: string | RegExp) => page.getByRole('region', { name, exact: true })

/** Waits until nothing on the page is loading. */
export const settled = (page: Page) => page.locator('.loading, [aria-busy=true]').first().waitFor({ state: 'detached' })
