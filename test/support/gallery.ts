import { join } from 'node:path'
import type { Page, Route } from 'playwright-core'
import { build, type Rolldown } from 'vite'
import type { TestBrowser } from './browser.ts'

const WEB = join(import.meta.dirname, '../../web')
const ADDRESS = 'http://components.test/'
/** A month after the times of the components. */
const NOW = Date.UTC(2026, 3, 2)

type Files = ReadonlyMap<string, Buffer>

/** Builds the page of all components (`web/gallery/`) in memory. */
export async function buildGallery(): Promise<Files> {
  const built = (await build({
    ...{ root: join(WEB, 'gallery'), configFile: join(WEB, 'vite.config.ts'), logLevel: 'warn' },
    build: { write: false },
  })) as Rolldown.RolldownOutput
  return new Map(
    built.output.map((file) => [file.fileName, Buffer.from(file.type === 'chunk' ? file.code : file.source)]),
  )
}

const TYPES: Readonly<Record<string, string>> = { html: 'text/html', js: 'text/javascript', css: 'text/css' }

/** Opens the page of all components. Resolves when its charts are drawn. */
export async function openGallery(
  browser: TestBrowser,
  files: Files,
  options: Pick<NonNullable<Parameters<TestBrowser['open']>[1]>, 'screen' | 'scheme'>,
) {
  const answer = (route: Route) => {
    const name = new URL(route.request().url()).pathname.slice(1) || 'index.html'
    const body = files.get(name)
    const contentType = TYPES[name.split('.').at(-1) ?? '']
    return body === undefined ? route.abort() : route.fulfill({ body, ...(contentType && { contentType }) })
  }
  const prepare = (page: Page) => page.route(`${ADDRESS}**`, answer)
  const opened = await browser.open(ADDRESS, { ...options, now: NOW, prepare })
  await opened.page.waitForFunction(
    `[...document.querySelectorAll('.chart')].every(({ dataset }) => dataset.drawn === 'true')`,
  )
  return opened
}
