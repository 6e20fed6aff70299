import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createHandFeed, startApi } from '../support/api.ts'
import { hasBrowser, startBrowser } from '../support/browser.ts'
import { noDatabase } from '../support/no-database.ts'
import { atMost, type Benchmark, type BenchRow } from './define-benchmark.ts'
import { toMedian } from './measure.ts'

const ASSETS = join(import.meta.dirname, '../../web/dist/assets')
const ID = 'a00a15074c647764fac27d6c'
const ROUNDS = 5

const TOKENS = Array.from({ length: 100 }, (_, at) => ({
  ...{ _id: at.toString(16).padStart(24, '0'), name: `Token ${at}`, symbol: `T${at}`, chain: ID, dao: ID, live: true },
  ...{ contractAddress: '0x00', decimal: 18, cmcId: null, livePrice: true, chart24h: '' },
  financialData: { price: at + 0.5, marketCap: 1e9 / (at + 1), lastUpdated: '2024-03-10T12:00:00.000Z' },
}))

const ANSWERS: Readonly<Record<string, unknown>> = {
  '/data/status': { mode: 'live', upstream: 'Live providers.', datasets: [] },
  '/data/tokens': TOKENS,
}

/** From the call to the picture: two frames after the drawing. */
const drawOnce = (page: Page, file: string, points: number) =>
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

/** From the click on a link in the header until the other page is painted with its data. */
const changeOnce = (page: Page, to: string, heading: string) =>
  page.evaluate<number>(`(async () => {
    const start = performance.now()
    document.querySelector('nav a[href="${to}"]').click()
    const frame = () => new Promise(requestAnimationFrame)
    while (document.querySelector('h1')?.textContent !== '${heading}' || document.querySelector('.loading')) await frame()
    await frame()
    return performance.now() - start
  })()`)

/** How long the page's thread has computed so far, in milliseconds: what else runs on the machine is not in it. */
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

/** Medians: how long something took, and how long the page's thread computed for it. */
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

async function measureInBrowser(points: number): Promise<BenchRow[]> {
  const config = parseConfig({})
  const api = await startApi({ config, db: noDatabase, registry: loadRegistry(), commits: createHandFeed() })
  const browser = await startBrowser()
  try {
    const answer = (page: Page) =>
      page.route('**/data/**', (route) =>
        route.fulfill({ json: ANSWERS[new URL(route.request().url()).pathname] ?? [] }),
      )
    const { page } = await browser.open(`${api.url}/tokens`, { prepare: answer })
    await page.getByRole('link', { name: 'Token 99 T99' }).waitFor()
    const file = readdirSync(ASSETS).find((name) => /^plot-.*\.js$/.test(name))
    if (file === undefined) throw new Error(`${ASSETS} has no chart: npm run build:page`)
    const clock = await createThreadClock(page)
    const drawn = await repeat(clock, () => drawOnce(page, file, points))
    // There and back: both are changes.
    const changed = await repeat(clock, async () => {
      const there = await changeOnce(page, 'freshness', 'Data')
      return Math.max(there, await changeOnce(page, 'tokens', 'Tokens'))
    })
    const many = `${points.toLocaleString('en')} points`
    return [
      toRow('a line on the screen', many, drawn.time, 'ms', 200),
      toRow('a line, computing', many, drawn.computed, 'ms', 200),
      toRow('a change of pages', '100 tokens from kept answers', changed.time, 'ms', 100),
      toRow('two changes of pages, computing', 'there and back', changed.computed, 'ms', 200),
    ]
  } finally {
    await browser.close()
    await api.close()
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

/** What the page costs a reader: bytes, and waiting for pictures. */
export const page: Benchmark = {
  name: 'page',
  about: 'How large the page is and how soon it shows what was asked, in a browser on this machine.',
  run: async () =>
    hasBrowser
      ? { rows: [...measureSizes(), ...(await measureInBrowser(105_120))] }
      : { skipped: 'there is no Chromium' },
}
