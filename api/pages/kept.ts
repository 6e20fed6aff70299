import { createHash } from 'node:crypto'
import type { RequestHandler } from 'express'
import { chooseEncoding, type Encoding } from '../http/accept.ts'
import { isKnownTo } from '../http/conditional.ts'
import { encode } from '../http/encoding.ts'
import { parseParameters, readQuery } from '../parameters/parse.ts'

/** A page or a file of one: its media type and how its bytes are made. */
export interface Page {
  readonly type: string
  readonly make: () => Buffer | string
  /** How long a browser may keep it; some minutes when it does not say. */
  readonly cacheControl?: string
  /** Its query is the page's own matter; else there must be none. */
  readonly takesQuery?: boolean
}

/** Everything comes from this host, and nothing is written into the page itself. */
const toPolicy = (base: 'none' | 'self') =>
  [
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';",
    `base-uri '${base}'; form-action 'self'; frame-ancestors 'none'`,
  ].join(' ')

/**
 * Serves the pages that `find` knows by their path. Each is made and compressed once, when it is first asked for; pages
 * with the same `key` are the same bytes.
 */
export function createKept(options: {
  readonly find: (path: string) => { readonly key: string; readonly page: Page } | undefined
  readonly base?: 'none' | 'self'
}): RequestHandler {
  const kept = new Map<string, Promise<{ bytes: Buffer; digest: string }>>()
  const policy = toPolicy(options.base ?? 'none')
  const make = async (page: Page, encoding: Encoding) => {
    const bytes = await encode(Buffer.from(page.make()), encoding)
    return { bytes, digest: createHash('sha256').update(bytes).digest('base64url') }
  }
  const toBytes = (key: string, page: Page, encoding: Encoding) => {
    const place = `${encoding} ${key}`
    const known = kept.get(place)
    if (known !== undefined) return known
    const made = make(page, encoding)
    kept.set(place, made)
    // Whoever asked is told of the failure; the next one gets what is made anew.
    made.catch(() => kept.delete(place))
    return made
  }
  return async (request, response, next) => {
    const found = options.find(request.path)
    if (found === undefined) return next()
    const { key, page } = found
    if (page.takesQuery !== true) parseParameters({}, readQuery(request.originalUrl))
    const encoding = chooseEncoding(request.headers['accept-encoding'])
    const { bytes, digest } = await toBytes(key, page, encoding)
    response.set({ 'Content-Security-Policy': policy, 'X-Content-Type-Options': 'nosniff', Vary: 'Accept-Encoding' })
    response.set({ 'Cache-Control': page.cacheControl ?? 'public, max-age=300', ETag: `"${digest}"` })
    response.set({ 'Access-Control-Allow-Origin': '*', 'X-Request-Id': String(response.locals.requestId) })
    if (isKnownTo(request.headers['if-none-match'], digest)) return void response.status(304).end()
    if (encoding !== 'identity') response.set('Content-Encoding', encoding)
    response.set('Content-Type', page.type).end(bytes)
  }
}
