import type { Page, Route } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { findBarriers, hasBrowser, type TestBrowser } from '../support/browser.ts'
import { ID, NOW, serveExplorer, TOKEN } from '../support/explorer-page.ts'

const HOUR = 3_600_000

/** A day of hourly values: none from the 8th to the 15th hour and around the 20th. */
const isObserved = (hour: number) => !(hour >= 8 && hour <= 15) && hour !== 19 && hour !== 21
const VALUES = Array.from({ length: 24 }, (_, hour) => (isObserved(hour) ? 10 + Math.sin(hour) : null))

const toPoint = (value: number | null, hour: number) => {
  const timestamp = new Date(NOW - 24 * HOUR + hour * HOUR).toISOString()
  const observed = { price: value, volume_24h: null, market_cap: null, total_supply: null, circulating_supply: null }
  return { timestamp, quote: { USD: { ...observed, timestamp: value === null ? null : timestamp } } }
}
const toCandle = (value: number | null, hour: number) => {
  const existing = { open: value, high: value && value + 1, low: value && value - 1, close: value && value + 0.5 }
  return { timestamp: toPoint(value, hour).timestamp, ...existing, observations: value && 1 }
}

/** A range of hours of the day. */
const toRange = (from: number, to: number) => ({
  from: new Date(NOW - 24 * HOUR + from * HOUR).toISOString(),
  to: new Date(NOW - 24 * HOUR + to * HOUR).toISOString(),
})

/** The token as its charts have it: no value is newer than their last point. */
const CHARTED = { ...TOKEN, financialData: { ...TOKEN.financialData, lastUpdated: '2024-03-01T00:00:00.000Z' } }

const ANSWERS: Readonly<Record<string, unknown>> = {
  '/data/status': { mode: 'live', upstream: 'Live providers.', datasets: [] },
  '/data/tokens': [CHARTED],
  '/data/chains': [],
  '/data/daos/governance/summary': [{ _id: ID, proposals: 3 }],
  '/data/daos/governance/proposals': [
    { _id: ID, title: 'Raise the fee', endsAt: new Date(NOW - 22.5 * HOUR).toISOString() },
    { _id: ID, title: 'Before the range', endsAt: new Date(NOW - 30 * HOUR).toISOString() },
    { _id: ID, title: 'Still open', endsAt: new Date(NOW + HOUR).toISOString() },
  ],
  '/data/status/coverage': [
    { entity: ID, ...toRange(-24, 8), state: 'covered', provider: 'sample', interval: '5m', reason: null },
    { entity: ID, ...toRange(8, 16), state: 'failed', provider: 'sample', interval: null, reason: 'it answered 500' },
    { entity: ID, ...toRange(16, 18), state: 'coarser', provider: 'sample', interval: '1h', reason: 'only hours' },
  ],
  '/data/changes': [
    { dataset: 'prices', entity: ID, ...toRange(2, 4), at: new Date(NOW - HOUR).toISOString(), job: 'prices-history' },
    {
      dataset: 'prices',
      entity: ID,
      ...toRange(-99, 99),
      at: new Date(NOW - HOUR).toISOString(),
      job: 'prices-history',
    },
  ],
  '/data/tokens/historic-financial': { name: 'Sample', id: ID, data: VALUES.map(toPoint) },
  '/data/tokens/historic-dex-ohlcv': { name: 'Sample', id: ID, data: [] },
  '/data/tokens/historic-ohlc': { name: 'Sample', id: ID, data: VALUES.map(toCandle) },
}

const answer = (route: Route) => {
  const { pathname } = new URL(route.request().url())
  if (pathname === '/data/stream') return route.continue()
  const existing = ANSWERS[pathname]
  return existing === undefined ? route.fulfill({ json: [] }) : route.fulfill({ json: existing })
}

/** For each column of the chart's canvas, how many of its pixels have one of the data colours. */
const countColumns = (page: Page) =>
  page.evaluate<number[]>(`(() => {
    const chart = document.querySelector('.chart[data-drawn]')
    const canvas = chart.querySelector('canvas')
    const style = getComputedStyle(chart)
    const colors = ['--line-1', '--up', '--down'].map((name) => style.getPropertyValue(name).match(/[\\d.]+/g).map(Number))
    const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    const isData = (at) => data[at + 3] > 100 && colors.some((color) => color.every((part, i) => Math.abs(data[at + i] - part) < 40))
    return Array.from({ length: width }, (_, x) =>
      Array.from({ length: height }, (_, y) => (y * width + x) * 4).filter(isData).length)
  })()`)

describe.skipIf(!hasBrowser)('chart of the explorer', () => {
  const explorer = serveExplorer()

  const open = async (query: string, options: Parameters<TestBrowser['open']>[1] = {}) => {
    const prepare = (page: Page) => page.route('**/data/**', answer)
    const opened = await explorer.open(`/tokens/${ID}?${query}`, { now: NOW, prepare, ...options })
    await opened.page.locator('.chart[data-drawn]').first().waitFor()
    return opened
  }

  it.each(['price', 'candles'])('draws %s with a gap for missing values and a dot for a lone value', async (metric) => {
    const { page, wrong, close } = await open(`metric=${metric}&range=24h&interval=1h`)
    const columns = await countColumns(page)
    const drawn = columns.flatMap((count, x) => (count > 0 ? [x] : []))
    const [remaining = 0, right = 0] = [drawn[0], drawn.at(-1)]
    const around = (hour: number) => {
      const x = Math.round(remaining + ((right - remaining) * hour) / (VALUES.length - 1))
      return columns.slice(x - 6, x + 7).reduce((sum, count) => sum + count, 0)
    }
    expect(right - remaining).toBeGreaterThan(300)
    const seen = VALUES.map((_, hour) => around(hour) > 0)
    expect(seen).toEqual(VALUES.map((value) => value !== null))
    // A line connects two points, but two candles have a gap between them.
    expect(around(4.5) > 0).toBe(metric === 'price')
    await page.getByText('10 of 24 points missing.').waitFor()
    expect(wrong).toEqual([])
    await close()
  })

  it('has a text description and a table of its values', async () => {
    const { page, close } = await open('metric=price&range=24h&interval=1h')
    const words = await page.locator('.chart').first().getAttribute('aria-label')
    expect(words).toContain('24 points from 9 Mar 2024, 12:02 UTC to 10 Mar 2024, 11:02 UTC, 10 without a value')
    expect(words).toContain('highest $10.91')
    await page.getByRole('button', { name: 'Table' }).first().click()
    const rows = page.getByRole('region', { name: /^Table: .*newest first/ }).locator('tbody tr')
    expect(await rows.count()).toBe(24)
    expect(await rows.nth(2).textContent()).toContain('not known')
    await close()
  })

  it('distinguishes unknown values from zero', async () => {
    const { page, close } = await open('range=24h')
    const numbers = page.getByRole('region', { name: 'Numbers', exact: true })
    const textOf = (name: string) =>
      numbers
        .locator('div', { hasText: new RegExp(`^${name}`) })
        .locator('dd')
        .textContent()
    expect(await textOf('Market cap')).toBe('not known')
    expect(await textOf('Value locked')).toBe('$0')
    await page.getByText('No provider reports the holders of this token').waitFor()
    expect(await page.getByText('DEMO', { exact: true }).count()).toBe(0)
    await close()
  })

  it('updates the price without a reload if the stream is unavailable', async () => {
    const { page, close } = await explorer.open(`/tokens/${ID}?range=24h`, {
      prepare: async (page) => {
        await page.clock.install({ time: NOW })
        await page.route('**/data/**', answer)
        await page.route('**/data/stream', (route) => route.abort())
      },
    })
    const price = page.locator('.title .large')
    await price.getByText('$1.50').waitFor()
    const financialData = { ...TOKEN.financialData, price: 1.75, lastUpdated: new Date(NOW).toISOString() }
    const newer = { ...TOKEN, financialData }
    await page.route('**/data/tokens?*', (route) => route.fulfill({ json: [newer] }))
    await page.clock.fastForward(31_000)
    await price.getByText('$1.75').waitFor()
    // The chart ends with the same value.
    await expect
      .poll(() => page.locator('output.point').first().textContent())
      .toBe('10 Mar 2024, 12:02 UTC: Price $1.75')
    await close()
  })

  it('keeps the zoom while the chart stays the same, and resets it for another range', async () => {
    // Each range has no values in its middle.
    const answerRange = (route: Route) => {
      const { searchParams } = new URL(route.request().url())
      const start = Date.parse(searchParams.get('start') ?? '')
      const step = searchParams.get('interval') === '5m' ? HOUR / 12 : HOUR / 2
      const data = Array.from({ length: 288 }, (_, at) => {
        const timestamp = new Date(start + at * step).toISOString()
        return { timestamp, quote: { USD: { price: at > 60 && at < 230 ? null : 10 + Math.sin(at), timestamp } } }
      })
      return route.fulfill({ json: { name: 'Sample', id: ID, data } })
    }
    const { page, close } = await explorer.open(`/tokens/${ID}?range=7d`, {
      prepare: async (page) => {
        await page.clock.install({ time: NOW })
        await page.route('**/data/**', answer)
        await page.route('**/data/stream', (route) => route.abort())
        await page.route('**/historic-financial?*', answerRange)
      },
    })
    const chart = page.locator('.chart[data-drawn]').first()
    await chart.waitFor()
    /** The share of the chart's width that has data. */
    const share = async () => {
      const columns = await countColumns(page)
      return columns.filter((count) => count > 0).length / columns.length
    }
    const full = await share()
    expect(full).toBeLessThan(0.5)
    const { x = 0, y = 0, width = 0 } = (await chart.boundingBox()) ?? {}
    await page.mouse.move(x + width * 0.1, y + 100)
    await page.mouse.down()
    await page.mouse.move(x + width * 0.16, y + 100, { steps: 5 })
    await page.mouse.up()
    await expect.poll(share, { timeout: 10_000 }).toBeGreaterThan(0.8)
    const newer = page.waitForResponse(
      (response) =>
        Date.parse(new URL(response.url()).searchParams.get('start') ?? '') > NOW - 7 * 24 * HOUR + HOUR / 2,
    )
    await page.clock.fastForward(HOUR)
    await newer
    await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' })
    expect(await share()).toBeGreaterThan(0.8)
    await page.getByRole('button', { name: '24h', exact: true }).click()
    await expect.poll(share, { timeout: 10_000 }).toBeCloseTo(full, 1)
    await close()
  })

  it('shows the value and the events under the cursor, and lists the events of the range', async () => {
    const { page, wrong, close } = await open('metric=price&range=24h&interval=1h')
    const chart = page.locator('.chart[data-drawn]').first()
    const tip = chart.locator('.tip')
    expect(await tip.isVisible()).toBe(false)
    const { x = 0, y = 0, width = 0 } = (await chart.boundingBox()) ?? {}
    await page.mouse.move(x + width / 2, y + 100)
    await tip.getByText('not known').waitFor()
    await page.mouse.move(x + width / 2, y - 50)
    await expect.poll(() => tip.isVisible()).toBe(false)
    await chart.focus()
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    await tip.getByText('▲ Vote ended: Raise the fee').waitFor()
    await tip.getByText('9 Mar 2024, 13:02 UTC').waitFor()
    const announced = await page.locator('output.point').first().textContent()
    expect(announced).toContain('13:02 UTC: Price $10.84. Vote ended: Raise the fee')
    await page.keyboard.press('Escape')
    await expect.poll(() => tip.isVisible()).toBe(false)
    await chart.press('Home')
    for (let hour = 0; hour < 8; hour += 1) await page.keyboard.press('ArrowRight')
    await tip.getByText('▬ No data until 10 Mar 2024, 04:02 UTC: it answered 500').waitFor()
    await page.getByText('3 events').click()
    await page
      .getByText(
        'Values from 9 Mar 2024, 14:02 UTC to 9 Mar 2024, 16:02 UTC were added or corrected on 10 Mar 2024, 11:02 UTC',
      )
      .waitFor()
    const link = page.getByRole('link', { name: 'Vote ended: Raise the fee' })
    expect(await link.getAttribute('href')).toBe(`daos/${ID}/proposals/${ID}`)
    expect(await findBarriers(page)).toEqual([])
    expect(wrong).toEqual([])
    await close()
  })

  it('cites a point in its address, with value, time and source to copy', async () => {
    const permissions = ['clipboard-read', 'clipboard-write']
    const { page, wrong, close } = await open('metric=price&range=24h&interval=1h', { permissions })
    const chart = page.locator('.chart[data-drawn]').first()
    await chart.focus()
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.searchParams.get('at') === '2024-03-09T13:02:00Z')
    const cited = page.url()
    const text = (await page.locator('.cited p').textContent()) ?? ''
    expect(text).toBe(
      `Sample: Price, 24h by 1h: $${10 + Math.sin(1)}, 9 Mar 2024, 13:02 UTC. Source: dao-data, ${cited}, read 10 Mar 2024, 12:02 UTC.`,
    )
    await page.getByRole('button', { name: 'Copy citation' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(text)
    expect(await findBarriers(page)).toEqual([])
    // A bucket shows its first value.
    expect(await page.locator('.cited a').getAttribute('href')).toBe(
      `provenance?dataset=prices&id=${ID}&after=2024-03-09T13:02:00.000Z`,
    )
    // A click cites another point, and a drag cites none.
    const { x = 0, y = 0, width = 0 } = (await chart.boundingBox()) ?? {}
    await page.mouse.click(x + width - 30, y + 60)
    await expect.poll(() => page.url()).not.toBe(cited)
    const other = page.url()
    await page.mouse.move(x + width * 0.3, y + 60)
    await page.mouse.down()
    await page.mouse.move(x + width * 0.5, y + 60, { steps: 5 })
    await page.mouse.up()
    await page.getByRole('button', { name: 'Reset zoom' }).waitFor()
    expect(page.url()).toBe(other)
    await page.getByRole('button', { name: 'Remove' }).click()
    await page.waitForURL((url) => !url.searchParams.has('at') && !url.searchParams.has('chart'))
    expect(await page.locator('.cited').count()).toBe(0)
    expect(wrong).toEqual([])
    await close()
    const reader = await explorer.open(new URL(cited).pathname + new URL(cited).search, {
      ...{ now: NOW, prepare: (page: Page) => page.route('**/data/**', answer) },
    })
    await reader.page.locator('.chart .tip').getByText('9 Mar 2024, 13:02 UTC').waitFor()
    expect(await reader.page.locator('.cited p').textContent()).toBe(text)
    await reader.close()
    const early = new URL(cited)
    early.searchParams.set('at', '2023-01-01T00:00:00Z')
    const late = await explorer.open(early.pathname + early.search, {
      ...{ now: NOW, prepare: (page: Page) => page.route('**/data/**', answer) },
    })
    await late.page.getByText('The cited point is before this range.').waitFor()
    await late.close()
  })

  it('zooms by keys, and shows the whole range again', async () => {
    const { page, close } = await open('metric=candles&range=24h&interval=1h')
    const chart = page.locator('.chart[data-drawn]').first()
    const reset = page.getByRole('button', { name: 'Reset zoom' })
    const before = await countColumns(page)
    const isWhole = async () => JSON.stringify(await countColumns(page)) === JSON.stringify(before)
    for (const toWhole of [() => reset.click(), () => page.keyboard.press('Escape')]) {
      await chart.focus()
      await page.keyboard.press('Home')
      await page.keyboard.press('+')
      await reset.waitFor()
      await expect.poll(isWhole).toBe(false)
      await toWhole()
      await reset.waitFor({ state: 'detached' })
      await expect.poll(isWhole).toBe(true)
      expect(await page.evaluate('document.activeElement.className')).toBe('chart')
    }
    await page.keyboard.press('+')
    await page.keyboard.press('-')
    await reset.waitFor({ state: 'detached' })
    await close()
  })

  it('has the HTML of a frame that shows the same chart in the selected range and theme', async () => {
    const { page, close } = await open('metric=price&range=24h&interval=1h', { scheme: 'dark' })
    await page.getByText('Embed: Price').click()
    const html = (await page.locator('code', { hasText: '<iframe' }).textContent()) ?? ''
    const source = /src="([^"]+)"/.exec(html)?.[1]?.replaceAll('&amp;', '&') ?? ''
    expect(source).toContain(`/embed/tokens/${ID}?metric=price&range=24h&interval=1h&theme=dark`)
    await close()
    const prepare = (inFrame: Page) => inFrame.route('**/data/**', answer)
    const embedded = await explorer.open(new URL(source).pathname + new URL(source).search, {
      ...{ now: NOW, prepare, viewport: { width: 640, height: 420 } },
    })
    await embedded.page.locator('.chart[data-drawn]').waitFor()
    await embedded.page.getByRole('heading', { name: 'Sample: Price' }).waitFor()
    expect(await embedded.page.locator('html').getAttribute('data-theme')).toBe('dark')
    for (const [width, height] of [
      [360, 300],
      [1000, 500],
      [640, 420],
    ] as const) {
      await embedded.page.setViewportSize({ width, height })
      // The chart fills the frame, and nothing has to be scrolled.
      const drawn = embedded.page.locator('.chart canvas')
      await expect
        .poll(() => drawn.evaluate((one) => one.offsetHeight / (one.closest('.chart')?.clientHeight ?? 0)))
        .toBe(1)
      const sizes = await embedded.page.locator('html').evaluate((page) => [page.scrollWidth, page.scrollHeight])
      expect(sizes).toEqual([width, height])
      expect(
        await embedded.page.locator('.origin').evaluate((one) => Math.round(one.getBoundingClientRect().bottom)),
      ).toBe(height)
    }
    expect(await embedded.page.getByRole('link', { name: 'dao-data' }).getAttribute('href')).toBe(`tokens/${ID}`)
    expect(await embedded.page.getByRole('navigation').count()).toBe(0)
    expect(await findBarriers(embedded.page)).toEqual([])
    expect(embedded.wrong).toEqual([])
    await embedded.close()
  })

  it('can be saved as a picture', async () => {
    const { page, close } = await open('range=24h')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save picture' }).first().click(),
    ])
    expect(download.suggestedFilename()).toBe('sample-price-24h-by-5m.png')
    await close()
  })

  it('can be copied as a picture with its title, range and source', async () => {
    const permissions = ['clipboard-read', 'clipboard-write']
    const { page, wrong, close } = await open('range=24h', { permissions })
    const plain = await page.evaluate<number>(`document.querySelector('.chart canvas').height`)
    await page.getByRole('button', { name: 'Copy picture' }).first().click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    const { height, written } = await page.evaluate<{ height: number; written: number[] }>(`(async () => {
      const [item] = await navigator.clipboard.read()
      const picture = await createImageBitmap(await item.getType('image/png'))
      const canvas = new OffscreenCanvas(picture.width, picture.height)
      const context = canvas.getContext('2d')
      context.drawImage(picture, 0, 0)
      const count = (top, height) => {
        const { data } = context.getImageData(0, top, picture.width, height)
        return data.filter((value, at) => at % 4 === 0 && value < 128).length
      }
      return { height: picture.height, written: [count(16, 22), count(38, 22), count(picture.height - 30, 20)] }
    })()`)
    expect(height).toBeGreaterThan(plain + 60)
    for (const dark of written) expect(dark).toBeGreaterThan(100)
    expect(wrong).toEqual([])
    await close()
  })
})
