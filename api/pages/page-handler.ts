import type { RequestHandler } from 'express'
import { toTagValue } from '../http/negotiation.ts'
import { parseParameters, readQuery } from '../parameters/parse.ts'
import type { RequestContext } from '../route/request-context.ts'
import type { Compression } from '../serving/compression.ts'
import type { ReadyAnswer } from '../serving/ready-answer.ts'
import { sendReady } from '../serving/respond.ts'

/** For URLs that contain a hash of their content. */
export const FOREVER = 'public, max-age=31536000, immutable'

/** A page or an asset: its media type and how its bytes are made. */
export interface Page {
  readonly type: string
  readonly make: () => Buffer | string
  /** `Cache-Control` for browsers; default: some minutes. */
  readonly cacheControl?: string
  /** Whether the page handles its own query; if not, a query is an error. */
  readonly takesQuery?: boolean
  /** Whether the page is made for each request: there are too many pages of its kind to cache them. */
  readonly isUncached?: boolean
  /** Replaces the content security policy of the other pages. */
  readonly policy?: string
}

/** Everything is loaded from this host, without inline scripts or styles. */
export const toPolicy = (base: 'none' | 'self', ancestors: "'none'" | '*' = "'none'") =>
  [
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self';",
    `base-uri '${base}'; form-action 'self'; frame-ancestors ${ancestors}`,
  ].join(' ')

export function toAnswer(page: Page, policy: string): ReadyAnswer {
  const body = Buffer.from(page.make())
  const headers = [
    ...['Content-Type', page.type],
    ...['Vary', 'Accept-Encoding'],
    ...['Accept-Ranges', 'bytes'],
    ...['Content-Security-Policy', page.policy ?? policy],
  ]
  const cacheControl = page.cacheControl ?? 'public, max-age=300'
  const expiresAt = Number.POSITIVE_INFINITY
  return {
    ...{
      body,
      size: body.length,
      tag: toTagValue(body),
      expiresAt,
      hasRanges: true,
      isPacked: /^image\/(?!svg)/.test(page.type),
      isTransient: page.isUncached === true,
    },
    head: { headers, staleAt: null, maxAge: undefined, cacheControl, expiresAt },
    forms: new Map(),
  }
}

/**
 * Serves the pages that `find` returns for a path. A page is made and compressed once, on its first request; pages with
 * the same `key` share the bytes. Conditional and range requests work like for every other answer.
 */
export function createPageHandler(options: {
  readonly find: (path: string) => { readonly key: string; readonly page: Page } | undefined
  readonly base?: 'none' | 'self'
  readonly compression: Pick<Compression, 'compress'>
}): RequestHandler {
  const cached = new Map<string, ReadyAnswer>()
  const policy = toPolicy(options.base ?? 'none')
  return async (request, response, next) => {
    const found = options.find(request.path)
    if (found === undefined) return next()
    const { key, page } = found
    if (page.takesQuery !== true) parseParameters({}, readQuery(request.originalUrl))
    const answer = cached.get(key) ?? toAnswer(page, policy)
    if (page.isUncached !== true) cached.set(key, answer)
    const { requestId, startedAt, caller } = response.locals as Pick<
      RequestContext,
      'requestId' | 'startedAt' | 'caller'
    >
    await sendReady({ request, response, requestId, startedAt, caller, extra: [] }, answer, {
      now: Date.now(),
      from: 'cache',
      compression: options.compression,
    })
  }
}
