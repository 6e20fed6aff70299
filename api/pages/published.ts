import type { ServerResponse } from 'node:http'
import { basename } from 'node:path'
import express, {
  type ErrorRequestHandler,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
  Router,
} from 'express'
import { FIXED_HEADERS, setHeaders } from '../http/headers.ts'
import { Problem } from '../problem/problem.ts'
import type { RequestContext } from '../route/request-context.ts'
import { restrictCaching } from '../serving/respond.ts'

const PUBLISHED_PATH = '/published'

/** Names with the version of their content, which never changes. */
const VERSIONED = /^(?:part|load|clickhouse|croissant|README)-([0-9a-f]{16})\.(?:parquet|sql|json|md)$/
const FOREVER = 'public, max-age=31536000, immutable'

const TYPES: Readonly<Record<string, string>> = {
  parquet: 'application/vnd.apache.parquet',
  sql: 'application/sql; charset=utf-8',
  md: 'text/markdown; charset=utf-8',
}

function describeFile(
  response: ServerResponse & Pick<Response, 'locals'>,
  path: string,
  { size }: { readonly size: number },
): void {
  const name = basename(path)
  const [, version] = VERSIONED.exec(name) ?? []
  const type = TYPES[name.split('.').at(-1) ?? '']
  if (type !== undefined) response.setHeader('Content-Type', type)
  const { caller } = response.locals as Pick<RequestContext, 'caller'>
  response.setHeader('Cache-Control', version === undefined ? 'no-cache' : restrictCaching(caller, FOREVER))
  if (version !== undefined) response.setHeader('ETag', `"${version}-${size}"`)
}

/** The problems for what `send` refuses. */
function toProblem(error: unknown): unknown {
  const { status, headers } = error as { readonly status?: number; readonly headers?: Readonly<Record<string, string>> }
  const more = headers === undefined ? {} : { headers }
  if (status === 416) return new Problem('range_not_satisfiable', 'The file has no bytes in this range.', more)
  if (status === 412) return new Problem('precondition_failed', 'The file has changed: it has another ETag.', more)
  if (status !== undefined && status < 500) return new Problem('not_found', 'No such file.')
  return error
}

/**
 * Serves the files of a publication from the disk, with ranges and conditional requests. They never pass the caches of
 * this process. Unfinished files begin with a dot and are not served.
 */
export function createPublished(folder: string): RequestHandler {
  const router = Router({ caseSensitive: true })
  const failing: ErrorRequestHandler = (error, _request, _response, next) => next(toProblem(error))
  router.use(
    PUBLISHED_PATH,
    (request: Request, response: Response, next: NextFunction) => {
      const { requestId } = response.locals as { readonly requestId: string }
      response.locals.route = PUBLISHED_PATH
      setHeaders(response, [...FIXED_HEADERS, 'X-Request-Id', requestId])
      // Browsers send it with If-None-Match, and with it `send` ignores the tag.
      delete request.headers['cache-control']
      next()
    },
    express.static(folder, {
      dotfiles: 'ignore',
      index: false,
      redirect: false,
      cacheControl: false,
      setHeaders: describeFile,
    }),
    failing,
    () => {
      throw new Problem(
        'not_found',
        'No such file. /published/catalog.json lists the published files, if the operator publishes any.',
      )
    },
  )
  return router
}
