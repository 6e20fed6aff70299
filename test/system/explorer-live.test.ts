import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import indexPoints from '../../workers/jobs/index-points.ts'
import marketCap from '../../workers/jobs/market-cap.ts'
import prices from '../../workers/jobs/prices.ts'
import { hasBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const HOUR = 3_600_000
const NOW = Date.parse('2026-05-06T07:05:09Z')
const HOURS = 24

interface Token {
  readonly _id: string
  readonly financialData: Readonly<Record<string, number | string | null>>
}

/** Layout shifts in a page without user input, from now on. */
const watchShifts = (page: Page) =>
  page.evaluate(`(() => {
    globalThis.shifts = []
    new PerformanceObserver((list) => {
      for (const { value, sources } of list.getEntries())
        globalThis.shifts.push(value + ' ' + sources.map(({ node, previousRect, currentRect }) =>
          [node?.outerHTML?.slice(0, 200) ?? node?.textContent, previousRect.y, currentRect.y].join(' ')).join(' '))
    }).observe({ type: 'layout-shift' })
  })()`)
const shiftsOf = (page: Page) => page.evaluate<string[]>('globalThis.shifts')

describe.skipIf(!hasBrowser)('explorer page that stays open', () => {
  let pipeline: ServedPipeline
  let browser: TestBrowser
  beforeAll(async () => {
    pipeline = await createServedPipeline({ registry: loadRegistry(), now: NOW })
    browser = await startBrowser()
    await tick()
  })
  afterAll(async () => {
    await browser?.close()
    await pipeline?.close()
  })

  const tick = async () => {
    for (const job of [prices, marketCap, indexPoints]) await pipeline.collect(job)
  }
  const open = async (path: string) => {
    const opened = await browser.open(pipeline.url + path, { now: NOW })
    await opened.page.locator('.live.live').waitFor()
    await opened.page.locator('.loading, [aria-busy=true]').first().waitFor({ state: 'detached' })
    return opened
  }
  const list = async (query: string) => (await (await fetch(`${pipeline.url}/data/tokens?${query}`)).json()) as Token[]
  /** The token of each row, with its numbers in full precision. Rows far from the screen have no numbers. */
  const rows = (page: Page) =>
    page.locator('tbody tr').evaluateAll((all) =>
      all.map((row) => ({
        id: row.querySelector('a')?.getAttribute('href')?.slice('tokens/'.length),
        values: [...row.querySelectorAll('td.number')].map((cell) => cell.querySelector('data')?.value ?? null),
      })),
    )
  // In the order of the page's columns.
  const MEMBERS = ['price', 'percentChange24h', 'marketCap', 'percentChange7d', 'percentChange30d'] as const
  const toRow = ({ _id, financialData }: Token) => ({
    id: _id,
    values: [...MEMBERS, 'volume24h', 'tvl'].map((member) => {
      const value = financialData[member] ?? null
      return value === null ? null : String(value)
    }),
  })
  /** The rows that the page should show, without the numbers of rows that are far from the screen. */
  const toShown = (shown: Awaited<ReturnType<typeof rows>>, all: readonly Token[]) => {
    const far = new Set(shown.filter(({ values }) => values.length === 0).map(({ id }) => id))
    return all.map(toRow).map((row) => (far.has(row.id) ? { ...row, values: [] } : row))
  }
  const byId = <T extends { id: string | undefined }>(all: T[]) =>
    all.toSorted((a, b) => String(a.id).localeCompare(String(b.id)))

  it('updates numbers for a day without a layout shift', { timeout: 300_000 }, async () => {
    const uni = pipeline.tokenOf('UNI').id
    const query = 'sort=-financialData.marketCap'
    // A chart has at least two points.
    pipeline.clock.now = NOW + HOUR
    await tick()
    const table = await open(`/tokens?${query}`)
    const token = await open(`/tokens/${uni}?range=24h`)
    const overview = await open('/')
    const opened = [table, token, overview]
    await expect.poll(async () => (await rows(table.page)).length).toBe(100)
    const before = await rows(table.page)
    await table.page.locator('tbody tr:nth-child(30) a').focus()
    await table.page.evaluate('scrollTo(0, 700)')
    await token.page.locator('.chart[data-drawn]').first().focus()
    for (const { page } of opened) await watchShifts(page)
    for (let hour = 2; hour <= HOURS; hour += 1) {
      pipeline.clock.now = NOW + hour * HOUR
      await tick()
    }
    const grants = await list(`${query}&limit=100`)
    const isNewest = async () => {
      const shown = await rows(table.page)
      expect(byId(shown)).toEqual(byId(toShown(shown, grants)))
    }
    await expect.poll(() => isNewest().then(() => 'newest', String)).toBe('newest')
    const after = await rows(table.page)
    const isNear = ({ values }: (typeof before)[number]) => values.length > 0
    const earlier = new Map(before.filter(isNear).map(({ id, values }) => [id, values[0]]))
    const compared = after.filter((row) => isNear(row) && earlier.has(row.id))
    expect(compared.length).toBeGreaterThan(10)
    const isChanged = ({ id, values }: (typeof before)[number]) => values[0] !== earlier.get(id)
    expect(compared.filter(isChanged).length).toBeGreaterThan(0.9 * compared.length)
    const [one] = await list(`id=${uni}`)
    const price = token.page.locator('.title .large data')
    await expect.poll(() => price.getAttribute('value')).toBe(String(one?.financialData.price))
    for (const { page, wrong } of opened) {
      expect(await shiftsOf(page), page.url()).toEqual([])
      expect(wrong).toEqual([])
    }
    expect(await table.page.evaluate('scrollY')).toBe(700)
    const focused = 'document.activeElement.getAttribute("href")'
    expect(await table.page.evaluate(focused)).toBe(`tokens/${before[29]?.id}`)
    expect(await token.page.evaluate('document.activeElement.className')).toBe('chart')
    // Rows stay in place while the user reads, and are sorted again on request.
    const button = table.page.getByRole('button', { name: 'Order changed: sort again' })
    const isSorted = async () => {
      if (await button.isVisible()) await button.click()
      const shown = await rows(table.page)
      expect(shown).toEqual(toShown(shown, grants))
    }
    await expect.poll(() => isSorted().then(() => 'sorted', String)).toBe('sorted')
    for (const { close } of opened) await close()
  })

  it('requests each changed response once, and no other', async () => {
    const { page, close } = await open(`/tokens/${pipeline.tokenOf('UNI').id}?range=24h`)
    const requests: string[] = []
    page.on('request', (request) => requests.push(new URL(request.url()).pathname))
    await pipeline.collect(indexPoints)
    await pipeline.collect(prices)
    const expected = ['dex-data', 'historic-financial', 'holders'].map((name) => `/data/tokens/${name}`)
    const all = ['/data/daos/governance/summary', '/data/tokens', ...expected]
    await expect.poll(() => requests.toSorted()).toEqual(all)
    await close()
  })

  it('shows a lost stream, polls until it is back, and then loads missed changes', async () => {
    const { page, close } = await open(`/tokens/${pipeline.tokenOf('UNI').id}?range=24h`)
    const shown = page.locator('.title .large data')
    const isNewest = async () => {
      const [one] = await list(`id=${pipeline.tokenOf('UNI').id}`)
      await expect.poll(() => shown.getAttribute('value')).toBe(String(one?.financialData.price))
    }
    const hide = (state: string) =>
      page.evaluate(`(() => {
        Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))
      })()`)
    await hide('hidden')
    pipeline.clock.now += HOUR
    await tick()
    await page.clock.setFixedTime(NOW + HOUR)
    await hide('visible')
    await page.locator('.live.live').waitFor()
    await isNewest()
    await page.route('**/data/stream', (route) => route.fulfill({ status: 429, body: '' }))
    await hide('hidden')
    await hide('visible')
    await page.locator('.live.refused').waitFor()
    await close()
  })
  it.each([
    ['hears what it missed', () => {}, false],
    ['asks for everything where that is not known any more', () => pipeline.forget(), true],
  ])('after a lost stream it %s', async (_what, meanwhile, isEverything) => {
    const uni = pipeline.tokenOf('UNI').id
    const { page, close } = await open(`/tokens/${uni}?range=24h`)
    await page.route('**/data/stream', (route) => route.abort())
    pipeline.drop()
    await page.locator('.live.lost').waitFor()
    pipeline.clock.now += HOUR
    await tick()
    meanwhile()
    const requestedKeys = new Set<string>()
    page.on('request', (request) => requestedKeys.add(new URL(request.url()).pathname))
    await page.unroute('**/data/stream')
    await page.locator('.live.live').waitFor()
    const [one] = await list(`id=${uni}`)
    const price = page.locator('.title .large data')
    await expect.poll(() => price.getAttribute('value')).toBe(String(one?.financialData.price))
    await expect.poll(() => requestedKeys.has('/data/tokens/dex-data')).toBe(true)
    // No tick changes chains.
    expect(requestedKeys.has('/data/chains')).toBe(isEverything)
    await close()
  })
})
