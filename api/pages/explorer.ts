import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { RequestHandler } from 'express'
import type { Config } from '../../shared/config/config.ts'
import { toUnavailable } from '../problem/problem.ts'
import { createKept, type Page } from './kept.ts'
import { toRoot } from './links.ts'

/** Where `npm run build:page` puts the page; beside the compiled programs it is the same. */
const BUILT = join(import.meta.dirname, '../../web/dist')

/** The page's own addresses. Whatever else there is not is told as JSON. */
const ADDRESSES = /^\/(?:|tokens|daos|index|compare|freshness|(?:tokens|daos)\/[0-9a-f]{24})$/

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** A file's name holds a hash of what is in it. */
const FOREVER = 'public, max-age=31536000, immutable'

/**
 * The document for an address. Its base is relative to the address, so that the page works behind a proxy that serves it
 * under a path of its own, without being told that path.
 */
function toDocument(html: string, path: string): { key: string; page: Page } {
  const base = toRoot(path)
  const make = () => html.replace('<base href="./">', `<base href="${base}">`)
  const page = { type: 'text/html; charset=utf-8', make, cacheControl: 'no-cache', takesQuery: true }
  return { key: `document ${base}`, page }
}

/** The built files by their paths, and the mark under the path that browsers ask for by themselves. */
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
 * The page that shows it all, from what was built of `web/`, with the mode in its documents: it must not wait for an answer to
 * say that numbers are simulated. Where nothing was built, its addresses say so.
 * @throws Problem `unavailable`
 */
export function createExplorer({ mode }: Pick<Config, 'mode'>): RequestHandler {
  if (!existsSync(join(BUILT, 'index.html')))
    return (request, _response, next) => {
      if (!ADDRESSES.test(request.path)) return next()
      throw toUnavailable('The page was not built: `npm run build:page` does that.')
    }
  // All at once: documents and files of two builds do not fit each other.
  const built = readFileSync(join(BUILT, 'index.html'), 'utf8')
  const html = built.replace('<meta name="mode" content="demo">', `<meta name="mode" content="${mode}">`)
  const assets = readAssets()
  return createKept({
    base: 'self',
    find: (path) => {
      if (ADDRESSES.test(path)) return toDocument(html, path)
      const page = assets.get(path)
      return page === undefined ? undefined : { key: path, page }
    },
  })
}
