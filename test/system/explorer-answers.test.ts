import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page, Route } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createHandFeed, startApi } from '../support/api.ts'
import { hasBrowser } from '../support/browser.ts'
import { type Answers, ID, NOW, serveExplorer, TOKEN, toPrepare } from '../support/explorer-page.ts'
import { noDatabase } from '../support/no-database.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

const startOf = (route: Route) => Date.parse(new URL(route.request().url()).searchParams.get('start') ?? '')

/** A price every five minutes for a day, from the requested start. */
const answerPrices = (route: Route) => {
  const data = Array.from({ length: 288 }, (_, step) => {
    const timestamp = new Date(startOf(route) + step * 300_000).toISOString()
    return { timestamp, quote: { USD: { price: 10 + Math.sin(step / 20), timestamp } } }
  })
  return route.fulfill({ json: { name: 'Sample', id: ID, data } })
}

describe.skipIf(!hasBrowser)('explorer page', () => {
  const explorer = serveExplorer()
  const open = (path: string, answers: Answers) => explorer.open(path, { prepare: toPrepare(answers) })

  it('lists due buckets without data as missing, but no other pending ones', async () => {
    const range = (from: number, to: number, state: string, reason: string | null) => ({
      ...{ entity: ID, from: new Date(from).toISOString(), to: new Date(to).toISOString(), state, reason },
      ...{ provider: null, interval: null },
    })
    const coming = range(NOW - HOUR, NOW, 'pending', 'not due yet')
    const gapsOf = async (...ranges: unknown[]) => {
      const { page, close } = await open('/freshness', { 'status/coverage': [...ranges, coming] })
      const card = page.getByRole('region', { name: 'Gaps of the last 30 days', exact: true })
      await card.locator('.shown').waitFor()
      const rows = await card.locator('tbody tr').allTextContents()
      const text = await card.locator('.shown').textContent()
      await close()
      return { rows, text }
    }
    const stored = range(NOW - 2 * DAY, NOW - DAY, 'covered', null)
    expect((await gapsOf(stored)).text).toBe('Nothing is missing.')
    const late = range(NOW - DAY, NOW - HOUR, 'pending', 'it is going to be collected')
    const { rows, text } = await gapsOf(stored, late)
    expect(rows).toEqual([expect.stringContaining('it is going to be collected')])
    expect(text).toContain('1 gap; 1 range complete.')
  })
  it.each([
    [0, '+50.00 %'],
    [2, '+50.00 %'],
    [29 * 24, 'not known'],
  ])('shows no 30-day change of the Index if history is shorter, with %i hours missing', async (hours, change) => {
    const { page, close } = await open('/', {
      'index/historic': (route: Route) => {
        if (Number.isNaN(startOf(route)))
          return route.fulfill({ json: [{ createdAt: new Date(NOW).toISOString(), valueUsd: 15 }] })
        const start = startOf(route)
        const points = Array.from({ length: 30 * 24 }, (_, hour) => ({
          createdAt: new Date(start + hour * HOUR).toISOString(),
          valueUsd: hour < hours ? null : hour < 29 * 24 + 12 ? 10 : 15,
        }))
        return route.fulfill({ json: points })
      },
    })
    const card = page.getByRole('region', { name: 'Index', exact: true })
    await card.locator('.lead data').first().waitFor()
    expect(await card.locator('.lead').textContent()).toContain(`$15.00 30 d ${change}`)
    await close()
  })
  it.each([
    [`/tokens/${ID}?range=24h`, '/historic-financial', DAY],
    [`/compare?ids=${ID}&range=24h`, '/historic-financial', DAY],
    ['/', '/index/historic', 30 * DAY],
  ])('keeps the length of the range in %s after days in an open page', async (path, series, length) => {
    const requests: URL[] = []
    const { page, close } = await open(path, { tokens: [TOKEN], 'tokens/historic-financial': answerPrices })
    await page
      .locator(path === '/' ? '.grid .shown' : '.chart[data-drawn]')
      .first()
      .waitFor()
    const canvas = (await page.locator('canvas').elementHandles())[0]
    page.on('request', (request) => requests.push(new URL(request.url())))
    await page.clock.fastForward(4 * DAY)
    const isNew = ({ pathname, searchParams }: URL) =>
      pathname.endsWith(series) && Date.parse(searchParams.get('start') ?? '') >= NOW + 4 * DAY - length
    await expect.poll(() => requests.some(isNew), { timeout: 10_000 }).toBe(true)
    if (path !== '/') {
      await expect.poll(() => page.locator('[aria-busy=true]').count(), { timeout: 10_000 }).toBe(0)
      // The chart element is the same all the time.
      expect(await canvas?.evaluate(({ isConnected }) => isConnected)).toBe(true)
    }
    await close()
  })
  it('retries within half a minute after 503, even while change events arrive', async () => {
    let isBusy = true
    const refuse = (route: Route) => route.fulfill({ status: 503, headers: { 'retry-after': '1' }, json: {} })
    const { page, close } = await open('/tokens', {
      stream: (route: Route) => route.fulfill({ contentType: 'text/event-stream', body: 'retry: 3600000\n\n' }),
      tokens: (route: Route) => (isBusy ? refuse(route) : route.fulfill({ json: [TOKEN] })),
    })
    await page.getByRole('alert').first().waitFor()
    isBusy = false
    await page.clock.fastForward(40_000)
    await page.getByRole('link', { name: 'Sample' }).first().waitFor()
    await close()
  })

  it('offers to remove each compared item, also an unknown one, and reports a name without a match', async () => {
    const { page, close } = await open(`/compare?of=daos&ids=${ID}`, {})
    await page.getByLabel('Add').fill('nobody')
    await page.getByText('No match.').waitFor()
    await page.getByRole('link', { name: 'Remove not known' }).click()
    await page.waitForURL((url) => !url.search.includes(ID))
    await close()
  })

  it('adds several names in order, and reports those without a match', async () => {
    const { page, close } = await open('/compare', {
      search: (route: Route) => {
        const q = new URL(route.request().url()).searchParams.get('q')
        const at = ['first', 'second'].indexOf(String(q))
        const found = { type: 'token', _id: `${at + 1}`.repeat(24), name: String(q), symbol: 'SMP' }
        return route.fulfill({ json: at < 0 ? [] : [found] })
      },
    })
    await page.getByLabel('Add').focus()
    await page.keyboard.type('second, nobody, first')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/compare?ids=${'2'.repeat(24)}%2C${'1'.repeat(24)}`)
    await page.getByText('No match for nobody.').waitFor()
    await close()
  })

  it('keeps a chart and marks it as old if the service is unavailable while the range moves', async () => {
    let isUnavailable = false
    const answer = (route: Route) => (isUnavailable ? route.abort() : answerPrices(route))
    const { page, close } = await open(`/tokens/${ID}?range=24h`, {
      tokens: [TOKEN],
      'tokens/historic-financial': answer,
    })
    await page.locator('.chart[data-drawn]').first().waitFor()
    const [canvas] = await page.locator('canvas').elementHandles()
    isUnavailable = true
    const failed = page.waitForEvent('requestfailed', (request) => request.url().includes('historic-financial'))
    await page.clock.fastForward(HOUR)
    await failed
    await page.getByText('could not be reached').first().waitFor()
    expect(await canvas?.evaluate(({ isConnected }) => isConnected)).toBe(true)
    await close()
  })
  it.each([
    ['demo', ['DEMO: all numbers are simulated.']],
    ['live', []],
  ])('shows for mode %s whether its numbers are simulated, also if the service fails', async (mode, notices) => {
    const config = parseConfig({ DAO_DATA_MODE: mode })
    const served = await startApi({ config, db: noDatabase, registry: loadRegistry(), changeFeed: createHandFeed() })
    const tokens = ['first', 'second', 'third', 'fourth'].map((name, at) => ({
      ...TOKEN,
      _id: `${at}`.repeat(24),
      symbol: `THE-${name}-OF-THEM`,
    }))
    const { page, close } = await explorer.open(`${served.url}/compare?ids=${tokens.map(({ _id }) => _id)}`, {
      screen: 'small phone',
      prepare: async (page) => {
        await toPrepare({ tokens, 'tokens/historic-financial': answerPrices })(page)
        await page.route('**/data/status', () => {})
      },
    })
    await page.locator('.chart[data-drawn]').waitFor()
    expect(await page.getByText('DEMO', { exact: true }).count()).toBe(notices.length)
    // The text in an exported picture, and whether it fits.
    await page.evaluate(`(() => {
      globalThis.written = []
      const write = CanvasRenderingContext2D.prototype.fillText
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        if (!this.canvas.isConnected) {
          const { a, e, d, f } = this.getTransform()
          const [right, bottom] = [e + a * (x + this.measureText(text).width), f + d * (y + 13)]
          globalThis.written.push({ text, isComplete: x >= 0 && right <= this.canvas.width && bottom <= this.canvas.height })
        }
        return write.call(this, text, x, y)
      }
    })()`)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save picture' }).first().click(),
    ])
    await download.cancel()
    const written = await page.evaluate<{ text: string; isComplete: boolean }[]>('globalThis.written')
    expect(written.filter(({ isComplete }) => !isComplete)).toEqual([])
    const texts = written.map(({ text }) => text)
    const names = tokens.map(({ symbol }) => symbol)
    expect(texts.join(' ')).toMatch(new RegExp(`^${[...notices, names.join(', ')].join(' ')}, 90d`))
    expect(texts).toEqual(expect.arrayContaining(names))
    expect(texts.join(' ')).toContain(`dao-data, ${new URL(served.url).host}. Made 10 Mar 2024`)
    await close()
    await served.close()
  })
  it('opens the result of the current search text, not of an earlier one', async () => {
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const { page, close } = await open('/', {
      search: async (route: Route) => {
        const name = new URL(route.request().url()).searchParams.get('q')
        if (name === 'ab') await released
        const found = { type: 'token', _id: name === 'ab' ? ID : 'b'.repeat(24), name, symbol: null }
        return route.fulfill({ json: [found] })
      },
    })
    await page.getByRole('button', { name: 'Search ⌘K' }).click()
    await page.keyboard.type('a')
    await page.getByRole('option', { name: 'a Token', exact: true }).waitFor()
    await page.keyboard.type('b')
    await page.getByText('Searching…').waitFor()
    await page.keyboard.press('Enter')
    expect(new URL(page.url()).pathname).toBe('/')
    release()
    await page.waitForURL(/tokens/)
    expect(new URL(page.url()).pathname).toBe(`/tokens/${ID}`)
    await close()
  })

  it('shows the former name by which the search found a record', async () => {
    const { page, close } = await open('/', {
      search: [
        { type: 'token', _id: ID, name: 'Sky', symbol: 'SKY', matched: 'formerName', match: { text: 'MKR' } },
        {
          type: 'token',
          _id: 'b'.repeat(24),
          name: 'Zero',
          symbol: null,
          matched: 'predecessor',
          match: { text: 'STG' },
        },
        { type: 'dao', _id: 'c'.repeat(24), name: 'Sample', symbol: null, matched: 'name', match: { text: 'Sample' } },
      ],
    })
    await page.getByRole('button', { name: 'Search ⌘K' }).click()
    await page.keyboard.type('m')
    for (const name of ['Sky (SKY) Token, formerly MKR', 'Zero Token, replaced STG', 'Sample DAO'])
      await page.getByRole('option', { name, exact: true }).waitFor()
    await close()
  })

  it('shows former names in the suggestions of the comparison', async () => {
    const { page, close } = await open('/compare', {
      search: [{ type: 'token', _id: ID, name: 'Sky', symbol: 'SKY', matched: 'formerName', match: { text: 'MKR' } }],
    })
    await page.getByLabel('Add').fill('mkr')
    await page.getByRole('button', { name: 'Sky, formerly MKR', exact: true }).waitFor()
    await close()
  })

  it('scrolls the selected search result into view', async () => {
    const { page, close } = await explorer.open(`/`, {
      screen: 'small phone',
      prepare: toPrepare({
        search: Array.from({ length: 10 }, (_, at) => ({
          type: 'token',
          _id: `${at}`.repeat(24),
          name: `A ${at}`,
          symbol: null,
        })),
      }),
    })
    await page.getByRole('button', { name: /^Search/ }).click()
    await page.keyboard.type('a')
    const options = page.getByRole('option')
    await options.nth(9).waitFor()
    await page.setViewportSize({ width: 320, height: 360 })
    for (let at = 0; at < 9; at += 1) await page.keyboard.press('ArrowDown')
    const isInView = () =>
      options.nth(9).evaluate((one) => {
        const [own, list] = [one.getBoundingClientRect(), one.parentElement?.getBoundingClientRect()]
        return list !== undefined && own.top >= list.top && own.bottom <= list.bottom + 1
      })
    await expect.poll(isInView, { timeout: 5_000 }).toBe(true)
    await close()
  })
  /** The page of a service under test control; responses that the browser intercepts are not cached. */
  const serve = async (answer: (path: string, request: IncomingMessage, response: ServerResponse) => unknown) => {
    const service = createServer(async (request, response) => {
      const { url = '/' } = request
      if (url.startsWith('/data/')) return void answer(url, request, response)
      const own = await fetch(explorer.toUrl(url))
      response.writeHead(own.status, { 'content-type': own.headers.get('content-type') ?? '' })
      response.end(Buffer.from(await own.arrayBuffer()))
    })
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
    return {
      url: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
      stop: () => {
        service.closeAllConnections()
        service.close()
      },
    }
  }
  const prepare = (page: Page) => page.clock.install({ time: NOW })

  it('shows that data is stale until it is fresh, even if its content is unchanged', async () => {
    let [isStale, sent] = [true, 0]
    const { url, stop } = await serve((path, { headers }, response) => {
      if (path.startsWith('/data/stream')) return response.writeHead(404).end()
      const fields = { etag: '"1"', 'x-data-as-of': new Date(NOW - DAY).toISOString(), 'cache-control': 'max-age=60' }
      for (const [name, value] of Object.entries(fields)) response.setHeader(name, value)
      if (isStale) response.setHeader('x-data-stale', 'true')
      const isCached = headers['if-none-match'] === fields.etag
      if (!isCached) sent += 1
      response.writeHead(isCached ? 304 : 200, { 'content-type': 'application/json' })
      return response.end(isCached ? undefined : JSON.stringify(path.startsWith('/data/tokens?') ? [TOKEN] : []))
    })
    const { page, close } = await explorer.open(`${url}/tokens?category=dex`, { prepare })
    await page.locator('.badge.stale').waitFor()
    await page.getByRole('link', { name: 'Sample SMP' }).waitFor()
    isStale = false
    const before = sent
    await page.clock.fastForward(31_000)
    await page.locator('.badge.stale').waitFor({ state: 'detached', timeout: 10_000 })
    await page.getByText('as of 1d ago').waitFor()
    expect(sent).toBe(before)
    await close()
    stop()
  })

  it('reloads data that changed while another page was open', async () => {
    let price = 1.5
    let stream: ServerResponse | undefined
    const { url, stop } = await serve((path, _request, response) => {
      if (path.startsWith('/data/stream')) {
        stream = response
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        return response.write(': open\n\n')
      }
      response.writeHead(200, { 'content-type': 'application/json' })
      const token = { ...TOKEN, financialData: { ...TOKEN.financialData, price } }
      const series = { name: 'Sample', id: ID, data: [] }
      const messages = path.startsWith('/data/tokens?')
        ? [token]
        : /historic-(?:fin|dex-ohlcv)/.test(path)
          ? series
          : []
      return response.end(JSON.stringify(messages))
    })
    // No time passes on this clock: the second request is not caused by the cache's age.
    const { page, close } = await explorer.open(`${url}/tokens/${ID}`, { now: NOW })
    const shown = page.locator('.title .large')
    await shown.getByText('$1.50').waitFor()
    await page.locator('.live.live').waitFor()
    await page.getByRole('link', { name: 'DAOs', exact: true }).click()
    await page.getByText('No records match.').waitFor()
    price = 1.75
    const renewed = page.waitForRequest('**/data/daos/treasury?*')
    stream?.write('id: 1-0\nevent: change\ndata: {"dataset":"prices"}\n\n')
    await renewed
    await page.goBack()
    await shown.getByText('$1.75').waitFor({ timeout: 10_000 })
    await close()
    stop()
  })

  it.each(['tokens', 'daos'])('sets a separate title for an unknown id among %s', async (kind) => {
    const { page, close } = await open(`/${kind}`, {})
    await expect.poll(() => page.title()).toMatch(/^(?:Tokens|DAOs) – /)
    await page.evaluate(`document.querySelector('nav a').setAttribute('href', '${kind}/${ID}')`)
    await page.locator('nav a').first().click()
    await page.getByText('has this id.').waitFor()
    await expect.poll(() => page.title(), { timeout: 10_000 }).toBe('Not found – dao-data')
    await close()
  })
})
