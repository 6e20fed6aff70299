import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { RequestHandler } from 'express'
import { toReason } from '../../shared/errors.ts'
import { attributionFile, logosFolder, readAttribution } from '../../shared/logos.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { FIXED_HEADERS, setHeaders } from '../http/headers.ts'
import type { AppContext } from '../route/define-route.ts'
import { daoKind } from '../route/entities.ts'
import type { RequestContext } from '../route/request-context.ts'
import type { Compression } from '../serving/compression.ts'
import { restrictCaching } from '../serving/respond.ts'
import { createPageHandler, FOREVER, type Page } from './page-handler.ts'

const TYPES: Readonly<Record<string, string>> = { '.png': 'image/png', '.jpg': 'image/jpeg', '.webp': 'image/webp' }

const A_DAY = 'public, max-age=86400'

/** The logos in the data folder, as they were when the process started. */
export interface Logos {
  /** In the URLs of all logos, so that browsers can cache them for ever. Undefined if there are none. */
  readonly version: string | undefined
  readonly handler: RequestHandler
}

/**
 * Serves `/logos/<version>/<id>` for tokens and for DAOs, which have the logo of their token. Other ids are redirected
 * to their letters.
 */
export function createLogos(
  { config, registry }: Pick<AppContext, 'config' | 'registry'>,
  { compression, log }: { readonly compression: Compression; readonly log: Logger },
): Logos {
  const folder = logosFolder(config.dataDir)
  const found = read(folder, log)
  if (found === undefined) return { version: undefined, handler: (_request, _response, next) => next() }
  const { logos, version, text } = found
  const prefix = `/logos/${version}/`
  const toPage = (id: string): { key: string; page: Page } | undefined => {
    if (id === 'attribution.json')
      return { key: id, page: { type: 'application/json; charset=utf-8', make: () => text, cacheControl: FOREVER } }
    const logo = logos[id] ?? logos[daoKind.byId(registry, id)?.token ?? '']
    if (logo === undefined) return undefined
    const type = TYPES[extname(logo.file)] ?? 'application/octet-stream'
    const make = () => readFileSync(join(folder, logo.file))
    return { key: logo.file, page: { type, make, cacheControl: FOREVER } }
  }
  const serve = createPageHandler({
    compression,
    find: (path) => (path.startsWith(prefix) ? toPage(path.slice(prefix.length)) : undefined),
  })
  return {
    version,
    handler: (request, response, next) =>
      serve(request, response, (failure) => {
        const [, id] = /^\/logos\/[\w-]+\/([0-9a-f]{24})$/.exec(request.path) ?? []
        if (failure !== undefined || id === undefined) return next(failure)
        const { requestId, caller } = response.locals as Pick<RequestContext, 'requestId' | 'caller'>
        response.statusCode = 302
        setHeaders(response, [
          ...FIXED_HEADERS,
          ...['X-Request-Id', requestId, 'Location', `../../marks/${id}.svg`],
          ...['Cache-Control', restrictCaching(caller, A_DAY)],
        ])
        response.end()
      }),
  }
}

/** A malformed file must not stop the service: it then has no logos. */
function read(folder: string, log: Logger) {
  try {
    const attribution = readAttribution(folder)
    if (attribution === undefined) return undefined
    const text = readFileSync(attributionFile(folder))
    const hash = createHash('sha256').update(text)
    for (const { file } of Object.values(attribution.logos)) hash.update(readFileSync(join(folder, file)))
    return { logos: attribution.logos, version: hash.digest('base64url').slice(0, 12), text }
  } catch (error) {
    log.error({ reason: toReason(error) }, 'no logos are served')
    return undefined
  }
}
