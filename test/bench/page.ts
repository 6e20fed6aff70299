import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { createHandFeed, startApi } from '../support/api.ts'
import { hasBrowser, startBrowser } from '../support/browser.ts'
import { storeMarket } from '../support/market.ts'
import { atMost, type Benchmark, type BenchRow } from './define-benchmark.ts'
import { withDatabase, withEngine } from './engine.ts'
import { toMedian } from './measure.ts'

const ASSETS = join(import.meta.dirname, '../../web/dist/assets')
const ROUNDS = 5
const STEP = 300_000
/** Tokens on a page of the list. */
const ROWS = 100

/** From the call to the painted chart: two frames after drawing. */
const measureDraw = (page: Page, file: string, points: number) =>
  page.evaluate<number>(`(async () => {
    const { draw } = await import(new URL('assets/${file}', document.baseURI).href)
    const place = document.createElement('div')
    place.className = 'chart'
    place.style.width = '1200px'
    place.style.height = '500px'
    document.body.prepend(place)
    const times = Array.from({ length: ${points} }, (_, at) => 1.7e9 + at * 300)
    const values = times.map((_, at) => (at % 1000 < 76 ? null : 10 + Math.sin(at / 50) + Math.sin(at * 7.1) / 9))
    const start = performance.now()
    const plot = draw(place, { kind: 'line', as: 'usd', times, lines: [{ name: 'price', values }] }, () => {})
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
    const took = performance.now() - start
    plot.remove()
    place.remove()
    return took
  })()`)

/** From the click on a link in the header to the painted page with its data. */
const measureChange = (page: Page, to: string, heading: string) =>
  page.evaluate<number>(`(async () => {
    const start = performance.now()
    document.querySelector('nav a[href="${to}"]').click()
    const frame = () => new Promise(requestAnimationFrame)
    while (document.querySelector('h1')?.textContent !== '${heading}' || document.querySelector('.loading')) await frame()
    await frame()
    return performance.now() - start
  })()`)

/** The computing time of the page's thread in milliseconds, independent of other load on the machine. */
async function createThreadClock(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable')
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    const time = metrics.find(({ name }) => name === 'ThreadTime')
    if (time === undefined) throw new Error('this Chromium does not tell how long a thread has computed')
    return time.value * 1000
  }
}

/** Medians: duration, and computing time of the page's thread. */
async function repeat(clock: () => Promise<number>, measure: () => Promise<number>) {
  const [times, computed]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = await clock()
    times.push(await measure())
    computed.push((await clock()) - before)
  }
  return { time: toMedian(times), computed: toMedian(computed) }
}

const toRow = (what: string, name: string, value: number, unit: string, most: number): BenchRow => ({
  what,
  a: { name, value, unit },
  target: atMost(most, ` ${unit}`),
})

/**
 * The page over a real service with a day of prices of every token. Charts and responses are cached as for a regular
 * reader.
 */
function measureInBrowser(points: number): Promise<BenchRow[]> {
  return withEngine((engine) =>
    withDatabase(engine, 'page', async ({ config, registry, db, reader }) => {
      const keys = registry.tokens.filter(({ live }) => live).map(({ key }) => key)
      const until = Math.floor(Date.now() / STEP) * STEP
      await storeMarket(db, { keys, until, points: 288, stepMs: STEP })
      const api = await startApi({ config, db: reader, registry, changeFeed: createHandFeed() })
      try {
        return await measurePage(api.url, points)
      } finally {
        await api.close()
      }
    }),
  )
}

async function measurePage(url: string, points: number): Promise<BenchRow[]> {
  const browser = await startBrowser()
  try {
    const { page } = await browser.open(`${url}/tokens`)
    await page.locator(`tbody tr:nth-child(${ROWS})`).waitFor()
    const file = readdirSync(ASSETS).find((name) => /^plot-.*\.js$/.test(name))
    if (file === undefined) throw new Error(`${ASSETS} has no chart: npm run build:page`)
    const clock = await createThreadClock(page)
    const drawn = await repeat(clock, () => measureDraw(page, file, points))
    // There and back: both are page changes.
    const changed = await repeat(clock, async () => {
      const there = await measureChange(page, 'freshness', 'Data')
      return Math.max(there, await measureChange(page, 'tokens', 'Tokens'))
    })
    const many = `${points.toLocaleString('en')} points`
    return [
      toRow('a line on the screen', many, drawn.time, 'ms', 200),
      toRow('a line, computing', many, drawn.computed, 'ms', 200),
      toRow('a change of pages', `${ROWS} tokens from cached answers`, changed.time, 'ms', 100),
      toRow('two changes of pages, computing', 'there and back', changed.computed, 'ms', 200),
    ]
  } finally {
    await browser.close()
  }
}

function measureSizes(): BenchRow[] {
  const html = readFileSync(join(ASSETS, '../index.html'), 'utf8')
  const files = readdirSync(ASSETS).filter((name) => /\.(?:js|css)$/.test(name))
  const size = (names: readonly string[]) =>
    names.reduce((sum, name) => sum + gzipSync(readFileSync(join(ASSETS, name))).length, 0) / 1000
  return [
    toRow(
      'script and style, compressed',
      'first view without charts',
      size(files.filter((name) => html.includes(name))),
      'kB',
      60,
    ),
    toRow('script and style, compressed', 'with charts', size(files), 'kB', 120),
  ]
}

/** The cost of the page for a reader: bytes, and waiting for charts. */
export const page: Benchmark = {
  name: 'page',
  about: 'Size of the page and time to show data, in a browser on this machine.',
  run: async () =>
    hasBrowser
      ? { rows: [...measureSizes(), ...(await measureInBrowser(105_120))] }
      : { skipped: 'there is no Chromium' },
}
