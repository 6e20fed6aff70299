import type { RequestHandler } from 'express'
import { toTagValue } from '../http/conditional.ts'
import { parseParameters, readQuery } from '../parameters/parse.ts'
import type { Exchange } from '../route/exchange.ts'
import type { ReadyAnswer } from '../serving/ready.ts'
import { sendReady } from '../serving/send.ts'

/** A page or a file of one: its media type and how its bytes are made. */
export interface Page {
  readonly type: string
  readonly make: () => Buffer | string
  /** How long a browser may keep it; some minutes when it does not say. */
  readonly cacheControl?: string
  /** Its query is the page's own matter; else there must be none. */
  readonly takesQuery?: boolean
  /** Replaces the policy of the other pages. */
  readonly policy?: string
}

/** Everything comes from this host, and nothing is written into the page itself. */
const toPolicy = (base: 'none' | 'self') =>
  [
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';",
    `base-uri '${base}'; form-action 'self'; frame-ancestors 'none'`,
  ].join(' ')

function toAnswer(page: Page, policy: string): ReadyAnswer {
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
    ...{ body, tag: toTagValue(body), expiresAt, hasRanges: true, isPacked: page.type === 'image/png' },
    head: { headers, staleAt: null, maxAge: undefined, cacheControl, expiresAt },
    forms: new Map(),
  }
}

/**
 * Serves the pages that `find` returns for a path. Each is made and compressed once, when it is first requested; pages
 * with the same `key` are the same bytes. Conditions and ranges are those of every other answer.
 */
export function createKept(options: {
  readonly find: (path: string) => { readonly key: string; readonly page: Page } | undefined
  readonly base?: 'none' | 'self'
}): RequestHandler {
  const kept = new Map<string, ReadyAnswer>()
  const policy = toPolicy(options.base ?? 'none')
  return async (request, response, next) => {
    const found = options.find(request.path)
    if (found === undefined) return next()
    const { key, page } = found
    if (page.takesQuery !== true) parseParameters({}, readQuery(request.originalUrl))
    const answer = kept.get(key) ?? toAnswer(page, policy)
    kept.set(key, answer)
    const { requestId, startedAt, caller } = response.locals as Pick<Exchange, 'requestId' | 'startedAt' | 'caller'>
    await sendReady({ request, response, requestId, startedAt, caller, extra: [] }, answer, Date.now(), 'cache')
  }
}
