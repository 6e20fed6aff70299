import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Page } from 'playwright-core'
import { readCommandLine } from '../../shared/command-line.ts'
import { DataError } from '../../shared/errors.ts'
import { isMain, runProgram } from '../../shared/process.ts'
import { hasBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { buildGallery, openGallery } from '../support/gallery.ts'

const ROOT = join(import.meta.dirname, '../..')
const FOLDER = join(ROOT, 'docs/screenshots')
/** Size limit of an image, because every clone of the repository contains it. */
const MOST_BYTES = 150_000
const QUALITIES = [82, 70, 55, 40]

const HELP = `npm run screenshots -- [address] [--components]

Takes a picture of each page in both themes into ${relative(ROOT, FOLDER)}, from the demo that runs at the address
(default: http://127.0.0.1:3000, where npm start serves). Wait until it says that its history is complete.

  --components   pictures of all components in all their states instead, which need no demo`

const UNI = 'a00a15074c647764fac27d6c'
const AAVE = 'd9def830e1a4b8b43c928d43'
const UNISWAP = '893ec80ae8dcc44e6c2a0b49'

const PAGES: Readonly<Record<string, string>> = {
  overview: '',
  tokens: 'tokens',
  token: `tokens/${UNI}?range=90d`,
  daos: 'daos',
  dao: `daos/${UNISWAP}`,
  index: 'index',
  compare: `compare?ids=${UNI},${AAVE}`,
  data: 'freshness',
}

const THEMES = ['light', 'dark'] as const

async function requireDemo(address: string): Promise<void> {
  const status = new URL('data/status', address)
  const answer = await fetch(status).catch((error: Error) => {
    throw new DataError('config', `${status} does not answer, start the demo with npm start: ${error.message}`)
  })
  const { mode } = (await answer.json()) as { mode?: string }
  // Real numbers belong to the providers and are not published.
  if (mode !== 'demo') throw new DataError('config', `${address} is no demo: pictures are taken of simulated numbers`)
}

/** Resolves when the visible content is loaded: responses, charts and images. */
const untilDrawn = (page: Page) =>
  page.waitForFunction(`document.querySelector('h1') !== null
    && document.querySelector('.loading, [aria-busy=true]') === null
    && [...document.querySelectorAll('.chart')].every(({ dataset }) => dataset.drawn === 'true')
    && [...document.images].every((image) => image.complete || image.getBoundingClientRect().top > innerHeight)`)

/** Saves the visible page as WebP, in the best quality below the size limit. */
async function take(page: Page, name: string): Promise<void> {
  const session = await page.context().newCDPSession(page)
  for (const quality of QUALITIES) {
    const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality })
    const picture = Buffer.from(data, 'base64')
    if (picture.length > MOST_BYTES) continue
    const file = join(FOLDER, `${name}.webp`)
    writeFileSync(file, picture)
    return console.log(`${relative(ROOT, file)}  ${Math.ceil(picture.length / 1000)} kB`)
  }
  throw new DataError('config', `${page.url()} has no picture of at most ${MOST_BYTES} bytes`)
}

async function takeAll(browser: TestBrowser, address: string): Promise<void> {
  for (const [name, path] of Object.entries(PAGES)) {
    for (const scheme of THEMES) {
      // The page's content security policy would block the evaluation in `untilDrawn`.
      const { page, close } = await browser.open(new URL(path, address).href, { scheme, bypassCSP: true })
      await untilDrawn(page)
      await take(page, `${name}-${scheme}`)
      await close()
    }
  }
}

async function takeComponents(browser: TestBrowser): Promise<void> {
  const files = await buildGallery()
  for (const scheme of THEMES) {
    const { page, close } = await openGallery(browser, files, { scheme })
    const height = await page.locator('html').evaluate(({ scrollHeight }) => scrollHeight)
    await page.setViewportSize({ width: 1280, height })
    await take(page, `components-${scheme}`)
    await close()
  }
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: { help: { type: 'boolean', default: false }, components: { type: 'boolean', default: false } },
  })
  if (values.help) return console.log(HELP)
  if (!hasBrowser)
    throw new DataError('config', 'there is no Chromium to take pictures with (Debian: apt-get install chromium)')
  const address = new URL(`${(positionals[0] ?? 'http://127.0.0.1:3000').replace(/\/$/, '')}/`).href
  if (!values.components) await requireDemo(address)
  mkdirSync(FOLDER, { recursive: true })
  const browser = await startBrowser()
  try {
    await (values.components ? takeComponents(browser) : takeAll(browser, address))
  } finally {
    await browser.close()
  }
}

if (isMain(import.meta.url)) runProgram(main)
