import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { RequestHandler } from 'express'
import type { Config } from '../../shared/config/config.ts'
import { toUnavailable } from '../problem/problem.ts'
import { toRoot } from './links.ts'
import { createPageHandler, type Page } from './page-handler.ts'

/** Output folder of `npm run build:page`; the relative path is the same from the compiled programs. */
const BUILT = join(import.meta.dirname, '../../web/dist')

/** The page's own addresses. Other unknown addresses get a JSON answer. */
const ADDRESSES =
  /^\/(?:|tokens|daos|governance|treasuries|index|compare|freshness|(?:tokens|daos)\/[0-9a-f]{24}|daos\/[0-9a-f]{24}\/proposals\/[0-9a-f]{24})$/

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** File names contain a hash of their content. */
const FOREVER = 'public, max-age=31536000, immutable'

/**
 * The document for an address. Its base is relative to the address, so that the page works behind a proxy with any path
 * prefix, without configuration.
 */
function toDocument(html: string, path: string): { key: string; page: Page } {
  const base = toRoot(path)
  const make = () => html.replace('<base href="./">', `<base href="${base}">`)
  const page = { type: 'text/html; charset=utf-8', make, cacheControl: 'no-cache', takesQuery: true }
  return { key: `document ${base}`, page }
}

/** The built files by path, and the icon at the path that browsers request by default. */
function readAssets(): ReadonlyMap<string, Page> {
  const names = readdirSync(join(BUILT, 'assets'))
  const toFile = (name: string): Page => {
    const bytes = readFileSync(join(BUILT, 'assets', name))
    return { type: TYPES[extname(name)] ?? 'application/octet-stream', make: () => bytes, cacheControl: FOREVER }
  }
  const icons = names
    .filter((name) => name.endsWith('.svg'))
    .map((name) => ({ ...toFile(name), cacheControl: 'public, max-age=86400' }))
  return new Map([
    ...names.map((name): [string, Page] => [`/assets/${name}`, toFile(name)]),
    ...icons.slice(0, 1).map((icon): [string, Page] => ['/favicon.ico', icon]),
  ])
}

/**
 * The explorer page, built from `web/`, with the mode in its documents: the notice that numbers are simulated must not
 * wait for an answer. If the page was not built, its addresses return an error.
 * @throws Problem `unavailable`
 */
export function createExplorer({ mode }: Pick<Config, 'mode'>): RequestHandler {
  if (!existsSync(join(BUILT, 'index.html')))
    return (request, _response, next) => {
      if (!ADDRESSES.test(request.path)) return next()
      throw toUnavailable('The page was not built: `npm run build:page` does that.')
    }
  // Read together at the start: documents and files of two builds do not fit together.
  const built = readFileSync(join(BUILT, 'index.html'), 'utf8')
  const html = built.replace('<meta name="mode" content="demo">', `<meta name="mode" content="${mode}">`)
  const assets = readAssets()
  return createPageHandler({
    base: 'self',
    find: (path) => {
      if (ADDRESSES.test(path)) return toDocument(html, path)
      const page = assets.get(path)
      return page === undefined ? undefined : { key: path, page }
    },
  })
}
