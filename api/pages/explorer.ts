import { createReadStream, existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { addAbortSignal } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { Request, RequestHandler, Response } from 'express'
import type { Admission } from '../admission/admission.ts'
import { FIXED_HEADERS, setHeaders } from '../http/headers.ts'
import { type ByteRange, createMediaTypeChooser, toTagValue } from '../http/negotiation.ts'
import { toUnavailable } from '../problem/problem.ts'
import type { AppContext } from '../route/define-route.ts'
import type { RequestContext } from '../route/request-context.ts'
import type { AnswerFiles } from '../serving/answer-files.ts'
import type { Compression } from '../serving/compression.ts'
import { restrictCaching } from '../serving/respond.ts'
import { type RangedFile, sendTaggedFile } from '../serving/send-file.ts'
import { createDisconnectSignal } from '../single-flight/single-flight.ts'
import { type Card, findCard, toCardHtml } from './cards.ts'
import { type Content, toErrorCodes, toMissing } from './contents.ts'
import { toRoot } from './links.ts'
import { createPageHandler, FOREVER, type Page, toPolicy } from './page-handler.ts'

/** Output folder of `npm run build:page`; the relative path is the same from the compiled programs. */
const BUILT = join(import.meta.dirname, '../../web/dist')

/** The page's own addresses. */
export const ADDRESSES =
  /^\/(?:|tokens|daos|governance|treasuries|index|compare|baskets|freshness|alerts|provenance|sql|(?:tokens|daos)\/[0-9a-f]{24}|daos\/[0-9a-f]{24}\/proposals\/[0-9a-f]{24}|voters\/0x[0-9a-fA-F]{40,64})$/

const ERRORS = '/docs/errors'

/** Charts that pages of other sites may show in a frame. */
const EMBEDS = /^\/embed\/(?:index|baskets|(?:tokens|daos)\/[0-9a-f]{24})$/

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

const HTML = 'text/html; charset=utf-8'

/**
 * DuckDB's worker, the only script that compiles WebAssembly. The policy in the response of its file applies to a
 * worker, so the documents of the page do not need this permission.
 */
const ENGINE_WORKER = /^duckdb-browser-.*\.worker-.*\.js$/
const ENGINE_POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'"

/** WebAssembly of 34 MB. The build contains only the compressed file. */
const COMPRESSED = /\.wasm\.gz$/

/**
 * The document for an address. Its base is relative to the address, so that the page works behind a proxy with any path
 * prefix, without configuration.
 */
function toDocument(html: string, path: string, card: Card | undefined): { key: string; page: Page } {
  const base = toRoot(path)
  const make = () => {
    const based = html.replace('<base href="./">', `<base href="${base}">`)
    return card === undefined ? based : based.replace('<title>dao-data</title>', () => toCardHtml(card))
  }
  const page = { type: HTML, make, cacheControl: 'no-cache', takesQuery: true }
  const key = LATE.test(path) ? path : `document ${base}`
  return card === undefined ? { key, page } : { key: path, page: { ...page, isUncached: true } }
}

/** The pages with a separate file of code, which has the page's name. */
const LATE = /^\/(?<name>alerts|baskets|provenance|sql)$/

/** Begins to load the code of such a page with the document, and not when the rest of the code has run. */
function withLateCode(html: string, path: string, names: readonly string[]): string {
  const name = LATE.exec(path)?.groups?.name
  const file = names.find((one) => one.startsWith(`${name}-`) && one.endsWith('.js'))
  return file === undefined
    ? html
    : html.replace('</head>', `<link rel="modulepreload" crossorigin href="./assets/${file}">\n</head>`)
}

/**
 * The document with a content. Only browsers without scripts show the element; with scripts the page shows the content
 * below its header.
 */
const withContent = (html: string, { title, body }: Content) =>
  html
    .replace('<title>dao-data</title>', `<title>${title} – dao-data</title>`)
    .replace(/<noscript>[\s\S]*<\/noscript>/, () => `<noscript data-title="${title}">\n${body}\n</noscript>`)

/** The error codes as a document. */
function toErrors(html: string): { key: string; page: Page } {
  const based = html.replace('<base href="./">', `<base href="${toRoot(ERRORS)}">`)
  const make = () => withContent(based, toErrorCodes())
  return { key: ERRORS, page: { type: HTML, make, cacheControl: 'no-cache' } }
}

const chooseType = createMediaTypeChooser(['application/problem+json', 'application/json', 'text/html'])

/** Whether an unknown path is answered with a document. Frames of other sites show no header, so they get none. */
const isForBrowser = (request: Request) =>
  chooseType(request.get('accept')) === 'text/html' && !request.path.startsWith('/embed/')

/** The document of an unknown path. */
function sendMissing(html: string, request: Request, response: Response): void {
  const { requestId } = response.locals as { readonly requestId: string }
  const based = html.replace('<base href="./">', `<base href="${toRoot(request.path)}">`)
  response.statusCode = 404
  setHeaders(response, [
    ...FIXED_HEADERS,
    ...['X-Request-Id', requestId, 'Content-Type', HTML],
    ...['Cache-Control', 'no-store', 'Vary', 'Accept'],
    ...['Content-Security-Policy', toPolicy('self')],
  ])
  response.end(request.method === 'HEAD' ? undefined : withContent(based, toMissing(request.path)))
}

/** The document of a chart alone, which any site may show in a frame. Its links open outside of the frame. */
function toEmbed(html: string, path: string): { key: string; page: Page } {
  const base = toRoot(path)
  const make = () => html.replace('<base href="./">', `<base href="${base}" target="_blank">`)
  const policy = toPolicy('self', '*')
  const page = { type: HTML, make, cacheControl: 'no-cache', takesQuery: true, policy }
  return { key: `embed ${base}`, page }
}

/** The built files by path, and the icon at the path that browsers request by default. */
function readAssets(all: readonly string[]): ReadonlyMap<string, Page> {
  const names = all.filter((name) => !COMPRESSED.test(name))
  const toFile = (name: string): Page => {
    const bytes = readFileSync(join(BUILT, 'assets', name))
    const policy = ENGINE_WORKER.test(name) ? { policy: ENGINE_POLICY } : {}
    const type = TYPES[extname(name)] ?? 'application/octet-stream'
    return { type, make: () => bytes, cacheControl: FOREVER, ...policy }
  }
  const icons = names
    .filter((name) => name.endsWith('.svg'))
    .map((name) => ({ ...toFile(name), cacheControl: 'public, max-age=86400' }))
  return new Map([
    ...names.map((name): [string, Page] => [`/assets/${name}`, toFile(name)]),
    ...icons.slice(0, 1).map((icon): [string, Page] => ['/favicon.ico', icon]),
  ])
}

/** A file that the build contains only in compressed form. */
interface CompressedFile {
  readonly path: string
  /** Changes with the content. */
  readonly name: string
  readonly compressedBytes: number
  readonly bytes: number
}

/** The last bytes of a gzip file are the length of its content (RFC 1952, section 2.3.1). */
function readCompressed(name: string): CompressedFile {
  const path = join(BUILT, 'assets', name)
  const content = readFileSync(path)
  return { path, name, compressedBytes: content.length, bytes: content.readUInt32LE(content.length - 4) }
}

type CompressedOptions = Pick<Admission, 'clientKeyOf' | 'longAnswers' | 'turns'> & { readonly files: AnswerFiles }

/**
 * Sends a compressed file from the disk: it is too large for the memory of this process. For clients that do not accept
 * gzip, or want a range, it is decompressed once to a temporary file.
 */
async function sendCompressed(
  { path, name, compressedBytes, bytes }: CompressedFile,
  { request, response }: { readonly request: Request; readonly response: Response },
  { files, ...admission }: CompressedOptions,
): Promise<void> {
  const { requestId, caller } = response.locals as Pick<RequestContext, 'requestId' | 'caller'>
  const client = admission.clientKeyOf(request)
  const isCompressed = request.headers.range === undefined && request.acceptsEncodings('gzip') !== false
  const release = admission.longAnswers.add(response, client)
  const decompress = async (abandoned: AbortSignal) =>
    addAbortSignal(abandoned, createReadStream(path).compose(createGunzip()))
  const read = (part: ByteRange) => createReadStream(path, part)
  const find = async (): Promise<RangedFile> => {
    if (isCompressed) return { length: compressedBytes, read }
    if (request.method === 'HEAD') return { length: bytes, read }
    const file = await files.get(name, client, decompress, createDisconnectSignal(response)())
    if (file === undefined) throw toUnavailable('There is no space to decompress this file: accept gzip.')
    return file
  }
  const headers = [
    ...FIXED_HEADERS,
    ...['X-Request-Id', requestId, 'Content-Type', 'application/wasm'],
    ...['Cache-Control', restrictCaching(caller, FOREVER)],
    ...['Vary', 'Accept-Encoding'],
  ]
  try {
    const encoding = isCompressed ? 'gzip' : 'identity'
    await sendTaggedFile({ request, response, admission }, await find(), { tag: toTagValue(name), encoding, headers })
  } finally {
    release()
  }
}

/**
 * The explorer page, built from `web/`, with the mode in its documents: the notice that numbers are simulated must not
 * wait for an answer. `logos` is the version of the logos, if there are any. This handler is the last one, because it
 * answers all other paths for browsers. If the page was not built, its addresses return an error.
 * @throws Problem `unavailable`
 */
export function createExplorer({
  config,
  registry,
  logos,
  compression,
  ...options
}: Pick<AppContext, 'config' | 'registry'> &
  CompressedOptions & { readonly logos: string | undefined; readonly compression: Compression }): RequestHandler {
  const { mode } = config
  if (!existsSync(join(BUILT, 'index.html')))
    return (request, _response, next) => {
      if (!ADDRESSES.test(request.path) && !EMBEDS.test(request.path) && request.path !== ERRORS) return next()
      throw toUnavailable('The page was not built: `npm run build:page` does that.')
    }
  // Read together at the start: documents and files of two builds do not fit together.
  const built = readFileSync(join(BUILT, 'index.html'), 'utf8')
  const facts = logos === undefined ? '' : `\n<meta name="logos" content="${logos}">`
  const html = built.replace('<meta name="mode" content="demo">', `<meta name="mode" content="${mode}">${facts}`)
  const names = readdirSync(join(BUILT, 'assets'))
  const assets = readAssets(names)
  const compressed = new Map(
    names
      .filter((name) => COMPRESSED.test(name))
      .map((name): [string, CompressedFile] => [`/assets/${name.replace(/\.gz$/, '')}`, readCompressed(name)]),
  )
  const pages = createPageHandler({
    compression,
    base: 'self',
    find: (path) => {
      if (ADDRESSES.test(path))
        return toDocument(withLateCode(html, path, names), path, findCard({ config, registry }, path))
      if (EMBEDS.test(path)) return toEmbed(html, path)
      if (path === ERRORS) return toErrors(html)
      const page = assets.get(path)
      return page === undefined ? undefined : { key: path, page }
    },
  })
  return (request, response, next) => {
    const file = compressed.get(request.path)
    if (file !== undefined) return sendCompressed(file, { request, response }, options)
    return pages(request, response, (failure) => {
      if (failure === undefined && isForBrowser(request)) sendMissing(html, request, response)
      else next(failure)
    })
  }
}
