import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type NextFunction, type Request, type Response, Router } from 'express'
import { chooseEncoding, type Encoding } from '../http/accept.ts'
import { isKnownTo } from '../http/conditional.ts'
import { encode } from '../http/encoding.ts'
import type { OpenApi } from '../openapi/shape.ts'
import { parseParameters, readQuery } from '../parameters/parse.ts'
import { GUIDES, toGuide } from './guides.ts'
import { toLlmsText } from './llms.ts'
import { fromMarkdown } from './markdown.ts'
import { byTag, toOperationMarkdown, toReference, toReferenceMarkdown } from './reference.ts'
import { toPage } from './shell.ts'

/** Everything comes from this host, and nothing is written into the page itself. */
const POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';",
  "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
].join(' ')

type Page = { readonly type: string; readonly make: () => string }

const asset = (name: string) => readFileSync(join(import.meta.dirname, 'assets', name), 'utf8')

/** Every page by its path; none is made before it is asked for. */
function toPages(document: OpenApi, base: string): ReadonlyMap<string, Page> {
  const html = (make: () => string): Page => ({ type: 'text/html; charset=utf-8', make })
  const markdown = (make: () => string): Page => ({ type: 'text/markdown; charset=utf-8', make })
  const toGuidePage = (name: string, title: string) =>
    toPage({ title, body: fromMarkdown(toGuide(name, base)), markdown: `/guides/${name}.md` })
  return new Map<string, Page>([
    [
      '/reference',
      html(() => toPage({ title: 'Reference', ...toReference(document, base), markdown: '/reference.md' })),
    ],
    ['/reference.md', markdown(() => toReferenceMarkdown(document, base))],
    ...byTag(document).flatMap(({ operations }) =>
      operations.map(({ path, operation }): [string, Page] => [
        `/reference/${operation.operationId}.md`,
        markdown(() => toOperationMarkdown(document, base, path, operation)),
      ]),
    ),
    ...GUIDES.flatMap(({ name, title }): [string, Page][] => [
      [`/guides/${name}`, html(() => toGuidePage(name, title))],
      [`/guides/${name}.md`, markdown(() => toGuide(name, base))],
    ]),
    ['/llms.txt', { type: 'text/plain; charset=utf-8', make: () => toLlmsText(document, base) }],
    ['/pages/style.css', { type: 'text/css; charset=utf-8', make: () => asset('style.css') }],
    ['/pages/try.js', { type: 'text/javascript; charset=utf-8', make: () => asset('try.js') }],
  ])
}

/** The reference, the guides and llms.txt, of this host alone. Each page is made and compressed once. */
export function createPages(options: { toDocument: () => OpenApi; publicUrl: string }): Router {
  const router = Router()
  let pages: ReadonlyMap<string, Page> | undefined
  const kept = new Map<string, Promise<Buffer>>()
  const toBytes = (path: string, page: Page, encoding: Encoding) => {
    const key = `${encoding} ${path}`
    const bytes = kept.get(key) ?? encode(Buffer.from(page.make()), encoding)
    kept.set(key, bytes)
    return bytes
  }
  router.use(async (request: Request, response: Response, next: NextFunction) => {
    pages ??= toPages(options.toDocument(), options.publicUrl)
    const page = pages.get(request.path)
    if (page === undefined) return next()
    parseParameters({}, readQuery(request.originalUrl))
    const encoding = chooseEncoding(request.headers['accept-encoding'])
    const bytes = await toBytes(request.path, page, encoding)
    const digest = createHash('sha256').update(bytes).digest('base64url')
    response.set({ 'Content-Security-Policy': POLICY, 'X-Content-Type-Options': 'nosniff', Vary: 'Accept-Encoding' })
    response.set({ 'Cache-Control': 'public, max-age=300', 'Access-Control-Allow-Origin': '*', ETag: `"${digest}"` })
    response.set('X-Request-Id', String(response.locals.requestId))
    if (isKnownTo(request.headers['if-none-match'], digest)) return void response.status(304).end()
    if (encoding !== 'identity') response.set('Content-Encoding', encoding)
    response.set('Content-Type', page.type).end(bytes)
  })
  return router
}
